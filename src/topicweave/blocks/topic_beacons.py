"""Noticing that a topic has come apart.

A node covered by its own side of a past partition sees nothing wrong: every local rule is satisfied, and yet
the two sides never meet again. No paper's coverage rule heals that; this block does, for any overlay with links
per topic.

Rules kept
----------
1. Everybody may lead the topics it wants. Neighbours tell each other, per topic, the lowest leader they lately
   heard of, so in each connected part of a topic all come to know the part's lowest member: the part's label.
   They do so in tables that do not name the topics (`label_table`): thousands of topics cost a heartbeat little.
2. A label carries its age. Only the leader itself makes it new, and it is dropped when it gets too old, so a
   departed leader is forgotten (ages, not clocks, are compared: see `descriptors`). Nobody knows how long a
   message was under way, so every link adds a fixed time to the age. Otherwise a label that is passed round
   over many long links would hardly age at all. A label of which `missed` tellings in a row brought no newer news is
   dropped as well: the way to its leader is cut, however short or long it was.
3. Who watches links that introductions made learns by labels when there is another way (`other_ways`).
4. If the interest view knows a lower subscriber than the own part's leader, and goes on to do so for `patience`
   seconds, the node takes itself for cut off from that subscriber, and asks for a link to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import msgspec

from topicweave.blocks.label_table import Labels, LabelTable, Lifetime, labels_of
from topicweave.blocks.other_ways import OtherWays
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.port import Receivers, TimerKey, Timers, World

TIMER = "beacon"


class BeaconParameters(msgspec.Struct, frozen=True):
    """Seconds. `max_age` must leave a label time to cross a part: `per_link` and half a heartbeat period per link."""

    period: float = 2.0
    """How often a node looks whether it is cut off."""
    max_age: float = 30.0
    per_link: float = 0.25
    """What a link adds to a label's age; should be longer than most messages are under way."""
    missed: int = 4
    """Tellings without newer news of a leader after which a node takes itself for cut off from it; 0: only
    its age counts.
    """
    patience: float = 6.0
    """How long a lower subscriber must be missed, to the nearest check."""
    topics_per_check: int = 4


class TopicBeacons:
    """One node's beacons.

    The block has no messages: the system lets heartbeats carry what `tell` gives, and hands what they bring
    to `hear`. `lowest_known` gives the lowest subscriber of a topic in the interest view; `cut_off(peer)` is
    called when this node's part of some topic does not hold that peer. Neighbours tell each other every
    `told_every` seconds; 0 if that is not known.
    """

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        topics: Callable[[], Interest],
        lowest_known: Callable[[TopicId], NodeId | None],
        cut_off: Callable[[NodeId], None],
        parameters: BeaconParameters | None = None,
        told_every: float = 0.0,
    ) -> None:
        self._world = world
        self._id = node_id
        self._topics = topics
        self._lowest_known = lowest_known
        self._cut_off = cut_off
        self._parameters = parameters or BeaconParameters()
        stall = self._parameters.missed * told_every
        max_age = self._parameters.max_age
        self._lifetime = Lifetime(max_age, stall, told_every / 2) if stall else Lifetime(max_age)
        self._labels = labels_of(frozenset(), node_id, self._lifetime)
        self.ways = OtherWays(node_id, self.lifetime)
        # topic -> (who is missing, since when)
        self._suspicions: dict[TopicId, tuple[NodeId, float]] = {}

    def start(self) -> None:
        self._suspicions.clear()
        self._world.set_timer((TIMER,), self._world.random.random() * self._parameters.period)

    def receivers(self) -> Receivers:
        return {}

    def timers(self) -> Timers:
        return {TIMER: self._tick}

    @property
    def lifetime(self) -> float:
        """Seconds after which the label of a leader that is gone, or cut off, is dropped as a rule."""
        return min(self._lifetime.max_age, self._lifetime.stall)

    def leader(self, topic: TopicId) -> NodeId:
        """The lowest member of this node's part of a topic, as far as it knows."""
        return self.label(topic)[0]

    def leading(self) -> list[TopicId]:
        """The topics whose part this node leads, as far as it knows."""
        own = self._id
        return [topic for topic, (leader, _) in self.labels().items() if leader == own]

    def label(self, topic: TopicId) -> tuple[NodeId, float]:
        """The same, and how old that news is."""
        return self._current().label(topic, self._world.now)

    def labels(self) -> dict[TopicId, tuple[NodeId, float]]:
        """Those of all topics, in ascending order."""
        return self._current().all(self._world.now)

    @property
    def topics(self) -> list[TopicId]:
        """In ascending order."""
        return self._current().topics

    def known_peers(self) -> set[NodeId]:
        """Peers named in labels and suspicions."""
        labels = self._current()
        labels.expire(self._world.now)
        return labels.leaders() | {peer for peer, _ in self._suspicions.values()}

    def tell(self, interest: Interest) -> LabelTable:
        """What a neighbour of this interest should know."""
        return self._current().tell(interest, self._world.now)

    def hear(
        self,
        interest: Interest,
        table: LabelTable,
        peer: NodeId | None = None,
        beside: Collection[TopicId] = (),
    ) -> None:
        """What a neighbour of this interest knows.

        peer    who it is, where links are watched
        beside  topics that go on to be in one piece over other neighbours, not over this one
        """
        labels, per_link, now, ways = self._current(), self._parameters.per_link, self._world.now, self.ways
        if peer is None or not ways:
            labels.hear(interest, table, per_link, now)
            return
        closed = {*ways.tried(peer), *(topic for topic in beside if ways.tries(topic))}
        ways.told(peer, labels.hear(interest, table, per_link, now, closed), now, beside)

    def watch(self, links: Mapping[NodeId, Collection[TopicId]]) -> None:
        """These links were made by introductions, for these topics. To be called at each telling."""
        if links or self.ways:
            labels, now = self._current(), self._world.now
            self.ways.review(links, labels.last_news(now), now)

    def _current(self) -> Labels:
        """The labels of the topics that the node wants now."""
        topics = self._topics()
        if topics is not self._labels.wanted:
            self._labels = labels_of(topics, self._id, self._lifetime, self._labels)
        return self._labels

    def _tick(self, _key: TimerKey) -> None:
        self._world.set_timer((TIMER,), self._parameters.period)
        labels = self._current()
        labels.expire(self._world.now)
        for topic in [topic for topic in self._suspicions if topic not in labels.wanted]:
            del self._suspicions[topic]
        self._check(labels.topics)

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
