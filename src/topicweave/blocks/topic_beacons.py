"""Noticing that a topic has come apart.

A node covered by its own side of a past partition sees nothing wrong: every local rule is satisfied, and yet
the two sides never meet again. No paper's coverage rule heals that; this block does, for any overlay with links
per topic.

Rules kept
----------
1. Everybody may lead the topics it wants. Neighbours tell each other, per topic, the lowest leader they lately
   heard of, so in each connected part of a topic all come to know the part's lowest member: the part's label.
2. A label carries its age. Only the leader itself makes it new, and it is dropped when it gets too old, so a
   departed leader is forgotten (ages, not clocks, are compared: see `descriptors`). Nobody knows how long a
   message was under way, so every link adds a fixed time to the age. Otherwise a label that is passed round
   over many long links would hardly age at all.
3. If the interest view knows a lower subscriber than the own part's leader, and goes on to do so for `patience`
   seconds, the node takes itself for cut off from that subscriber, and asks for a link to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable

import msgspec

from topicweave.model.ids import NodeId, TopicId
from topicweave.port import Receivers, TimerKey, Timers, World

TIMER = "beacon"


class Beacon(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The lowest subscriber of a topic that the sender's part heard of, `age` seconds ago."""

    topic: TopicId
    leader: NodeId
    age: float


class BeaconParameters(msgspec.Struct, frozen=True):
    """Seconds. `max_age` must leave a label time to cross a part: `per_link` and half a heartbeat period per link."""

    period: float = 2.0
    """How often a node looks whether it is cut off."""
    max_age: float = 30.0
    per_link: float = 0.25
    """What a link adds to a label's age; should be longer than most messages are under way."""
    patience: float = 6.0
    """How long a lower subscriber must be missed, to the nearest check."""
    topics_per_check: int = 4


class TopicBeacons:
    """One node's beacons.

    The block has no messages: the system lets heartbeats carry what `tell` gives, and hands what they bring to
    `hear`. `lowest_known` gives the lowest subscriber of a topic in the interest view; `cut_off(peer)` is called
    when this node's part of some topic does not hold that peer.
    """

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        topics: Callable[[], Collection[TopicId]],
        lowest_known: Callable[[TopicId], NodeId | None],
        cut_off: Callable[[NodeId], None],
        parameters: BeaconParameters | None = None,
    ) -> None:
        self._world = world
        self._id = node_id
        self._topics = topics
        self._lowest_known = lowest_known
        self._cut_off = cut_off
        self._parameters = parameters or BeaconParameters()
        # topic -> (leader, when the leader made this label); without an entry the node itself leads.
        self._labels: dict[TopicId, tuple[NodeId, float]] = {}
        self._no_label = (node_id, math.inf)
        # topic -> (who is missing, since when)
        self._suspicions: dict[TopicId, tuple[NodeId, float]] = {}

    def start(self) -> None:
        self._suspicions.clear()
        self._world.set_timer((TIMER,), self._world.random.random() * self._parameters.period)

    def receivers(self) -> Receivers:
        return {}

    def timers(self) -> Timers:
        return {TIMER: self._tick}

    def leader(self, topic: TopicId) -> NodeId:
        """The lowest member of this node's part of a topic, as far as it knows."""
        leader, made = self._labels.get(topic, self._no_label)
        return leader if self._world.now - made <= self._parameters.max_age else self._id

    def known_peers(self) -> set[NodeId]:
        """Peers named in labels and suspicions."""
        return {leader for leader, _ in self._labels.values()} | {
            peer for peer, _ in self._suspicions.values()
        }

    def tell(self, shared: Iterable[TopicId]) -> tuple[Beacon, ...]:
        """What a neighbour that wants these topics, too, should know."""
        now, labels, no_label, own = self._world.now, self._labels, self._no_label, self._id
        max_age = self._parameters.max_age
        beacons = []
        for topic in shared:
            leader, made = labels.get(topic, no_label)
            if leader == own or now - made > max_age:
                beacons.append(Beacon(topic, own, 0.0))
            else:
                beacons.append(Beacon(topic, leader, now - made))
        return tuple(beacons)

    def hear(self, beacons: Iterable[Beacon]) -> None:
        """What a neighbour knows."""
        now, topics, labels = self._world.now, self._topics(), self._labels
        per_link, max_age = self._parameters.per_link, self._parameters.max_age
        for beacon in beacons:
            topic, leader, age = beacon.topic, beacon.leader, beacon.age + per_link
            if topic not in topics or not per_link <= age <= max_age:
                continue
            current, made = labels.get(topic, self._no_label)
            if now - made > max_age:
                current, made = self._no_label
            if leader < current or (leader == current and now - age > made):
                labels[topic] = (leader, now - age)

    def _tick(self, _key: TimerKey) -> None:
        self._world.set_timer((TIMER,), self._parameters.period)
        topics = self._topics()
        oldest = self._world.now - self._parameters.max_age
        for topic in [
            topic for topic, (_, made) in self._labels.items() if made < oldest or topic not in topics
        ]:
            del self._labels[topic]
        for topic in [topic for topic in self._suspicions if topic not in topics]:
            del self._suspicions[topic]
        self._check(sorted(topics))

    def _check(self, topics: list[TopicId]) -> None:
        """Look at a few topics at a time, and again at those under suspicion."""
        now = self._world.now
        some = min(len(topics), self._parameters.topics_per_check)
        for topic in {**dict.fromkeys(self._world.random.sample(topics, some)), **self._suspicions}:
            lowest = self._lowest_known(topic)
            if lowest is None or lowest >= self.leader(topic):
                self._suspicions.pop(topic, None)
                continue
            missing, since = self._suspicions.get(topic, (lowest, now))
            if missing != lowest:
                since = now
            self._suspicions[topic] = (lowest, since)
            # Ticks are a period apart, but for what rounding does to their times.
            if now - since > self._parameters.patience - self._parameters.period / 2:
                # Should the link not come about or not help, the next patience begins now.
                self._suspicions[topic] = (lowest, now)
                self._cut_off(lowest)
