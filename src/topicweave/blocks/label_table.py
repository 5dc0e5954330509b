"""Labels of topics, and how neighbours tell them to each other in few bytes.

A label is a name (the lowest member of a part of a topic) and when that member made it; see `topic_beacons`
for what they are for. A node may want thousands of topics, and each of its heartbeats carries a label of each
that the neighbour wants, too. So a table does not name the topics: both ends know which ones they share, and
put them in ascending order. A digest of them tells whether they mean the same ones; if not, because one has
not heard yet what the other wants now, the table is passed over, and the next one will do.

A label ends in two ways. It gets too old; or it *stalls*: nobody brought newer news of its leader for so long
that several must have come. The first allows for long ways, since age grows on each link. The second does not
depend on the way, so it is quicker: a node that is cut off from its leader knows it after a few heartbeats. A
node takes a stalled label again only with newer news. Otherwise neighbours would keep it alive among themselves.

Two ways of keeping them do the same: entry by entry, for the tens of topics that most nodes want, and in
arrays, for thousands.
"""

from __future__ import annotations

import hashlib
import math
import struct
import zlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np

from topicweave.blocks.other_ways import LastNews
from topicweave.model.ids import Interest, NodeId, TopicId

FEW = 64
"""Up to so many topics, going through them is faster than arrays are."""
STEPS = 240
"""Ages are told in so many steps of the greatest age, rounded up: a label may look older than it is, never younger."""
PACKED_FROM = 256
"""Bytes from which labels are packed (zlib): most topics of a pair have one of a few labels."""
MOST_SHARED = (1 << 16) - 1
"""Of more topics that two neighbours share, the rest has no labels: leaders have numbers of two bytes."""
KNOWN_PAIRS = 512

Point = Annotated[int, msgspec.Meta(ge=0)]


