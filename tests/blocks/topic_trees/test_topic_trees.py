"""Trees over a ring: who is asked and when, who is left and when, and what a request that comes again and
again costs.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.blocks.ring.test_ring import ring_of
from topicweave.blocks.ring.messages import Contact
from topicweave.blocks.topic_trees.messages import TreeGraft, TreeJoin, TreeLeft
from topicweave.blocks.topic_trees.trees import TopicTrees, TreeParameters
from topicweave.model.ids import NodeId
from topicweave.port import Message


def test_a_request_is_handed_on_once_per_period() -> None:
    """Else copies that a network makes would multiply wherever tables disagree and a route is a circle."""
    net, nodes = ring_of(20)
    net.run(15.0)
    node = nodes[min(nodes)]
    trees = TopicTrees(node.world, node.ring, node.ring, {1}, lambda _topics: {}, 1.0, TreeParameters())
    last = node.ring.table.places[-1]
    graft = TreeGraft((1, 2), (node.ring.here, node.ring.here), Contact(7, last[0] + b"\x01", 1), 1)

    def handed_on() -> list[tuple[int, tuple[int, ...]]]:
        net.listen()
        trees.receivers()[TreeGraft](8, graft)
        return [(to, it.topics) for _, _, to, it in net.log if isinstance(it, TreeGraft)]

    assert [handed_on() for _ in range(3)] == [[(last[1], (1, 2))], [], []]
    trees.beat()
    assert handed_on() == [(last[1], (1, 2))]


def test_the_old_parent_serves_for_a_period_more() -> None:
    """An event may have passed the new one already, and not have come to the old one."""
    net, nodes = ring_of(20)
    net.run(15.0)
    node = nodes[min(nodes)]
    trees = TopicTrees(node.world, node.ring, node.ring, {1}, lambda _topics: {}, 1.0, TreeParameters())
    own = node.ring.own
    assert own is not None
    old, new = [peer for _, peer in node.ring.table if peer != node.id][:2]

    def said_to_old(act: Callable[[], None]) -> list[Message]:
        net.listen()
        act()
        return [it for _, _, to, it in net.log if to == old]

    def graft(parent: NodeId) -> Callable[[], None]:
        message = TreeGraft((1,), (node.ring.here,), own, 1)
        return lambda: trees.receivers()[TreeGraft](parent, message)

    assert said_to_old(graft(old)) == []
    assert said_to_old(graft(new)) == []
    assert trees.parent(1) == new
    assert old in trees.known_peers()
    net.run(15.5)
    assert said_to_old(trees.beat) == []
    net.worlds = {}  # Nobody else has trees here.
    net.run(16.5)
    assert said_to_old(trees.beat) == [TreeLeft((1,))]
    assert old not in trees.known_peers()


def test_back_at_the_old_parent_it_is_not_left() -> None:
    net, nodes = ring_of(20)
    net.run(15.0)
    node = nodes[min(nodes)]
    trees = TopicTrees(node.world, node.ring, node.ring, {1}, lambda _topics: {}, 1.0, TreeParameters())
    assert node.ring.own is not None
    old, new = [peer for _, peer in node.ring.table if peer != node.id][:2]
    for parent in (old, new, old):
        trees.receivers()[TreeGraft](parent, TreeGraft((1,), (node.ring.here,), node.ring.own, 1))
    net.run(16.5)
    net.listen()
    trees.beat()
    assert [to for _, _, to, it in net.log if isinstance(it, TreeLeft)] == [new]


def test_whoever_has_no_fingers_waits_before_it_asks() -> None:
    net, nodes = ring_of(20)
    net.run(15.0)
    node = nodes[min(nodes)]
    node.ring.set_fingers([])
    topic = max(nodes)  # Somebody else's.
    trees = TopicTrees(
        node.world, node.ring, node.ring, {topic}, lambda _topics: {}, 1.0, TreeParameters(patience=3.0)
    )

    def asks() -> bool:
        net.listen()
        trees.beat()
        return any(isinstance(it, TreeJoin) for _, _, _, it in net.log)

    assert not asks()
    net.run(17.0)
    assert not asks()
    net.run(18.5)
    assert asks()
