"""Single nodes that come back: how soon their friends cover what they want (§5.2, §5.3)."""

from __future__ import annotations

from topicweave.model.ids import NodeId, TopicId
from topicweave.papers.rappel.workloads import LANDMARKS
from topicweave.papers.rappel.world import FeedWorld
from topicweave.runs.run import Result

FOLLOW_EVERY = 5.0
"""Seconds between two looks."""


class Followed:
    """Those who are to come back, looked at for the first time just before they go."""

    def __init__(self, world: FeedWorld) -> None:
        self._world = world
        nodes = world.nodes()
        self._before = {index: self._covered(index) for index in sorted(world.returning) if index in nodes}
        self._friends = {index: set(nodes[index].friendship.friends) for index in self._before}
        self._looks: dict[int, list[tuple[float, int, int]]] = {index: [] for index in self._before}
        self._living: dict[int, int] = {}

    def look(self) -> None:
        world = self._world
        nodes = world.nodes()
        if not self._living:
            stayed = {node.id for index, node in nodes.items() if index not in world.returning}
            self._living = {index: len(friends & stayed) for index, friends in self._friends.items()}
        for index, looks in self._looks.items():
            if index in nodes:
                trees = sum(tree.joined for tree in nodes[index].trees.trees.values())
                looks.append((world.simulation.now, self._covered(index), trees))

    def told(self) -> list[Result]:
        """Of each: how many feeds it wants, how many its friends covered before, how many of these friends
        lived on, and the looks (second, feeds covered, trees joined).
        """
        wanted = self._world.workload.interests
        return [
            {
                "feeds": len(wanted(index)),
                "before": before,
                "living": self._living.get(index, 0),
                "looks": self._looks[index],
            }
            for index, before in self._before.items()
        ]

    def _covered(self, index: int) -> int:
        node = self._world.nodes()[index]
        covered: set[TopicId] = set()
        for friend in node.friendship.friends:
            covered |= node.subscriptions & self._wants(friend)
        return len(covered)

    def _wants(self, friend: NodeId) -> frozenset[TopicId]:
        world = self._world
        index = world.index[friend]
        if LANDMARKS <= index < world.first:
            return frozenset({world.workload.topic_ids[index - LANDMARKS]})
        host = world.simulation.hosts[index].node
        return frozenset(host.subscriptions) if host is not None else frozenset()
