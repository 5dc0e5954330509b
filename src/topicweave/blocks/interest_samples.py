"""Interest-aware membership: for each topic a small random sample of its subscribers and their interests (Magnet §3.4).

Rules kept
----------
1. The subscribers of a topic, and the nodes on their control-ring routes to its home, are the topic's
   spanning tree. Every round each of them combines what its children reported with its own interest and
   reports it to the next node on the way. The home sends the sample that results back down.
2. A report carries how many subscribers it stands for. Samples are combined by these counts; otherwise the
   few of a thin branch would be taken as often as the many of a thick one. In between, a branch that has
   grown much since it last reported does so at the next beat: newcomers choose their places by who is there.
3. A node that reports for the first time is answered at once with the view that there is; without one, the
   question goes on up. A newcomer needs a view before it can choose its place. A topic's first view is passed
   down at once, too. A newer view waits for the next beat: then the views of many topics, from as many homes, go
   together, and name people once.
4. A sample is drawn anew every round as long as its branch has grown within the last few; then it stays as it
   is until something it is made of changes.
5. Reports and views hold only what has changed since the peer was told last. They are numbered, and say which
   number they build on. A peer that lacks that one gets everything.
6. All of it is soft state: a child that does not report is forgotten after a few rounds, and a view when its
   sender is no longer the next on the way.
7. People occur in many topics' samples, so a message names each once, and topics refer to them by number.
"""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from topicweave.blocks.growing_ids import is_position
from topicweave.blocks.harmonic_links import as_point
from topicweave.blocks.ring.messages import Contact
from topicweave.blocks.ring.ring import Ring
from topicweave.model.ids import RING_SIZE, Interest, NodeId, TopicId
from topicweave.port import Message, Receivers, World

_MUCH = 0.1
"""By which share a topic must grow at once to be reported before the next round."""
MOST_TOPICS = 16_384
MOST_PEOPLE = 65_536
VIEWS_TAKE = 2.0
"""Seconds that views may be under way before a report that does not know them means that they are lost."""


class Interested(msgspec.Struct, frozen=True, array_like=True):
    """A subscriber: where it is, and all it wants."""

    contact: Contact
    interest: Interest


class SampleReport(Message, frozen=True, array_like=True, tag="sample-report"):
    """Up the tree: per topic how many subscribers there are, and some of them, by their number among the people.

    Only what differs from report `since`; after this one the receiver is at `number`. Since 0: this is all.
    """

    topics: tuple[TopicId, ...]
    counts: tuple[int, ...]
    samples: tuple[tuple[int, ...], ...]
    people: tuple[Interested, ...]
    gone: tuple[TopicId, ...] = ()
    """Topics that the sender reports no more."""
    number: int = 0
    since: int = 0
    views: int = 0
    """The number of the last views that the sender has got from the receiver."""

    def introduces(self) -> Iterable[NodeId]:
        return [person.contact.id for person in self.people]


class SampleView(Message, frozen=True, array_like=True, tag="sample-view"):
    """Down the tree: the sample of each topic that has another one than in views `since`."""

    topics: tuple[TopicId, ...]
    samples: tuple[tuple[int, ...], ...]
    people: tuple[Interested, ...]
    number: int = 0
    since: int = 0

    def introduces(self) -> Iterable[NodeId]:
        return [person.contact.id for person in self.people]


class SampleTell(Message, frozen=True, array_like=True, tag="sample-tell"):
    """I lack the report that yours builds on: report everything."""


class SampleParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sizes, and times in seconds."""

    size: int = 10
    """How many interests a topic's sample holds at most (k)."""
    round_period: float = 4.0
    keep_rounds: float = 3.5
    """For how many rounds what was said counts."""
    fresh_rounds: float = 6.0
    """For how many rounds after a branch has grown its samples are drawn anew."""

    def __post_init__(self) -> None:
        if not (self.size >= 0 and self.round_period > 0 and self.keep_rounds > 1 and self.fresh_rounds >= 0):
            raise ValueError(
                "need size and fresh_rounds of 0 or more, round_period above 0 and keep_rounds above 1"
            )


Sample = tuple[Interested, ...]


