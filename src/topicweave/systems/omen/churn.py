"""Which departures this node handles, and when: `exeQ` and `standbyL` (§5, Algorithm 5).

Every one of the L successors of a node watches it, so each learns of its departure by itself. The nearest
live successor is the coordinator and executes; the others stand by. A standby event is taken over when its
coordinator goes, or when nobody has reported it as handled in time. An event that could not be handled in
`GIVE_UP` terms is dropped: the successors' records of so old a departure describe an overlay that is gone.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from topicweave.model.ids import NodeId
from topicweave.port import Receivers, TimerKey, Timers, World

TIMER = "omen-standby"
GIVE_UP = 4


class Departure(msgspec.Struct):
    """chev: who left, and who is to handle it as far as this node knows."""

    node: NodeId
    since: float
    """chev.localtime"""
    assigned: NodeId
    terms: int = 0


class ChurnEvents:
    """exeQ and standbyL together hold at most `limit` departures, the latest."""

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        limit: int,
        standby_time: float,
        in_range: Callable[[NodeId], bool],
        dropped: Callable[[NodeId], None],
    ) -> None:
        self._world = world
        self._id = node_id
        self._limit = limit
        self._standby_time = standby_time
        self._in_range = in_range
        self._dropped = dropped
        self.executing: dict[NodeId, Departure] = {}
        self.standby: dict[NodeId, Departure] = {}
        self.most = 0
        """How many there ever were at a time."""

    def receivers(self) -> Receivers:
        return {}

    def timers(self) -> Timers:
        return {TIMER: self._timeout}

    def handle(self, node: NodeId, coordinator: NodeId) -> None:
        """handleChurnEvent: a predecessor left, and `coordinator` is its nearest live successor."""
        for event in [event for event in self.standby.values() if event.assigned == node]:
            # Whoever was to handle it is gone, too; its own successor takes all of it over.
            event.assigned = coordinator
            if coordinator == self._id:
                self._execute(event)
        if node in self.executing or node in self.standby:
            return
        if len(self.executing) + len(self.standby) >= self._limit:
            self.handled(next(iter({**self.standby, **self.executing})))
        event = Departure(node, self._world.now, coordinator)
        if coordinator == self._id:
            self._execute(event)
        else:
            self._stand_by(event)
        self.most = max(self.most, len(self.executing) + len(self.standby))

    def next(self) -> Departure | None:
        """processExeQ: the oldest one to execute; what left this node's range goes (back) to standby."""
        for event in [event for event in self.executing.values() if not self._in_range(event.node)]:
            del self.executing[event.node]
            self._stand_by(event)
        return min(self.executing.values(), key=lambda event: (event.since, event.node), default=None)

    def handled(self, node: NodeId) -> None:
        """gcChurnEvent: somebody completed the repair, or nobody ever will."""
        known = self.executing.pop(node, None) or self.standby.pop(node, None)
        self._world.cancel_timer((TIMER, node))
        if known is not None:
            self._dropped(node)

    def _execute(self, event: Departure) -> None:
        self.standby.pop(event.node, None)
        self.executing[event.node] = event
        # Should the local view never get ready, this ends it.
        self._world.set_timer((TIMER, event.node), self._standby_time)

    def _stand_by(self, event: Departure) -> None:
        self.standby[event.node] = event
        self._world.set_timer((TIMER, event.node), self._standby_time)

    def _timeout(self, key: TimerKey) -> None:
        """processStandbyL."""
        event = self.standby.get(key[1]) or self.executing.get(key[1])
        if event is None:
            return
        event.terms += 1
        if event.terms >= GIVE_UP:
            self.handled(event.node)
        elif self._in_range(event.node):
            self._execute(event)
        else:
            self._world.set_timer(key, self._standby_time)
