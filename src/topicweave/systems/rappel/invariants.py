"""What must hold of Rappel's nodes, always and once everything is healed: for campaigns and tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from topicweave.model.ids import NodeId, TopicId
from topicweave.port import Node
from topicweave.systems.rappel.node import RappelNode
from topicweave.systems.rappel.rules import ROOT, rank
from topicweave.systems.rappel.tree import Tree


def always(nodes: Mapping[NodeId, Node]) -> Iterator[str]:
    """Sets within their bounds; every parent nearer to the publisher than each of its children, as far as it
    knows them.
    """
    for node in nodes.values():
        assert isinstance(node, RappelNode)
        parameters, friendship = node.parameters, node.friendship
        for what, size, most in (
            ("friends", len(friendship.friends), parameters.alpha),
            ("fans", len(friendship.fans), parameters.most_fans),
            ("candidates", len(friendship.candidates), parameters.most_candidates),
        ):
            if size > most:
                yield f"{node.id:x} has {size} {what}, more than {most}"
        for tree in node.trees.trees.values():
            if tree.publisher is None and tree.children:
                yield f"{node.id:x} has children for a feed whose publisher it does not know"
            if tree.publisher is not None and tree.rank is not ROOT:
                right = rank(node.place.coordinate, tree.publisher, node.id)
                if tree.rank != right:
                    yield f"{node.id:x} has a wrong idea of its distance to a publisher"
            for child, known in tree.children.items():
                if known.rank <= tree.rank:
                    yield f"{node.id:x} has a child nearer to the publisher than itself: {child:x}"


def at_rest(nodes: Mapping[NodeId, Node]) -> Iterator[str]:
    """Each feed's subscribers form one tree, with true distances falling towards its root, and no update that
    an ancestor keeps is missing.
    """
    trees: dict[TopicId, dict[NodeId, Tree]] = {}
    for node in nodes.values():
        assert isinstance(node, RappelNode)
        if set(node.subscriptions) != set(node.trees.trees):
            yield f"{node.id:x} wants {len(node.subscriptions)} feeds and is in {len(node.trees.trees)} trees"
        for feed, tree in node.trees.trees.items():
            trees.setdefault(feed, {})[node.id] = tree
    for feed, members in trees.items():
        roots = [member for member, tree in members.items() if tree.is_root]
        if len(roots) != 1:
            yield f"feed {feed:x} has {len(roots)} roots among {len(members)} subscribers"
            continue
        moving = [member for member, tree in members.items() if _moving(nodes[member], tree)]
        yield from _spans(feed, members, [roots[0], *moving])
        yield from _distances(feed, members, nodes, roots[0])
        yield from _nothing_lost(feed, members, nodes)


def _moving(node: Node, tree: Tree) -> bool:
    """On its way to another parent: periodic rejoins go on for ever, and evict others for the length of a few
    messages.
    """
    assert isinstance(node, RappelNode)
    return tree.search is not None and node.world.now - tree.search.since < node.parameters.join_timeout


def _spans(feed: TopicId, members: Mapping[NodeId, Tree], tops: list[NodeId]) -> Iterator[str]:
    reached, layer = set(tops), tops
    while layer:
        layer = [
            child
            for member in layer
            for child in members[member].children
            if child in members and members[child].parent == member and child not in reached
        ]
        reached.update(layer)
    if len(reached) < len(members):
        yield f"feed {feed:x}: the tree reaches {len(reached)} of {len(members)} subscribers"


def _distances(
    feed: TopicId, members: Mapping[NodeId, Tree], nodes: Mapping[NodeId, Node], root: NodeId
) -> Iterator[str]:
    leader = nodes[root]
    assert isinstance(leader, RappelNode)
    publisher = leader.place.coordinate
    for member, tree in members.items():
        parent = nodes.get(tree.parent) if tree.parent is not None else None
        if isinstance(parent, RappelNode) and parent.id != root:
            node = nodes[member]
            assert isinstance(node, RappelNode)
            above = rank(parent.place.coordinate, publisher, parent.id)
            if above >= rank(node.place.coordinate, publisher, member):
                yield f"feed {feed:x}: {member:x} is nearer to the publisher than its parent"


def _nothing_lost(
    feed: TopicId, members: Mapping[NodeId, Tree], nodes: Mapping[NodeId, Node]
) -> Iterator[str]:
    for member, tree in members.items():
        node, parent = nodes[member], nodes.get(tree.parent) if tree.parent is not None else None
        assert isinstance(node, RappelNode)
        if isinstance(parent, RappelNode):  # and so on upwards: nobody misses what its parent has
            lost = [update for update in parent.updates.cached(feed) if not node.updates.has(update)]
            if lost:
                yield f"feed {feed:x}: {member:x} lacks {len(lost)} updates that its parent keeps"