def combine(groups: Sequence[tuple[int, Sequence[Interested]]], size: int, draw: random.Random) -> Sample:
    """A uniform sample of `size` out of several groups, each given by its number of members and a uniform
    sample of them.

    A member is drawn by drawing a group by the number of its members not yet drawn, then one of its sample.
    Since a group's sample is uniform and has `size` members (or all), that is a uniform draw from the whole
    without replacement.
    """
    if sum(len(sample) for _, sample in groups) <= size and all(n <= len(s) for n, s in groups):
        return tuple({person.contact.id: person for _, sample in groups for person in sample}.values())
    left = [max(count, len(sample)) if sample else 0 for count, sample in groups]
    pools = [list(sample) for _, sample in groups]
    chosen: dict[NodeId, Interested] = {}
    total = sum(left)
    while total > 0 and len(chosen) < size:
        number, group = draw.random() * total, 0
        while group < len(left) - 1 and number >= left[group]:
            number -= left[group]
            group += 1
        pool = pools[group]
        place = int(draw.random() * len(pool))
        pool[place], pool[-1] = pool[-1], pool[place]
        person = pool.pop()
        chosen[person.contact.id] = person
        total -= 1
        left[group] -= 1
        if not pool:
            total -= left[group]
            left[group] = 0
    return tuple(chosen.values())


class _Report(NamedTuple):
    members: int
    sample: Sample


class _Child:
    """Somebody who reports to this node."""

    __slots__ = ("number", "told", "told_at", "topics", "until", "views")

    def __init__(self) -> None:
        self.until = 0.0
        self.number = 0
        """Of its last report."""
        self.topics: dict[TopicId, None] = {}
        self.told: dict[TopicId, Sample] = {}
        self.told_at = -math.inf
        self.views = 0
        """The number of the last views that it was told."""


class _Hop:
    """Somebody this node reports to."""

    __slots__ = ("number", "reported", "views")

    def __init__(self, number: int, views: int) -> None:
        self.number = number
        self.reported: dict[TopicId, _Report] = {}
        self.views = views


class _View(NamedTuple):
    until: float
    sample: Sample
    source: NodeId


class _Drawn(NamedTuple):
    """A sample, and all that it was drawn from."""

    sources: tuple[_Report | Interested | None, ...]
    report: _Report


