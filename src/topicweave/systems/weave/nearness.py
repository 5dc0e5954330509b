"""How far away peers are, and what that counts when a node chooses whom to link to.

Rules kept
----------
1. A node measures only peers that it would link to, a few at a time, by the round trip of a question that is
   answered at once. Any other peer counts as far away as the nearer quarter of those measured. So a node is
   curious where distances differ, and nowhere else.
2. The least of `TIMES` round trips counts, since the first may have to wait for a connection. A peer that does
   not answer counts as far away.
3. Distances are relative to the median of those measured: a near network and a far one are the same.
4. A measurement holds for `KEEP` seconds, and as long as the owner knows the peer. A node that knows `MOST_KNOWN`
   distances measures nobody else.
5. A node does not wait for a peer that it cannot ask: there is no connection yet, or the peer speaks an earlier
   wire format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from topicweave.model.ids import NodeId
from topicweave.port import Message, Receivers, TimerKey, Timers, World

PATIENCE = 2.0
"""Seconds for the answers. A peer that gives none counts as so far away."""
TIMES = 2
MOST_AT_ONCE = 8
MOST_KNOWN = 256
KEEP = 600.0
RESOLUTION = 0.01
"""Seconds. Smaller differences come from how busy machines are."""
TIMER = "weave-far"


class HowFar(Message, frozen=True, array_like=True, tag="weave-far"):
    """Answer at once: the sender measures how long that takes."""

    wire: ClassVar[int] = 7
    number: int


class SoFar(Message, frozen=True, array_like=True, tag="weave-so-far"):
    """The answer to the question of that number."""

    wire: ClassVar[int] = 7
    number: int


def middle_and_quarter(round_trips: Iterable[float]) -> tuple[float, float]:
    """The median, and what a quarter is not above.

    >>> middle_and_quarter([0.3, 0.04, 0.2, 0.04, 0.1])
    (0.1, 0.04)
    """
    ordered = sorted(round_trips)
    return ordered[len(ordered) // 2], ordered[len(ordered) // 4]


class Nearness:
    """`measured()` is called when those that were asked have answered, or will not."""

    def __init__(self, world: World, weight: float, measured: Callable[[], None]) -> None:
        """weight: how many topics less a peer counts that is as far away as the median"""
        self._world = world
        self._weight = weight
        self._measured = measured
        self._known: dict[NodeId, tuple[float, float]] = {}
        """The least round trip, and until when it holds. In order of time."""
        self._asked: dict[NodeId, tuple[int, float]] = {}
        """The number of the last question, and when it was asked."""
        self._took: dict[NodeId, list[float]] = {}
        """Round trips of those that are asked."""
        self._middle, self._quarter = 1.0, 1.0

    def receivers(self) -> Receivers:
        return {HowFar: self._receive_question, SoFar: self._receive_answer}

    def timers(self) -> Timers:
        return {TIMER: self._end}

    def restart(self) -> None:
        """Answers to an earlier life are not waited for."""
        self._asked.clear()
        self._took.clear()

    def known_peers(self) -> set[NodeId]:
        return {*self._known, *self._asked, *self._took}

    def forget(self, peer: NodeId) -> None:
        for memory in (self._known, self._asked, self._took):
            memory.pop(peer, None)

    def settled(self, peer: NodeId) -> bool:
        """Whether it was measured, or will not be."""
        return (
            peer in self._known or len(self._known) >= MOST_KNOWN or not self._world.understands(peer, HowFar)
        )

    def less(self, peer: NodeId) -> float:
        """How many topics less a peer counts."""
        seconds = self._known[peer][0] if peer in self._known else self._quarter
        return self._weight * seconds / self._middle

    def measure(self, peers: Iterable[NodeId]) -> None:
        """Those of them that are not known; once those that are asked have answered."""
        now = self._world.now
        for peer in [peer for peer, (_, until) in self._known.items() if until <= now]:
            del self._known[peer]
        if self._asked:
            return
        for peer in [peer for peer in peers if not self.settled(peer)][:MOST_AT_ONCE]:
            self._took[peer] = []
            self._ask(peer)
        if self._asked:
            self._world.set_timer((TIMER,), PATIENCE)

    def _ask(self, peer: NodeId) -> None:
        number = self._world.random.getrandbits(32)
        self._asked[peer] = (number, self._world.now)
        self._world.send(peer, HowFar(number))

    def _receive_question(self, sender: NodeId, message: HowFar) -> None:
        self._world.send(sender, SoFar(message.number))

    def _receive_answer(self, sender: NodeId, message: SoFar) -> None:
        number, sent = self._asked.get(sender, (None, 0.0))
        if message.number != number:
            return
        del self._asked[sender]
        self._took[sender].append(self._world.now - sent)
        if len(self._took[sender]) < TIMES:
            self._ask(sender)
        elif not self._asked:
            self._world.cancel_timer((TIMER,))
            self._end((TIMER,))

    def _end(self, _key: TimerKey) -> None:
        for peer, took in self._took.items():
            seconds = max(1, round(min(took, default=PATIENCE) / RESOLUTION)) * RESOLUTION
            self._known[peer] = (seconds, self._world.now + KEEP)
        self.restart()
        if self._known:
            self._middle, self._quarter = middle_and_quarter(seconds for seconds, _ in self._known.values())
            self._measured()