class LabelTable(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The labels of the topics that two neighbours share, in the order of the topics."""

    shared: Point
    """A digest of those topics."""
    leaders: tuple[Point, ...]
    labels: bytes
    """Which of the leaders (2 bytes per topic, little-endian), then the steps of age (1 byte per topic);
    packed, if so long that it pays.
    """


class Lifetime(NamedTuple):
    """Of labels, in seconds."""

    max_age: float
    stall: float = math.inf
    """Without newer news for so long, a label has stalled."""
    gain: float = 0.0
    """By how much news must be newer to count as such: one emission looks a little newer over a shorter way."""


class StoredLabel(msgspec.Struct, frozen=True, gc=False):
    topic: TopicId
    leader: NodeId
    made: float
    since: float
    """When the news was made that came at `renewed`, the last that counted as newer."""
    renewed: float


class _Shared(NamedTuple):
    """The topics that a neighbour wants, too: where they are found, how many, and their digest."""

    places: Any
    size: int
    digest: int
    numbers: struct.Struct
    """Two bytes for each of them."""


class Labels(ABC):
    """The labels of one node's topics. Where it knows of nobody lower, it leads itself."""

    def __init__(self, own: NodeId, lifetime: Lifetime, wanted: Interest) -> None:
        self.wanted = wanted
        self.topics = sorted(wanted)
        self._own = own
        self._max_age, self._stall, self._gain = lifetime
        self._step = self._max_age / STEPS
        # By a neighbour's interest. Its hash is kept by the set itself, so asking again costs nothing.
        self._pairs: dict[Interest, _Shared] = {}

    def tell(self, theirs: Interest, now: float) -> LabelTable:
        """What a neighbour that wants this should know."""
        pair = self._pair(theirs)
        leaders, labels = self._told(pair, now)
        return LabelTable(
            pair.digest, leaders, labels if len(labels) < PACKED_FROM else zlib.compress(labels, 1)
        )

    def hear(
        self,
        theirs: Interest,
        table: LabelTable,
        per_link: float,
        now: float,
        closed: Collection[TopicId] | None = None,
    ) -> Collection[TopicId]:
        """What a neighbour that wants this knows; the way here adds `per_link` to the age. Whatever makes no
        sense is passed over.

        `closed` are topics whose known leader the node does not want to hear of from this neighbour. If they are
        given, those topics are returned on which the neighbour's news of that leader is nearer to it than the node's.
        """
        pair = self._pair(theirs)
        if table.shared == pair.digest and 0 < len(table.leaders) <= pair.size:
            labels = _unpacked(table.labels, 3 * pair.size)
            if labels is not None:
                return self._heard(pair, table.leaders, labels, per_link, now, closed)
        return ()

    def _pair(self, theirs: Interest) -> _Shared:
        pair = self._pairs.get(theirs)
        if pair is None:
            shared = sorted(self.wanted & theirs)[:MOST_SHARED]
            digest = hashlib.blake2b(struct.pack(f">{len(shared)}Q", *shared), digest_size=8).digest()
            if len(self._pairs) >= KNOWN_PAIRS:
                self._pairs.clear()
            numbers = struct.Struct(f"<{len(shared)}H")
            pair = _Shared(self._places(shared), len(shared), int.from_bytes(digest, "big"), numbers)
            self._pairs[theirs] = pair
        return pair

    @abstractmethod
    def label(self, topic: TopicId, now: float) -> tuple[NodeId, float]:
        """The leader, and how old this news of it is."""

    @abstractmethod
    def all(self, now: float) -> dict[TopicId, tuple[NodeId, float]]:
        """Those of all topics, in their order."""

    @abstractmethod
    def last_news(self, now: float) -> dict[TopicId, LastNews]:
        """Of all topics."""

    @abstractmethod
    def others(self) -> Iterable[StoredLabel]:
        """The labels that others made."""

    @abstractmethod
    def keep(self, labels: Iterable[StoredLabel]) -> None:
        """Take over those of an earlier life that are of topics still wanted."""

    @abstractmethod
    def leaders(self) -> set[NodeId]:
        """All but this node."""

    @abstractmethod
    def expire(self, now: float) -> None:
        """Forget what is too old or has stalled."""

    @abstractmethod
    def _places(self, shared: list[TopicId]) -> Any: ...

    @abstractmethod
    def _told(self, pair: _Shared, now: float) -> tuple[tuple[NodeId, ...], bytes]: ...

    @abstractmethod
    def _heard(
        self,
        pair: _Shared,
        leaders: tuple[NodeId, ...],
        labels: bytes,
        per_link: float,
        now: float,
        closed: Collection[TopicId] | None,
    ) -> Collection[TopicId]: ...


class FewLabels(Labels):
    """Entry by entry."""

    def __init__(self, own: NodeId, lifetime: Lifetime, wanted: Interest) -> None:
        super().__init__(own, lifetime, wanted)
        # Without an entry the node itself leads.
        self._labels: dict[TopicId, StoredLabel] = {}
        self._stalled: dict[TopicId, StoredLabel] = {}
        # What is told of each topic at a moment: a heartbeat tells it to many neighbours.
        self._telling: dict[TopicId, tuple[NodeId, int]] = {}
        self._told_at = math.nan

    def _valid(self, label: StoredLabel, now: float) -> bool:
        return now - self._max_age <= label.made <= now and label.renewed >= now - self._stall

    def label(self, topic: TopicId, now: float) -> tuple[NodeId, float]:
        label = self._labels.get(topic)
        return (
            (label.leader, now - label.made)
            if label is not None and self._valid(label, now)
            else (self._own, 0.0)
        )

    def all(self, now: float) -> dict[TopicId, tuple[NodeId, float]]:
        return {topic: self.label(topic, now) for topic in self.topics}

    def last_news(self, now: float) -> dict[TopicId, LastNews]:
        news = dict.fromkeys(self.topics, LastNews(self._own, now))
        for topic, label in self._labels.items():
            if self._valid(label, now):
                news[topic] = LastNews(label.leader, label.renewed)
        return news

    def others(self) -> Iterable[StoredLabel]:
        return list(self._labels.values())

    def keep(self, labels: Iterable[StoredLabel]) -> None:
        self._labels = {label.topic: label for label in labels if label.topic in self.wanted}
        self._told_at = math.nan

    def leaders(self) -> set[NodeId]:
        return {label.leader for label in self._labels.values()}

    def expire(self, now: float) -> None:
        for label in [label for label in self._labels.values() if not self._valid(label, now)]:
            self._forget(label)
        oldest = now - self._max_age
        for label in [label for label in self._stalled.values() if label.made < oldest]:
            del self._stalled[label.topic]

    def _forget(self, label: StoredLabel) -> None:
        del self._labels[label.topic]
        self._stalled[label.topic] = label
        self._told_at = math.nan

    def _places(self, shared: list[TopicId]) -> list[TopicId]:
        return shared

    def _told(self, pair: _Shared, now: float) -> tuple[tuple[NodeId, ...], bytes]:
        if now != self._told_at:
            self._telling, self._told_at = self._tellings(now), now
        telling = self._telling
        numbers: dict[NodeId, int] = {}
        which, ages = [], []
        for topic in pair.places:
            leader, age = telling[topic]
            which.append(numbers.setdefault(leader, len(numbers)))
            ages.append(age)
        return tuple(numbers), pair.numbers.pack(*which) + bytes(ages)

    def _tellings(self, now: float) -> dict[TopicId, tuple[NodeId, int]]:
        """The leader of each topic, and the steps of its label's age."""
        step, oldest, stalled = self._step, now - self._max_age, now - self._stall
        telling = dict.fromkeys(self.topics, (self._own, 0))
        for topic, label in self._labels.items():
            if label.made >= oldest and label.renewed >= stalled:
                telling[topic] = (label.leader, math.ceil((now - label.made) / step))
        return telling

    def _heard(
        self,
        pair: _Shared,
        leaders: tuple[NodeId, ...],
        labels: bytes,
        per_link: float,
        now: float,
        closed: Collection[TopicId] | None,
    ) -> Collection[TopicId]:
        which = pair.numbers.unpack_from(labels)
        if max(which) >= len(leaders):
            return ()
        self._told_at = math.nan
        own_labels, own, step, gain = self._labels, self._own, self._step, self._gain
        oldest, stalled_at, made_at = now - self._max_age, now - self._stall, now - per_link
        nearer: list[TopicId] = []
        for topic, number, steps in zip(pair.places, which, labels[2 * pair.size :], strict=True):
            leader = leaders[number]
            label = own_labels.get(topic)
            if label is not None and (label.made < oldest or label.renewed < stalled_at):
                self._forget(label)
                label = None
            news = made_at - steps * step
            if news < oldest:
                continue
            if leader < (own if label is None else label.leader):
                stalled = self._stalled.get(topic)
                if stalled is None or stalled.leader != leader or news > stalled.made + gain:
                    own_labels[topic] = StoredLabel(topic, leader, news, news, now)
            elif (
                label is not None
                and leader == label.leader
                and news > label.made
                and (closed is None or topic not in closed)
            ):
                since, renewed = (news, now) if news > label.since + gain else (label.since, label.renewed)
                own_labels[topic] = StoredLabel(topic, leader, news, since, renewed)
            if closed is not None:
                label = own_labels.get(topic)
                if label is not None and leader == label.leader and _is_nearer(news, label.made, per_link):
                    nearer.append(topic)
        return nearer


class ManyLabels(Labels):
    """In arrays, in the order of the topics."""

    def __init__(self, own: NodeId, lifetime: Lifetime, wanted: Interest) -> None:
        super().__init__(own, lifetime, wanted)
        count = len(self.topics)
        self._topics = np.array(self.topics, np.uint64)
        self._leaders = np.full(count, own, np.uint64)
        # Its own labels are always new.
        self._made, self._since, self._renewed = (np.full(count, np.inf) for _ in range(3))
        self._stalled, self._stalled_made = np.full(count, own, np.uint64), np.full(count, -np.inf)

    def label(self, topic: TopicId, now: float) -> tuple[NodeId, float]:
        if topic in self.wanted:
            place = self._topics.searchsorted(np.uint64(topic))
            age = now - float(self._made[place])
            if 0.0 <= age <= self._max_age and self._renewed[place] >= now - self._stall:
                return int(self._leaders[place]), age
        return self._own, 0.0

    def all(self, now: float) -> dict[TopicId, tuple[NodeId, float]]:
        self.expire(now)
        ages = np.maximum(now - self._made, 0.0)
        return dict(zip(self.topics, zip(self._leaders.tolist(), ages.tolist(), strict=True), strict=True))

    def last_news(self, now: float) -> dict[TopicId, LastNews]:
        self.expire(now)
        came = np.minimum(self._renewed, now)
        news = map(LastNews, self._leaders.tolist(), came.tolist())
        return dict(zip(self.topics, news, strict=True))

    def others(self) -> Iterable[StoredLabel]:
        places = np.flatnonzero(self._leaders != np.uint64(self._own))
        columns = (self._topics, self._leaders, self._made, self._since, self._renewed)
        return [
            StoredLabel(*entry)
            for entry in zip(*(column[places].tolist() for column in columns), strict=True)
        ]

    def keep(self, labels: Iterable[StoredLabel]) -> None:
        kept = [label for label in labels if label.topic in self.wanted]
        places = self._places([label.topic for label in kept])
        self._leaders[places] = np.array([label.leader for label in kept], np.uint64)
        self._made[places] = [label.made for label in kept]
        self._since[places] = [label.since for label in kept]
        self._renewed[places] = [label.renewed for label in kept]

    def leaders(self) -> set[NodeId]:
        return set(self._leaders[self._leaders != np.uint64(self._own)].tolist())

    def expire(self, now: float) -> None:
        self._forget(np.flatnonzero(self._ended(slice(None), now)))
        self._stalled_made[self._stalled_made < now - self._max_age] = -np.inf

    def _ended(self, places: Any, now: float) -> Any:
        return (self._made[places] < now - self._max_age) | (self._renewed[places] < now - self._stall)

    def _forget(self, places: Any) -> None:
        self._stalled[places] = self._leaders[places]
        self._stalled_made[places] = self._made[places]
        self._leaders[places] = self._own
        self._made[places] = self._since[places] = self._renewed[places] = np.inf

    def _places(self, shared: list[TopicId]) -> Any:
        return self._topics.searchsorted(np.array(shared, np.uint64))

    def _told(self, pair: _Shared, now: float) -> tuple[tuple[NodeId, ...], bytes]:
        places = pair.places
        ages = np.ceil((now - self._made[places]) / self._step)
        leaders = self._leaders[places]
        late = self._ended(places, now)
        if late.any():
            leaders[late] = self._own
            ages[late] = 0.0
        names, which = np.unique(leaders, return_inverse=True)
        steps = np.clip(ages, 0.0, STEPS).astype(np.uint8)
        return tuple(names.tolist()), which.astype("<u2").tobytes() + steps.tobytes()

    def _heard(
        self,
        pair: _Shared,
        leaders: tuple[NodeId, ...],
        labels: bytes,
        per_link: float,
        now: float,
        closed: Collection[TopicId] | None,
    ) -> Collection[TopicId]:
        places, count = pair.places, pair.size
        which = np.frombuffer(labels, "<u2", count)
        if which.max() >= len(leaders):
            return ()
        told = np.array(leaders, np.uint64)[which]
        news = (now - per_link) - np.frombuffer(labels, np.uint8, count, 2 * count) * self._step
        late = self._ended(places, now)
        if late.any():
            self._forget(places[late])
        current = self._leaders[places]
        fresh = news >= now - self._max_age
        known = (told == self._stalled[places]) & (news <= self._stalled_made[places] + self._gain)
        lower = fresh & (told < current) & ~known
        taken = places[lower]
        self._leaders[taken] = told[lower]
        newer = fresh & (told == current) & (news > self._made[places])
        if closed:
            newer &= ~np.isin(self._topics[places], np.array(list(closed), np.uint64))
        counts = lower | (newer & (news > self._since[places] + self._gain))
        better = lower | newer
        self._made[places[better]] = news[better]
        self._since[places[counts]] = news[counts]
        self._renewed[places[counts]] = now
        if closed is None:
            return ()
        same = fresh & (told == self._leaders[places])
        nearer: list[TopicId] = self._topics[
            places[same & _is_nearer(news, self._made[places], per_link)]
        ].tolist()
        return nearer


def _is_nearer(news: Any, made: Any, per_link: float) -> Any:
    """Whether the neighbour that told this news is nearer to the leader than the node whose own news was made then.
    On its way here the news aged by `per_link`, so a neighbour as far away as the node itself looks older by as much.
    Half of it allows for the rounding of ages and for the time that messages are under way.
    """
    return news + per_link / 2 > made


def labels_of(wanted: Interest, own: NodeId, lifetime: Lifetime, earlier: Labels | None = None) -> Labels:
    """The labels of these topics, as far as they are known from earlier."""
    labels: Labels = (FewLabels if len(wanted) <= FEW else ManyLabels)(own, lifetime, wanted)
    if earlier is not None:
        labels.keep(earlier.others())
    return labels


def _unpacked(labels: bytes, size: int) -> bytes | None:
    """Just so many bytes, or nothing: whatever arrives, no more than that is unpacked."""
    if size < PACKED_FROM:
        return labels if len(labels) == size else None
    unpacking = zlib.decompressobj()
    try:
        unpacked = unpacking.decompress(labels, size + 1)
    except zlib.error:
        return None
    return unpacked if unpacking.eof and len(unpacked) == size else None