class InterestSamples:
    """One node's part. The node calls `beat` every so often; `own()` is None while the node has no place yet."""

    def __init__(
        self,
        world: World,
        control: Ring,
        wanted: Collection[TopicId],
        own: Callable[[], Interested | None],
        parameters: SampleParameters,
        max_topics: int,
    ) -> None:
        self._world = world
        self._control = control
        self._wanted = wanted
        self._own = own
        self._parameters = parameters
        self._keep = parameters.keep_rounds * parameters.round_period
        self._fresh = parameters.fresh_rounds * parameters.round_period
        self._max_topics = max_topics
        self._reports: dict[TopicId, dict[NodeId, _Report]] = {}
        self._children: dict[NodeId, _Child] = {}
        self._hops: dict[NodeId, _Hop] = {}
        self._views: dict[TopicId, _View] = {}
        self._drawn: dict[TopicId, _Drawn] = {}
        # How many subscribers a topic's branch ever had, and until when its samples are drawn anew for that.
        self._grew: dict[TopicId, tuple[int, float]] = {}
        self._reported: set[TopicId] = set()
        """Topics that this node reported or answered for already: nothing to hurry about."""
        # How many subscribers the last report (or view, at home) stood for.
        self._told: dict[TopicId, int] = {}
        self._grown: dict[TopicId, None] = {}
        self._newer: dict[TopicId, None] = {}  # views to be passed down
        self._round_at = world.now
        self._excluded: dict[NodeId, float] = {}
        self.version = 0
        """Grows whenever a view changes."""

    def receivers(self) -> Receivers:
        return {
            SampleReport: self._receive_report,
            SampleView: self._receive_view,
            SampleTell: self._receive_tell,
        }

    # What a node asks.

    def view(self) -> dict[NodeId, Interested]:
        """Everybody known who wants something that the node wants."""
        people: dict[NodeId, Interested] = {}
        for topic in self._wanted:
            view = self._views.get(topic)
            if view is not None:
                for person in view.sample:
                    people[person.contact.id] = person
        people.pop(self._control.id, None)
        for peer in self._excluded:
            people.pop(peer, None)
        return people

    def sample(self, topic: TopicId) -> Sample:
        view = self._views.get(topic)
        return view.sample if view is not None else ()

    def answered(self) -> bool:
        """Whether there is a view, if an empty one, of every wanted topic."""
        return all(topic in self._views for topic in self._wanted)

    def known_peers(self) -> set[NodeId]:
        people = {person.contact.id for view in self._views.values() for person in view.sample}
        people.discard(self._control.id)
        return people.union(self._excluded, self._children, self._hops)

    # What a node tells.

    def exclude(self, peer: NodeId) -> None:
        """A peer of the view did not answer (Algorithm 1: it is left out, and the next best tried)."""
        self._excluded[peer] = self._world.now + self._keep
        self.version += 1

    def lost(self, peer: NodeId) -> None:
        self._forget_child(peer)
        self._hops.pop(peer, None)
        self.exclude(peer)

    def hurry(self) -> None:
        """Report at the next beat."""
        self._round_at = self._world.now

    def beat(self) -> None:
        """A round, if it is time for one."""
        now = self._world.now
        if self._control.own is None or not self._parameters.size:
            return
        newer, self._newer = self._newer, {}
        self._pass_down(topic for topic in newer if topic in self._views)
        if now < self._round_at:
            self._report(self._grown)
            return
        self._round_at = now + self._parameters.round_period * self._world.random.uniform(0.9, 1.1)
        self._forget(now)
        topics = list(dict.fromkeys([*self._wanted, *self._reports]))
        self._reported = set(topics)
        for memory in (self._told, self._drawn, self._grew):
            for topic in [topic for topic in memory if topic not in self._reported]:
                del memory[topic]
        self._report(topics, whole_round=True)

    # Rounds (rules 1, 2 and 4).

    def _report(self, topics: Iterable[TopicId], whole_round: bool = False) -> None:
        until, own = self._world.now + self._keep, self._own()
        by_hop: dict[NodeId, dict[TopicId, _Report]] = {}
        at_home: list[TopicId] = []
        next_hop, me = self._control.table.next_hop, self._control.id
        self._grown = {}
        for topic in topics:
            report = self._combined(topic, own if topic in self._wanted else None)
            self._told[topic] = report.members
            hop = next_hop(as_point(topic))
            view = self._views.get(topic)
            if hop == me:
                self._views[topic] = _View(until, report.sample, me)
                at_home.append(topic)
            else:
                by_hop.setdefault(hop, {})[topic] = report
                if view is not None and view.source == hop:
                    self._views[topic] = view._replace(until=until)
        for hop, reports in by_hop.items():
            self._report_to(hop, reports, whole_round)
        if whole_round:
            for peer in [peer for peer in self._hops if peer not in by_hop]:
                self._report_to(peer, {}, whole_round=True)
                del self._hops[peer]
        if at_home:
            self.version += 1
            self._pass_down(at_home)

    def _combined(self, topic: TopicId, own: Interested | None) -> _Report:
        """What a node says of its branch: drawn anew if anything has changed, or the branch itself has lately."""
        below = self._reports.get(topic)
        sources = (own, *below.values()) if below is not None else (own,)
        drawn = self._drawn.get(topic)
        count = (own is not None) + (
            sum(report.members for report in below.values()) if below is not None else 0
        )
        now = self._world.now
        most, fresh_until = self._grew.get(topic, (0, 0.0))
        if count > most:
            fresh_until = now + self._fresh
            self._grew[topic] = (count, fresh_until)
        same = drawn is not None and _same(drawn.sources, sources)
        if drawn is not None and same and (below is None or now >= fresh_until):
            return drawn.report
        alone: Sample = (own,) if own is not None else ()
        if below is None:
            report = _Report(count, alone)
        else:
            groups: list[tuple[int, Sequence[Interested]]] = [*below.values()]
            if own is not None:
                groups.append((1, alone))
            report = _Report(count, combine(groups, self._parameters.size, self._world.random))
            if drawn is not None and report == drawn.report:
                report = drawn.report
        self._drawn[topic] = _Drawn(sources, report)
        return report

    # Reports (rule 5).

    def _report_to(
        self, peer: NodeId, reports: dict[TopicId, _Report], whole_round: bool, views: int = 0
    ) -> None:
        hop = self._hops.get(peer)
        since = hop.number if hop is not None else 0
        if hop is None:
            # No number of an earlier life.
            hop = self._hops[peer] = _Hop(1 + int(self._world.now * 1000.0), views)
        before = hop.reported
        news = {topic: report for topic, report in reports.items() if before.get(topic) is not report}
        gone = [topic for topic in before if topic not in reports] if whole_round else []
        if since and (news or gone):
            hop.number += 1
        before.update(news)
        for topic in gone:
            del before[topic]
        if whole_round or news:
            people, samples = _numbered([report.sample for report in news.values()])
            counts = tuple(report.members for report in news.values())
            numbers = (hop.number, since, hop.views)
            self._control.send(
                peer, SampleReport(tuple(news), counts, samples, people, tuple(gone), *numbers)
            )

    def _receive_tell(self, sender: NodeId, _message: SampleTell) -> None:
        hop = self._hops.pop(sender, None)
        if hop is not None:
            self._report_to(sender, hop.reported, whole_round=True, views=hop.views)

    def _receive_report(self, sender: NodeId, message: SampleReport) -> None:
        topics, counts, samples = message.topics, message.counts, message.samples
        if (
            sender == self._control.id
            or self._control.own is None
            or not len(topics) == len(counts) == len(samples) <= MOST_TOPICS
            or not self._believable(message.people, samples)
        ):
            return
        child = self._children.get(sender)
        if child is None:
            child = self._children[sender] = _Child()
        if message.since == 0:
            mentioned = set(topics)
            self._end_reports(sender, [topic for topic in child.topics if topic not in mentioned])
        elif child.number != message.since:
            self._world.send(sender, SampleTell())
            return
        child.number = message.number
        child.until = self._world.now + self._keep
        self._end_reports(sender, message.gone[:MOST_TOPICS])
        answered, asked = self._take_reports(sender, child, message)
        if message.views != child.views and self._world.now - child.told_at > VIEWS_TAKE:
            child.told.clear()
            child.views = 0
            answered = [topic for topic in child.topics if topic in self._views]
        self._pass_down(answered, only=sender)
        if asked:
            self._reported.update(asked)
            self._report(asked)

    def _take_reports(
        self, sender: NodeId, child: _Child, message: SampleReport
    ) -> tuple[list[TopicId], list[TopicId]]:
        """Returns the topics that the child reports for the first time: those with a view, and those to be
        asked for.
        """
        people = message.people
        answered, asked = [], []
        for topic, count, numbers in zip(message.topics, message.counts, message.samples, strict=True):
            if not 0 <= topic < RING_SIZE or not 0 <= count < RING_SIZE:
                continue
            reports = self._reports.setdefault(topic, {})
            first = sender not in reports
            before = 0 if first else reports[sender].members
            reports[sender] = _Report(count, tuple([people[number] for number in numbers]))
            child.topics[topic] = None
            if count - before > _MUCH * self._told.get(topic, 0):
                self._grown[topic] = None
            if first:
                if topic in self._views:
                    answered.append(topic)
                elif topic not in self._reported:
                    asked.append(topic)
        return answered, asked

    # Views.

    def _pass_down(self, topics: Iterable[TopicId], only: NodeId | None = None) -> None:
        by_child: dict[NodeId, list[TopicId]] = {}
        for topic in topics:
            sample = self._views[topic].sample
            peers: Collection[NodeId] = self._reports.get(topic, ())
            if only is not None:
                peers = (only,) if only in peers else ()
            for peer in peers:
                if self._children[peer].told.get(topic) != sample:
                    by_child.setdefault(peer, []).append(topic)
        for peer, theirs in by_child.items():
            child = self._children[peer]
            samples = [self._views[topic].sample for topic in theirs]
            child.told.update(zip(theirs, samples, strict=True))
            child.told_at = self._world.now
            since = child.views
            child.views = since + 1 if since else 1 + int(self._world.now * 1000.0)
            people, numbered = _numbered(samples)
            self._control.send(peer, SampleView(tuple(theirs), numbered, people, child.views, since))

    def _receive_view(self, sender: NodeId, message: SampleView) -> None:
        topics, samples, people = message.topics, message.samples, message.people
        if not len(topics) == len(samples) <= MOST_TOPICS or not self._believable(people, samples):
            return
        if self._control.own is None:
            return
        hop = self._hops.get(sender)
        until = self._world.now + self._keep
        first, next_hop, whole = [], self._control.table.next_hop, True
        for topic, numbers in zip(topics, samples, strict=True):
            # From the next node on the way home only: so views never go round in circles.
            if (topic in self._wanted or topic in self._reports) and next_hop(as_point(topic)) == sender:
                if topic in self._views:
                    self._newer[topic] = None
                else:
                    first.append(topic)
                self._views[topic] = _View(until, tuple([people[number] for number in numbers]), sender)
            elif hop is not None and topic in hop.reported:
                whole = False  # The way may lead there again, and the sender would take this view for known.
        if hop is not None and whole and message.since in (0, hop.views):
            hop.views = message.number  # Else the next report says what is missing.
        self.version += 1
        self._pass_down(first)

    def _believable(self, people: Sequence[Interested], samples: Sequence[Sequence[int]]) -> bool:
        most, size = len(people), max(self._parameters.size, 64)
        return (
            most <= MOST_PEOPLE
            and all(
                0 <= person.contact.id < RING_SIZE
                and len(person.interest) <= self._max_topics
                and is_position(person.contact.position)
                for person in people
            )
            and all(
                len(numbers) <= size and (not numbers or (min(numbers) >= 0 and max(numbers) < most))
                for numbers in samples
            )
        )

    def _forget(self, now: float) -> None:
        for peer in [peer for peer, child in self._children.items() if child.until <= now]:
            self._forget_child(peer)
        for topic in [topic for topic, view in self._views.items() if view.until <= now]:
            del self._views[topic]
        for peer in [peer for peer, until in self._excluded.items() if until <= now]:
            del self._excluded[peer]

    def _forget_child(self, peer: NodeId) -> None:
        child = self._children.get(peer)
        if child is not None:
            self._end_reports(peer, list(child.topics))
            del self._children[peer]

    def _end_reports(self, peer: NodeId, topics: Iterable[TopicId]) -> None:
        child = self._children[peer]
        for topic in topics:
            if topic in child.topics:
                del child.topics[topic]
                child.told.pop(topic, None)
                del self._reports[topic][peer]
                if not self._reports[topic]:
                    del self._reports[topic]


