"""Trees that are there before the first event.

A system whose nodes can tell one neighbour per topic that leads to all others, their *parent*, prepares the
topic: links to the others of that choice become lazy at both ends, the one to the parent eager. See `tree`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from topicweave.blocks.broadcast_tree.messages import Prepare
from topicweave.blocks.broadcast_tree.parameters import MOST_LAZY, MOST_PREPARED
from topicweave.blocks.broadcast_tree.ways import Ways
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import World


class PreparedTrees:
    """What one node prepares, and what its neighbours tell of theirs."""

    def __init__(self, world: World, ways: Ways) -> None:
        self._world = world
        self._ways = ways

    def prepare(self, choices: Mapping[TopicId, Sequence[NodeId]]) -> None:
        """choices: topic -> linked peers of which one is enough, the parent first"""
        ways, left = self._ways, MOST_LAZY - self._ways.count_lazy()
        lazy: dict[NodeId, list[TopicId]] = {}
        eager: dict[NodeId, list[TopicId]] = {}
        for topic, (parent, *others) in choices.items():
            ways.parents[topic] = parent
            if parent in ways.lazy.get(topic, ()):
                ways.make_eager(topic, parent)
                eager.setdefault(parent, []).append(topic)
            for peer in others:
                if (
                    left > 0
                    and peer not in ways.lazy.get(topic, ())
                    and self._world.understands(peer, Prepare)
                ):
                    ways.cut(topic, peer, self._world.now)
                    lazy.setdefault(peer, []).append(topic)
                    left -= 1
        self._tell(lazy, eager)

    def lost(self, peer: NodeId, topics: Sequence[TopicId]) -> None:
        """The parent of these topics is gone: the others that this node turned down are to push again."""
        eager: dict[NodeId, list[TopicId]] = {}
        for topic in topics:
            self._ways.parents[topic] = None
            for other in self._ways.cut_here(topic):
                if other != peer:
                    self._ways.make_eager(topic, other)
                    eager.setdefault(other, []).append(topic)
        self._tell({}, eager)

    def _tell(
        self, lazy: Mapping[NodeId, Sequence[TopicId]], eager: Mapping[NodeId, Sequence[TopicId]]
    ) -> None:
        for peer in {**lazy, **eager}:
            first, second = lazy.get(peer, ()), eager.get(peer, ())
            for start in range(0, max(len(first), len(second)), MOST_PREPARED):
                part = slice(start, start + MOST_PREPARED)
                self._world.send(peer, Prepare(tuple(first[part]), tuple(second[part])))
