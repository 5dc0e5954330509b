"""A node as a publisher: it says its names to their homes, and again before they are forgotten.

Rules kept
----------
1. A new name is said at once, to the home of its first level, or to a deeper one if that was seen to keep its
   neighbours. The answer says where it is kept. If no answer comes, the node says the name again, to one
   successor of the home after another, in growing pauses, and then to the home again. A late answer counts, too.
2. Names that are kept at one place are said again together, in a digest; a home that knows something else is
   told them all.
3. A name that was refused for want of room is said again with the next renewal.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from topicweave.blocks.name_messages import NamesEnded, NamesKept, NamesSaid, NamesStill, RingParcel
from topicweave.blocks.topic_names import rules
from topicweave.blocks.topic_names.parameters import NamesParameters
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import World

AT_ONCE = 128
MOST_ATTEMPTS = 4
MOST_QUESTIONS = 8
"""About one place, that may still be answered."""
SLOW = 4
"""Questions on which nobody waits may take so many times as long."""
YOUNG = 15.0
MOST_TERM = 3600.0
MOST_DEEP = 4096
"""Prefixes that are remembered to have homes of their own."""


class _OwnName:
    __slots__ = ("at", "attempt", "born", "kept", "next", "topic")

    def __init__(self, topic: TopicId, born: float, at: str) -> None:
        self.topic = topic
        self.born = born
        self.at = at  # the prefix below which it is said
        self.kept = False  # as its home answered
        self.attempt = 0
        self.next = born  # when to say it, if it is not known to be kept


class _Place:
    """A prefix below which names of this node are kept."""

    __slots__ = ("again", "asked", "attempt", "due", "names", "questions")

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self.due = 0.0
        self.again = 0.0
        self.asked = -1.0
        self.attempt = 0
        self.questions: dict[int, int] = {}  # since the last answer: number -> attempt


class NameAnnouncer:
    """`post` sends; `soon()` asks for a call of `say`. With `private` names the topics travel beside them."""

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        parameters: NamesParameters,
        post: Callable[[RingParcel], None],
        soon: Callable[[], None],
        private: bool,
    ) -> None:
        self._world = world
        self._id = node_id
        self._parameters = parameters
        self._post = post
        self._soon = soon
        self._private = private
        self.names: dict[str, _OwnName] = {}
        self._places: dict[str, _Place] = {}
        self._fresh: dict[str, None] = {}  # names that are not known to be kept
        self._deep: dict[str, None] = {}  # prefixes below others that have homes of their own
        self._asked: dict[int, tuple[float, tuple[str, ...], int]] = {}  # number -> when, names, attempt
        self._number = 0
        self._started = world.now
        self.refused = 0

    def restart(self) -> None:
        """What was said in the last life may be forgotten."""
        now = self._started = self._world.now
        self._places.clear()
        self._asked.clear()
        for name, own in self.names.items():
            own.kept, own.attempt, own.next = False, 0, now
            self._fresh[name] = None

    def publishes(self, name: str, topic: TopicId) -> bool:
        """Whether there is room for another name."""
        if name in self.names:
            return True
        if len(self.names) >= self._parameters.own:
            self.refused += 1
            return False
        self.names[name] = _OwnName(topic, self._world.now, self._deepest(name))
        self._fresh[name] = None
        self._soon()
        return True

    def ends(self, name: str) -> None:
        own = self.names.pop(name, None)
        if own is None:
            return
        self._fresh.pop(name, None)
        self._leave_place(name, own)
        rest = rules.rest_of(name, own.at)
        self._post(RingParcel(rules.place_of(own.at), NamesEnded(own.at, self._id, (rest,)), soon=True))

    def leave(self) -> None:
        """The node goes: nobody should wait for its names."""
        at: dict[str, list[str]] = {}
        for name, own in self.names.items():
            at.setdefault(own.at, []).append(rules.rest_of(name, own.at))
        for prefix, rests in at.items():
            for first in range(0, len(rests), AT_ONCE):
                some = tuple(rests[first : first + AT_ONCE])
                self._post(RingParcel(rules.place_of(prefix), NamesEnded(prefix, self._id, some)))

    def _deepest(self, name: str) -> str:
        """The longest prefix that is known to have a home of its own, as all before it; the home of the first
        level is always there.
        """
        first, *others = rules.prefixes_of(name)
        for prefix in others:
            if prefix not in self._deep:
                break
            first = prefix
        return first

    # What goes out.

    def say(self) -> None:
        """What is to be said now."""
        now, timeout = self._world.now, self._parameters.ask_timeout
        for number in [number for number, asked in self._asked.items() if now - asked[0] > 4 * timeout]:
            del self._asked[number]
        lots: dict[tuple[str, int], list[str]] = {}
        for name in self._fresh:
            own = self.names[name]
            if own.next <= now:
                lots.setdefault((own.at, own.attempt), []).append(name)
                own.next = now + timeout * min(own.attempt + 1, MOST_ATTEMPTS)
                own.attempt = _next_attempt(own.attempt)
        for (prefix, attempt), names in lots.items():
            for first in range(0, len(names), AT_ONCE):
                self._say(prefix, names[first : first + AT_ONCE], attempt, whole=False)
        for prefix, place in self._places.items():
            # Nobody waits for a first renewal, and it travels at leisure, as its answer does.
            patience = timeout * (place.attempt if place.attempt > 1 else SLOW)
            if place.due > now or (place.asked >= 0.0 and now - place.asked < patience):
                continue
            self._number += 1
            place.asked = now
            again = bool(place.questions)
            place.questions[self._number] = place.attempt
            if len(place.questions) > MOST_QUESTIONS:
                del place.questions[next(iter(place.questions))]
            digest = rules.digest_of(place.names)
            still = NamesStill(prefix, self._id, self._number, self._term(place.again), digest)
            self._post(RingParcel(rules.place_of(prefix), still, place.attempt, soon=again))
            place.attempt = _next_attempt(place.attempt)

    def _say(self, prefix: str, names: list[str], attempt: int, whole: bool) -> None:
        now = self._world.now
        self._number += 1
        self._asked[self._number] = (now, tuple(names), attempt)
        own = [self.names[name] for name in names]
        said = NamesSaid(
            prefix,
            self._id,
            self._number,
            self._term(0.0),
            tuple(rules.rest_of(name, prefix) for name in names),
            tuple(int(now - one.born) for one in own),
            tuple(one.topic for one in own) if self._private else (),
            whole=whole,
        )
        self._post(RingParcel(rules.place_of(prefix), said, attempt, soon=True))

    def _term(self, again: float) -> float:
        return self._parameters.lasts * max(self._parameters.renew, again)

    # What homes answer.

    def answered(self, kept: NamesKept) -> None:
        now = self._world.now
        place = self._places.get(kept.prefix)
        if place is not None and kept.number in place.questions:
            early = place.questions[kept.number] > 0
            place.asked, place.attempt = -1.0, 0
            place.questions.clear()
            if kept.unknown:
                self._say_all(kept.prefix, place)
                return
            self._renew_later(place, kept.again)
            if early:
                place.due = now + 2 * self._parameters.ask_timeout
            return
        _, names, attempt = self._asked.get(kept.number, (now, (), 0))
        for position in kept.refused[: len(names)]:
            if 0 <= position < len(names) and (own := self.names.get(names[position])) is not None:
                self.refused += 1
                own.attempt = 0
                own.next = now + self._parameters.renew
        if not rules.is_prefix(kept.prefix):
            return
        for position in kept.places[: len(names)]:
            if 0 <= position < len(names):
                self._is_kept(names[position], kept, early=attempt > 0)

    def _is_kept(self, name: str, kept: NamesKept, early: bool) -> None:
        """`early`: a successor of the home keeps it. Successors tell no watchers, so the home itself is told
        soon.
        """
        own = self.names.get(name)
        if own is None or not f"{name}/".startswith(kept.prefix) or kept.prefix == rules.ROOT:
            return
        self._fresh.pop(name, None)
        if own.at != kept.prefix:
            self._leave_place(name, own)
            own.at = kept.prefix
        own.kept, own.attempt = True, 0
        for prefix in islice(rules.prefixes_of(name), 1, None):
            self._deep.pop(prefix, None)
            if kept.prefix.startswith(prefix):
                if len(self._deep) >= MOST_DEEP:
                    del self._deep[next(iter(self._deep))]
                self._deep[prefix] = None
        place = self._places.setdefault(kept.prefix, _Place())
        place.names[name] = None
        if place.due <= self._world.now:
            self._renew_later(place, kept.again)
        if early:
            place.due = min(place.due, self._world.now + 2 * self._parameters.ask_timeout)

    def _renew_later(self, place: _Place, again: float) -> None:
        place.again = min(max(again, 0.0), MOST_TERM)
        pause = max(self._parameters.renew, place.again)
        place.due = self._world.now + pause * self._world.random.uniform(0.75, 1.0)

    def _say_all(self, prefix: str, place: _Place) -> None:
        """The home has other names of this node than these: say all of them again."""
        names = list(place.names)
        del self._places[prefix]
        later = self._world.now + self._parameters.ask_timeout
        for name in names:
            own = self.names[name]
            own.kept, own.attempt, own.next = False, 1, later
            self._fresh[name] = None
        for first in range(0, len(names), AT_ONCE):
            self._say(prefix, names[first : first + AT_ONCE], 0, whole=first == 0)

    def _leave_place(self, name: str, own: _OwnName) -> None:
        place = self._places.get(own.at)
        if place is not None:
            place.names.pop(name, None)
            if not place.names:
                del self._places[own.at]


def _next_attempt(attempt: int) -> int:
    """The home, its successors in turn, and the home again.

    >>> [_next_attempt(attempt) for attempt in range(MOST_ATTEMPTS + 1)]
    [1, 2, 3, 4, 0]
    """
    return (attempt + 1) % (MOST_ATTEMPTS + 1)
