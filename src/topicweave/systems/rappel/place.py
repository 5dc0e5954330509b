"""A node's place in the network: measured at the start of a session, then fixed (Rappel §6.1.4).

Rules kept
----------
1. A node measures its references (the landmarks, or the contacts it was given where there are none) a few
   times, and is then placed. From there on its coordinate does not change until it starts again; a later
   session has a higher version.
2. Only references that are settled themselves place a newcomer. Where too few are (everybody starts at once,
   or the node is a landmark), all move together as Vivaldi's springs do until their rounds are over.
3. A measurement is the round trip of a probe by the world's clock, so live nodes measure the real network.
   Half of it counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from topicweave.blocks.vivaldi import Coordinate, LatencyFilter, StableCoordinate, Vivaldi, place
from topicweave.model.ids import NodeId
from topicweave.port import Receivers, TimerKey, Timers, World
from topicweave.systems.rappel.messages import Probe, ProbeReply
from topicweave.systems.rappel.parameters import RappelParameters
from topicweave.systems.rappel.rules import FARTHEST, is_place

TIMER = "ra-place"
FEWEST_SETTLED = 3
LONGEST_WAIT = 120
"""Rounds after which a node stops waiting for landmarks to settle."""
_MOST_OUT = 4096


class NetworkPlace:
    """`placed()` is called once per session, when the coordinate is fixed."""

    def __init__(
        self, world: World, node_id: NodeId, parameters: RappelParameters, placed: Callable[[], None]
    ) -> None:
        self._world = world
        self._parameters = parameters
        self._placed = placed
        self._is_landmark = node_id in parameters.landmarks
        self._id = node_id
        self.settled = False
        self.version = 0
        self.coordinate: Coordinate = (0.0,) * parameters.dimensions
        self._begin()

    def _begin(self) -> None:
        self._vivaldi = Vivaldi(self._world.random, self._parameters.dimensions)
        self._stable = StableCoordinate()
        self._filter = LatencyFilter()
        self._references: tuple[NodeId, ...] = ()
        self._round = 0
        self._number = 0
        self._out: dict[int, tuple[NodeId, float]] = {}
        self._seen: dict[NodeId, tuple[Coordinate, float]] = {}  # settled references: where, how far
        self._answers = 0

    def start(self, contacts: Sequence[NodeId]) -> None:
        self._begin()
        self.settled = False
        self.version = max(self.version + 1, int(self._world.now * 1e6))
        known = self._parameters.landmarks or tuple(contacts)
        self._references = tuple(peer for peer in known if peer != self._id)
        if not self._references:
            self._settle(self._vivaldi.position)
            return
        self._measure((TIMER,))

    def receivers(self) -> Receivers:
        return {Probe: self._receive_probe, ProbeReply: self._receive_reply}

    def timers(self) -> Timers:
        return {TIMER: self._measure}

    def forget(self, peer: NodeId) -> None:
        self._filter.forget(peer)
        self._seen.pop(peer, None)

    @property
    def error(self) -> float:
        return self._vivaldi.error

    def _measure(self, _key: TimerKey) -> None:
        if self.settled:
            return
        wanted = self._parameters.landmark_rounds if self._is_landmark else self._parameters.probe_rounds
        enough = self._is_landmark or not self._parameters.landmarks
        enough = enough or 2 * len(self._seen) >= len(self._references)
        if self._round >= LONGEST_WAIT or (self._round >= wanted and enough):
            self._finish()
            return
        self._round += 1
        now = self._world.now
        self._out = {number: out for number, out in self._out.items() if out[1] > now - FARTHEST}
        for peer in self._references:
            self._number += 1
            if len(self._out) < _MOST_OUT:
                self._out[self._number] = (peer, now)
                self._world.send(peer, Probe(self._number))
        self._world.set_timer((TIMER,), self._parameters.probe_pause)

    def _receive_probe(self, sender: NodeId, message: Probe) -> None:
        shown = self.coordinate if self.settled else self._vivaldi.position
        self._world.send(sender, ProbeReply(message.number, shown, self._vivaldi.error, self.settled))

    def _receive_reply(self, sender: NodeId, message: ProbeReply) -> None:
        peer, sent = self._out.pop(message.number, (None, 0.0))
        if self.settled or peer != sender or not self._believable(message):
            return
        self._answers += 1
        seconds = self._filter.add(sender, (self._world.now - sent) / 2.0)
        self._vivaldi.update(seconds, message.coordinate, message.error)
        if self._is_landmark:
            self._stable.follow(self._vivaldi.position)
        if message.settled:
            self._seen[sender] = (message.coordinate, seconds)

    def _believable(self, message: ProbeReply) -> bool:
        return is_place(message.coordinate, self._parameters.dimensions) and 0.0 <= message.error <= 1.0

    def _finish(self) -> None:
        if len(self._seen) >= FEWEST_SETTLED and not self._is_landmark:
            places, seconds = zip(*self._seen.values(), strict=True)
            self._settle(place(places, seconds))
        else:
            self._settle(self._stable.shown or self._vivaldi.position)

    def _settle(self, point: Coordinate) -> None:
        if not all(math.isfinite(value) for value in point):
            point = self._vivaldi.position
        self.coordinate = point
        self.settled = True
        self._out.clear()
        self._world.cancel_timer((TIMER,))
        self._placed()
