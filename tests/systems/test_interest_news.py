"""What it costs the neighbours when a node wants one topic more, and that they learn it, whatever gets lost."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from topicweave.blocks.interest_news import InterestChange, InterestNews
from topicweave.blocks.membership import Membership
from topicweave.model.ids import NodeId, ring_id
from topicweave.port import Node
from topicweave.systems.alternatives.gossipsub.messages import Subscriptions
from topicweave.systems.omen.messages import InterestUpdate as OMenUpdate
from topicweave.systems.registry import SYSTEMS
from topicweave.systems.spidercast.messages import InterestUpdate
from topicweave.systems.spidercast.rules import Coverage
from topicweave.testing import VirtualNetwork

NODES = [ring_id(f"node-{number}") for number in range(4)]
SHARED = [ring_id(f"topic-{number}") for number in range(1000)]
NEW = 77
WHOLE = (InterestUpdate, OMenUpdate, Subscriptions)
TELLING = ["spidercast", "weave", "ring-per-topic", "opt", "random", "similarity", "omen", "gossipsub"]


class Swarm(VirtualNetwork):
    """Four nodes that want a thousand topics each."""

    def __init__(self, name: str) -> None:
        super().__init__(seed=1)
        system = SYSTEMS[name]
        self.nodes: dict[NodeId, Any] = {}
        for number, node_id in enumerate(NODES):
            world = self.world(node_id)
            interest = frozenset(SHARED)
            view = Membership(capacity=100).view(world, node_id, interest, None)
            node = self.nodes[node_id] = system.build(world, node_id, interest, view, system.settings())
            assert isinstance(node, Node)
            world.host(node)
            node.start(NODES[max(0, number - 1) : number])
        self.run_for(max(30.0, system.settles_within))
        self.teller = self.nodes[NODES[0]]
        self.neighbours = {link.peer for link in self.teller.links()}
        assert self.neighbours
        self.listen()

    def told(self) -> list[int]:
        """The sizes of messages that told what the first node wants."""
        return [
            len(msgspec.msgpack.encode(sent.message))
            for sent in self.log
            if sent.sender == NODES[0] and isinstance(sent.message, (InterestChange, *WHOLE))
        ]

    def right(self) -> bool:
        """Whether all neighbours know what it wants."""
        for peer in self.neighbours:
            news: InterestNews = self.nodes[peer]._news
            if news._known(NODES[0]) != self.teller._own_interest():
                return False
        return True


@pytest.mark.parametrize("name", TELLING)
def test_one_topic_more_costs_a_few_bytes_per_neighbour(name: str) -> None:
    swarm = Swarm(name)
    for change in (swarm.teller.subscribe, swarm.teller.unsubscribe):
        change(NEW)
        swarm.run_for(0.05)
        assert swarm.right()
        assert len(swarm.told()) == len(swarm.neighbours)
        assert sum(swarm.told()) <= 60 * len(swarm.neighbours)
        swarm.log.clear()
    swarm.run_for(5.0)
    assert swarm.told() == [], "and nobody asks for all of it"


@pytest.mark.parametrize("name", ["spidercast", "omen"])
def test_publishing_on_what_a_node_does_not_want_costs_as_little(name: str) -> None:
    swarm = Swarm(name)
    swarm.teller.publish(NEW, b"here")
    swarm.run_for(0.05)
    assert swarm.right()
    swarm.run_for(swarm.teller.parameters.publisher_interest + 5.0)
    assert NEW not in swarm.teller._own_interest()[1]
    assert swarm.right()
    assert len(swarm.told()) == 2 * len(swarm.neighbours)
    assert sum(swarm.told()) <= 120 * len(swarm.neighbours)


@pytest.mark.parametrize("name", TELLING)
def test_neighbours_that_missed_it_catch_up(name: str) -> None:
    swarm = Swarm(name)
    swarm.lose = lambda sent: isinstance(sent.message, InterestChange)
    swarm.teller.subscribe(NEW)
    swarm.run_for(8.0)
    assert swarm.right()
    swarm.teller.subscribe(NEW + 1)
    swarm.lose = lambda _sent: False
    swarm.teller.subscribe(NEW + 2)
    swarm.run_for(0.1)
    assert swarm.right()


@pytest.mark.parametrize("name", TELLING)
def test_neighbours_of_an_earlier_version_are_told_all(name: str) -> None:
    swarm = Swarm(name)
    swarm.earlier.update(swarm.neighbours)
    swarm.teller.subscribe(NEW)
    swarm.run_for(0.05)
    assert swarm.right()
    assert swarm.sent(InterestChange) == []


@pytest.mark.parametrize("name", ["spidercast", "weave"])
def test_many_changes_in_a_row_count_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What neighbours cover is counted when it is asked for, not with each of the changes."""
    swarm = Swarm(name)
    counted: list[int] = []
    count = Coverage._count

    def counting(coverage: Coverage) -> None:
        if coverage._uncounted is not None:
            counted.append(len(coverage._interest))
        count(coverage)

    monkeypatch.setattr(Coverage, "_count", counting)
    for topic in range(1, 101):
        swarm.teller.subscribe(topic)
    assert counted == []
    swarm.run_for(0.05)
    assert swarm.right()
    swarm.run_for(5.0)
    assert 0 < len(counted) < 10