def _same(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    """Whether both hold the same objects."""
    return len(one) == len(other) and all(map(operator.is_, one, other))


def _numbered(samples: Sequence[Sample]) -> tuple[tuple[Interested, ...], tuple[tuple[int, ...], ...]]:
    """Everybody once, and each sample by their numbers (rule 5)."""
    number: dict[int, int] = {}
    people: list[Interested] = []
    numbered = []
    for sample in samples:
        numbers = []
        for person in sample:
            key = id(person)
            place = number.get(key)
            if place is None:
                place = number[key] = len(people)
                people.append(person)
            numbers.append(place)
        numbered.append(tuple(numbers))
    return tuple(people), tuple(numbered)


def choose_guides(
    topics: Collection[TopicId], known: Mapping[NodeId, Interest], most: int = 4
) -> dict[NodeId, list[TopicId]]:
    """Whom to ask for which topics: the few who want the most of what is left (Algorithm 2, lines 1 to 6).

    The paper asks a random subscriber per topic. Whoever is asked, the same tree results, since its paths are
    the home's greedy routes; asking few for many topics each takes fewer messages.
    """
    left = set(topics)
    guides: dict[NodeId, list[TopicId]] = {}
    while left and len(guides) < most:
        best = max(known, key=lambda peer: (len(left & known[peer]), -peer), default=None)
        shared = left & known[best] if best is not None else set()
        if best is None or not shared:
            break
        guides[best] = sorted(shared)
        left -= shared
    return guides
