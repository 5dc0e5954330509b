"""Rappel in the simulator, for tests: a feed or several over a small plane, settled, watched."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from topicweave.blocks.membership import FULL, Membership
from topicweave.model.event import Event
from topicweave.model.ids import NodeId, TopicId
from topicweave.model.workload import Workload
from topicweave.sim.churn import Churn
from topicweave.sim.faults import Fault
from topicweave.sim.host import Host
from topicweave.sim.latency import Coordinates
from topicweave.sim.simulation import Simulation
from topicweave.systems.rappel import RAPPEL, RappelNode
from topicweave.systems.rappel.invariants import always, at_rest
from topicweave.systems.rappel.tree import Tree
from topicweave.testing.invariants import DeliveryLog, nodes_up

SETTLED = 150.0


def one_feed(subscribers: int) -> Workload:
    """Node 0 is the publisher."""
    return Workload.from_lists({f"n{number:03d}": ["feed"] for number in range(subscribers + 1)})


class Lab:
    """Hosts in a square of 80 ms, one way, from side to side; the publisher of the first topic is host 0
    unless told otherwise.
    """

    def __init__(
        self,
        workload: Workload,
        seed: int = 1,
        given: bool = True,
        churn: Churn | None = None,
        faults: Iterable[Fault] = (),
        membership: Membership = FULL,
        **parameters: Any,
    ) -> None:
        self.workload = workload
        rng = random.Random(f"places/{seed}")
        points = [(rng.uniform(0, 80), rng.uniform(0, 80)) for _ in range(workload.nodes)]
        if given:
            parameters.setdefault("publishers", {workload.topic_ids[0]: workload.node_ids[0]})
        self.sim = Simulation(
            workload,
            RAPPEL,
            RAPPEL.settings(**parameters),
            seed=seed,
            latency=Coordinates(points),
            churn=churn,
            faults=faults,
            membership=membership,
        )
        self.log = DeliveryLog(self.sim)
        self.feed = workload.topic_ids[0]
        self.got: dict[tuple[int, int], float] = {}
        """(host, sequence) -> when."""
        self.events: dict[int, Event] = {}
        self.sim.on_delivery(self._delivered)

    def _delivered(self, host: Host, event: Event) -> None:
        self.events[event.sequence] = event
        self.got.setdefault((host.index, event.sequence), self.sim.now)

    def node(self, index: int) -> RappelNode:
        node = self.sim.node(index)
        assert isinstance(node, RappelNode)
        return node

    def tree(self, index: int) -> Tree:
        return self.node(index).trees.trees[self.feed]

    def roots(self) -> dict[TopicId, list[int]]:
        """Who leads each feed."""
        found: dict[TopicId, list[int]] = {}
        for index in self.sim.up():
            for feed, tree in self.node(index).trees.trees.items():
                if tree.is_root:
                    found.setdefault(feed, []).append(index)
        return found

    def index(self, node_id: NodeId | None) -> int:
        assert node_id is not None
        return self.workload.node_ids.index(node_id)

    def wrong(self) -> list[str]:
        nodes = nodes_up(self.sim)
        return [*self.log.violations, *always(nodes), *at_rest(nodes)]

    def publish(self, index: int = 0) -> int:
        return self.sim.publish(index, 0).event.sequence

    def without(self, sequence: int) -> list[int]:
        """Who is up and has not got an update."""
        return [index for index in self.sim.up() if (index, sequence) not in self.got]

    def inner(self) -> int:
        """Somebody with a parent below the root and with children."""
        return next(
            index
            for index in self.sim.up()
            if self.tree(index).height >= 2 and len(self.tree(index).children) >= 2
        )
