"""Gossip about peers in few bytes: names first, and profiles if somebody lacks them.

Gossip about a peer is the same most of the time: who it is and what it wants. Only ages change. So gossip
carries, per peer, its name, the age of the news and a stamp (the profile's version and digest). A node that
does not know the profile behind a stamp asks the node that named it.

Rules kept
----------
1. News with a known profile counts at once. Other news counts when the profile has come; if it never comes,
   the news is not heard.
2. An answer holds at most `TOPICS_TOLD` topics, whatever is asked for. The rest has to be asked for another time.
3. The number of profiles that are remembered is bounded, and so are the topics in them. Those used last stay.
4. A wrong profile is believed as far as any gossip about others is: see `descriptors`.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from typing import NamedTuple

import msgspec

from topicweave.blocks.descriptors import MAX_VERSION, Descriptor
from topicweave.model.ids import Interest, NodeId
from topicweave.port import Message, Receivers, Timers, World

_ENTRY = struct.Struct("<QHQ")
"""Name; age in tenths of a second, rounded up; stamp."""
DIGEST_BITS = 23
TOPICS_TOLD = 512
MOST_PROFILES, MOST_TOPICS = 2048, 200_000
MOST_PENDING = 64
PATIENCE = 10.0
"""Seconds for which an answer is waited for."""

Completed = Callable[[list[Descriptor]], None]
Choice = Callable[[Collection[NodeId]], Iterable[NodeId]]
"""Which of some peers to ask about: of the others there is no news."""


class WantProfiles(Message, frozen=True, array_like=True, tag="profiles.want"):
    """What do these want, whom you named?"""

    names: bytes


class PeerProfile(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a peer wants."""

    id: NodeId
    version: int
    topics: Interest


class TellProfiles(Message, frozen=True, array_like=True, tag="profiles.tell"):
    """They want this."""

    profiles: tuple[PeerProfile, ...]


class _Known(NamedTuple):
    stamp: int
    version: int
    topics: Interest


_UNKNOWN = (-1, -1, None)
_OLD = 65_535
"""Tenths of seconds: the greatest age that is told."""


@lru_cache(maxsize=256)
def _entries(count: int) -> struct.Struct:
    return struct.Struct("<" + count * "QHQ")


class _Pending(NamedTuple):
    asked: float
    news: dict[NodeId, tuple[float, int]]
    """(age, stamp)"""
    then: Completed


@lru_cache(maxsize=16_384)
def digest(topics: Interest) -> int:
    """So few bits that it fits beside a version, so many that two profiles of one version of a peer hardly share it."""
    content = struct.pack(f">{len(topics)}Q", *sorted(topics))
    return int.from_bytes(hashlib.blake2b(content, digest_size=4).digest(), "big") >> (32 - DIGEST_BITS)


def stamp(version: int, topics: Interest) -> int:
    return (version & ((1 << 64 - DIGEST_BITS) - 1)) << DIGEST_BITS | digest(topics)


@lru_cache(maxsize=16_384)
def _shared(version: int, topics: Interest) -> _Known:
    """All nodes of a process that know a profile share one object, which is near at hand then."""
    return _Known(stamp(version, topics), version, topics)


def names_in(packed: bytes) -> list[NodeId]:
    """Who is spoken of.

    >>> names_in(_ENTRY.pack(7, 15, 0) + _ENTRY.pack(9, 0, 0))
    [7, 9]
    """
    whole = len(packed) - len(packed) % _ENTRY.size
    return [name for name, _, _ in _ENTRY.iter_unpack(packed[:whole])]


class Names(Message, frozen=True, array_like=True):
    """Base of gossip that names peers, packed."""

    packed: bytes

    def introduces(self) -> Iterable[NodeId]:
        return names_in(self.packed)


