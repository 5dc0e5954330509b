"""Finding neighbours by the topic directory, in place of what OMen's coordinators do for joins and for topics in parts.

The paper leaves open how a newcomer's coordinator knows other subscribers; a view that holds few of them may
know none. With a directory a node knows some subscribers of each of its topics itself, and needs nobody's
help:

- A topic without a neighbour gets one: of the peers known, the one that wants most of the topics without a neighbour.
- A node that goes on to know of a subscriber below the leader of its part of a topic is cut off from that
  one, and links to it. So it does when a topic's home introduces somebody from another part.

Departures are the coordinators' affair in any case.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from topicweave.blocks.topic_beacons import TopicBeacons
from topicweave.blocks.views import InterestView
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.port import World
from topicweave.systems.omen.links import OverlayLinks
from topicweave.systems.omen.parameters import OMenParameters

TOPICS_PER_LOOK = 8


class Finding:
    """`interest` gives what the node wants."""

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        parameters: OMenParameters,
        view: InterestView,
        links: OverlayLinks,
        beacons: TopicBeacons,
        interest: Callable[[], Interest],
    ) -> None:
        self._world = world
        self._id = node_id
        self._parameters = parameters
        self._view = view
        self._links = links
        self._beacons = beacons
        self._interest = interest
        self._next = 0.0
        self._parted: dict[TopicId, float] = {}

    def introduced(self, topic: TopicId, peer: NodeId, label: NodeId | None) -> None:
        """A topic's home knows of another part of it."""
        if topic in self._interest() and self._beacons.leader(topic) != label:
            self._links.ask(peer)

    def look(self) -> None:
        """Asked twice a second."""
        self._look_at_parts()
        now = self._world.now
        lonely = self._links.lonely()
        if not lonely or now < self._next:
            return
        counts = self._view.overlap_counts(sorted(lonely))
        counts[self._view.slots([self._id, *self._links.known_peers()])] = 0
        if counts.any():
            best = np.flatnonzero(counts == counts.max())
            self._links.ask(self._view.peer_at(best[self._world.random.randrange(len(best))]))
            # It may answer only after a while; others are not asked for the same meanwhile.
            self._next = now + self._parameters.answer_time

    def _look_at_parts(self) -> None:
        now, rng = self._world.now, self._world.random
        topics = self._beacons.topics
        for topic in [topic for topic in self._parted if topic not in self._interest()]:
            del self._parted[topic]
        some = rng.sample(topics, min(TOPICS_PER_LOOK, len(topics)))
        for topic in {**dict.fromkeys(some), **self._parted}:
            lower = self._lower(topic)
            if not lower:
                self._parted.pop(topic, None)
            elif now - self._parted.setdefault(topic, now) >= self._parameters.beacons.patience:
                self._parted[topic] = now
                self._links.ask(rng.choice(lower))

    def _lower(self, topic: TopicId) -> list[NodeId]:
        """Subscribers below the leader of this node's part: all of them are in others."""
        leader, lowest = self._beacons.leader(topic), self._view.lowest(topic)
        if lowest is None or lowest >= leader:
            return []
        return [peer for peer in self._view.subscribers(topic).tolist() if peer < leader]
