"""Trees over a ring: what a request that comes again and again costs."""

from __future__ import annotations

from tests.blocks.test_ring import ring_of
from topicweave.blocks.ring import Contact
from topicweave.blocks.topic_trees import TopicTrees, TreeParameters
from topicweave.blocks.tree_messages import TreeGraft


def test_a_request_is_handed_on_once_per_period() -> None:
    """Else copies that a network makes would multiply wherever tables disagree and a route is a circle."""
    net, nodes = ring_of(20)
    net.run(15.0)
    node = nodes[min(nodes)]
    trees = TopicTrees(node.world, node.ring, node.ring, {1}, lambda _topics: {}, 1.0, TreeParameters())
    last = node.ring.table[-1]
    graft = TreeGraft((1, 2), (node.ring.here, node.ring.here), Contact(7, last[0] + b"\x01", 1), 1)

    def handed_on() -> list[tuple[int, tuple[int, ...]]]:
        net.overheard = []
        trees.receivers()[TreeGraft](8, graft)
        return [(to, it.topics) for to, it in net.overheard if isinstance(it, TreeGraft)]

    assert [handed_on() for _ in range(3)] == [[(last[1], (1, 2))], [], []]
    trees.beat()
    assert handed_on() == [(last[1], (1, 2))]