class Profiles:
    """One node's memory of who wants what, for all of its blocks that gossip."""

    def __init__(self, world: World, node_id: NodeId) -> None:
        self._world = world
        self._id = node_id
        # Those used last are last. An `OrderedDict` would take twice the memory and time.
        self._known: dict[NodeId, _Known] = {}
        self._topics = 0
        self._pending: dict[NodeId, list[_Pending]] = {}

    def receivers(self) -> Receivers:
        return {WantProfiles: self._receive_want, TellProfiles: self._receive_tell}

    def timers(self) -> Timers:
        return {}

    def pack(self, descriptors: Iterable[Descriptor]) -> bytes:
        """What is said of these peers, without what they want."""
        values: list[int] = []
        find = self._known.get
        for descriptor in descriptors:
            peer, version, topics = descriptor.id, descriptor.version, descriptor.profile
            stamped, of_version, of_topics = find(peer, _UNKNOWN)
            if of_topics is not topics or of_version != version:
                stamped = self._note(peer, version, topics).stamp
            tenths = int(descriptor.age * 10.0 + 0.999)
            # News of somebody heard just now may be younger than nothing, for a moment.
            values += (peer, tenths if 0 <= tenths < _OLD else min(max(tenths, 0), _OLD), stamped)
        return _entries(len(values) // 3).pack(*values)

    def unpack(
        self, sender: NodeId, packed: bytes, limit: int, then: Completed, choose: Choice | None = None
    ) -> None:
        """Hand over the news: what is complete at once, the rest when the sender has told what it lacks."""
        complete: list[Descriptor] = []
        lacking: dict[NodeId, tuple[float, int]] = {}
        packed = packed[: limit * _ENTRY.size]
        profiles = self._known
        find = profiles.get
        for peer, tenths, said in _ENTRY.iter_unpack(packed[: len(packed) - len(packed) % _ENTRY.size]):
            known = find(peer)
            if known is not None and known[0] == said:
                _, version, topics = known
                del profiles[peer]
                profiles[peer] = known
                complete.append(Descriptor(peer, tenths / 10.0, version, topics))
            elif peer == self._id:
                # A rumour of a life of its own that it does not remember: the version is enough to outbid it.
                complete.append(Descriptor(peer, tenths / 10.0, said >> DIGEST_BITS, frozenset()))
            else:
                lacking[peer] = (tenths / 10.0, said)
        if complete:
            then(complete)
        if lacking and choose is not None:
            lacking = {peer: lacking[peer] for peer in choose(lacking)}
        if lacking:
            self._ask(sender, lacking, then)

    def _ask(self, sender: NodeId, news: dict[NodeId, tuple[float, int]], then: Completed) -> None:
        now = self._world.now
        for peer, waiting in list(self._pending.items()):
            if waiting[-1].asked < now - PATIENCE:
                del self._pending[peer]
        if sender in self._pending or len(self._pending) < MOST_PENDING:
            # Two blocks may wait for the same peer, not more.
            self._pending[sender] = [*self._pending.get(sender, ())[-1:], _Pending(now, news, then)]
            self._world.send(sender, WantProfiles(struct.pack(f"<{len(news)}Q", *news)))

    def _receive_want(self, sender: NodeId, message: WantProfiles) -> None:
        told: list[PeerProfile] = []
        room = TOPICS_TOLD
        names = message.names[: 8 * MOST_PROFILES]
        for (peer,) in struct.iter_unpack("<Q", names[: len(names) - len(names) % 8]):
            known = self._known.get(peer)
            if known is not None and (room >= len(known.topics) or not told):
                told.append(PeerProfile(peer, known.version, known.topics))
                room -= len(known.topics)
        if told:
            self._world.send(sender, TellProfiles(tuple(told)))

    def _receive_tell(self, sender: NodeId, message: TellProfiles) -> None:
        waiting = self._pending.pop(sender, ())
        asked_for = set().union(*(pending.news for pending in waiting))
        told = {
            profile.id: self._note(profile.id, profile.version, profile.topics)
            for profile in message.profiles
            if profile.id in asked_for and 0 <= profile.version <= MAX_VERSION
        }
        for pending in waiting:
            held = self._world.now - pending.asked
            news = [
                Descriptor(peer, age + held, told[peer].version, told[peer].topics)
                for peer, (age, _) in pending.news.items()
                if peer in told
            ]
            if news:
                pending.then(news)

    def _note(self, peer: NodeId, version: int, topics: Interest) -> _Known:
        old = self._known.pop(peer, None)
        if old is not None:
            self._topics -= len(old.topics)
        known = _shared(version, topics)
        if known.topics is not topics:
            known = _Known(known.stamp, version, topics)  # `pack` looks whether they are the same
        self._known[peer] = known
        self._topics += len(topics)
        while len(self._known) > MOST_PROFILES or (self._topics > MOST_TOPICS and len(self._known) > 1):
            gone = self._known.pop(next(iter(self._known)))
            self._topics -= len(gone.topics)
        return known
