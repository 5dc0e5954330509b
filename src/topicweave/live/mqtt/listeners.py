"""Who gets a message at one door: the subscriptions of all its clients, by topic or filter.

A client gets a message once, however many of its subscriptions match: with the highest QoS of these, and with
the ids of all of them. Of the clients that share a subscription one gets the message, in turn, and connected
clients first. That is apart from what the client gets by its own subscriptions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from topicweave.live.mqtt.session import Kept
from topicweave.live.mqtt.topics import share_of
from topicweave.model.pattern_tree import PatternTree
from topicweave.model.patterns import is_pattern


class Recipient(NamedTuple):
    client_id: str
    qos: int
    numbers: tuple[int, ...]
    """Of the subscriptions that match, where their client gave them one."""
    share: str = ""
    """The shared subscription, if it is for one of its group."""


class Listeners:
    """`connected(client)` tells whether a client is there, `may(client, topic)` whether it may have a topic
    that a pattern of its matches.
    """

    def __init__(self, connected: Callable[[str], bool], may: Callable[[str, str], bool]) -> None:
        self._connected = connected
        self._may = may
        self._plain = PatternTree[str, Kept]()
        self._shared = PatternTree[tuple[str, str], Kept]()
        """By group and client."""
        self._turns: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._plain) + len(self._shared)

    def __contains__(self, topic: object) -> bool:
        return topic in self._plain or topic in self._shared

    def put(self, client_id: str, kept: Kept) -> None:
        group, named = share_of(kept.wish.filter)
        if group:
            self._shared.put(named, (group, client_id), kept)
        else:
            self._plain.put(named, client_id, kept)

    def remove(self, client_id: str, filter_: str) -> None:
        group, named = share_of(filter_)
        if group:
            self._shared.remove(named, (group, client_id))
            if not self.members(filter_):
                self._turns.pop(filter_, None)
        else:
            self._plain.remove(named, client_id)

    def plain(self, topic: str) -> list[tuple[str, str, Kept]]:
        """Subscriptions that are not shared: filter, client and what is kept of it."""
        return self._plain.matching(topic)

    def recipients(self, topic: str, origin: str, born: float) -> list[Recipient]:
        """Those who subscribed before it was published; not its publisher, where that does not want to hear itself."""
        best: dict[str, Recipient] = {}
        for filter_, client_id, kept in self._plain.matching(topic):
            if born < kept.since or (origin == client_id and kept.wish.no_local):
                continue
            if is_pattern(filter_) and not self._may(client_id, topic):
                continue
            numbers = (kept.subscription_id,) if kept.subscription_id else ()
            known = best.get(client_id)
            if known is None:
                best[client_id] = Recipient(client_id, kept.wish.qos, numbers)
            else:
                best[client_id] = Recipient(client_id, max(known.qos, kept.wish.qos), known.numbers + numbers)
        chosen = list(best.values())
        groups: dict[str, list[Recipient]] = {}
        for filter_, (_, client_id), kept in self._shared.matching(topic):
            if born >= kept.since and not (is_pattern(filter_) and not self._may(client_id, topic)):
                groups.setdefault(kept.wish.filter, []).append(_of(client_id, kept))
        chosen += [self._pick(share, members) for share, members in groups.items()]
        return chosen

    def another(self, share: str, topic: str, than: str) -> Recipient | None:
        """One of a group for a message that its last one has not taken."""
        members = [_of(client_id, kept) for client_id, kept in self.members(share) if client_id != than]
        members = [one for one in members if not is_pattern(share) or self._may(one.client_id, topic)]
        return self._pick(share, members) if members else None

    def members(self, share: str) -> list[tuple[str, Kept]]:
        group, named = share_of(share)
        return [
            (client_id, kept) for (one, client_id), kept in self._shared.held(named).items() if one == group
        ]

    def _pick(self, share: str, members: list[Recipient]) -> Recipient:
        there = [one for one in members if self._connected(one.client_id)] or members
        turn = self._turns[share] = self._turns.get(share, -1) + 1
        return there[turn % len(there)]


def _of(client_id: str, kept: Kept) -> Recipient:
    numbers = (kept.subscription_id,) if kept.subscription_id else ()
    return Recipient(client_id, kept.wish.qos, numbers, kept.wish.filter)
