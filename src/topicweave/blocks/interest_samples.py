"""Interest-aware membership: for each topic a small random sample of its subscribers and their interests (Magnet §3.4).

Rules kept
----------
1. The subscribers of a topic, and the nodes on their control-ring routes to its home, are the topic's spanning tree. Every round
   each of them combines what its children reported with its own interest and reports it to the next node on
   the way. The home sends the sample that results back down.
2. A report carries how many subscribers it stands for. Samples are combined by these counts; otherwise the few of a thin
   branch would be taken as often as the many of a thick one.
   In between, a branch that has grown much since it last reported does so at the next beat: newcomers choose their places by
   who is there.
3. Whoever reports for the first time is answered at once with the view that there is, or the question goes on up: a
   newcomer needs a view before it can choose its place. A topic's first view is passed down at once, too; a newer one waits for the next beat, since
   those of many topics, from as many homes, then go together, and name people once.
4. All of it is soft state: what is not reported again is forgotten after a few rounds.
5. People occur in many topics' samples, so a message names each once, and topics refer to them by number.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from topicweave.blocks.growing_ids import is_position
from topicweave.blocks.harmonic_links import as_point
from topicweave.blocks.ring import Ring
from topicweave.blocks.ring_messages import Contact
from topicweave.model.ids import RING_SIZE, Interest, NodeId, TopicId
from topicweave.port import Message, Receivers, World

_MUCH = 0.1
"""By which share a topic must grow at once to be reported before the next round."""
MOST_TOPICS = 16_384
MOST_PEOPLE = 65_536


class Interested(msgspec.Struct, frozen=True, array_like=True):
    """A subscriber: where it is, and all it wants."""

    contact: Contact
    interest: Interest


class SampleReport(Message, frozen=True, array_like=True, tag="sample-report"):
    """Up the tree: per topic how many subscribers there are, and some of them, by their number among the people."""

    topics: tuple[TopicId, ...]
    counts: tuple[int, ...]
    samples: tuple[tuple[int, ...], ...]
    people: tuple[Interested, ...]

    def introduces(self) -> Iterable[NodeId]:
        return [person.contact.id for person in self.people]


class SampleView(Message, frozen=True, array_like=True, tag="sample-view"):
    """Down the tree: the sample of each topic."""

    topics: tuple[TopicId, ...]
    samples: tuple[tuple[int, ...], ...]
    people: tuple[Interested, ...]

    def introduces(self) -> Iterable[NodeId]:
        return [person.contact.id for person in self.people]


class SampleParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sizes, and times in seconds."""

    size: int = 10
    """How many interests a topic's sample holds at most (k)."""
    round_period: float = 4.0
    keep_rounds: float = 3.5
    """For how many rounds what was said counts."""

    def __post_init__(self) -> None:
        if not (self.size >= 0 and self.round_period > 0 and self.keep_rounds > 1):
            raise ValueError("need size of 0 or more, round_period above 0 and keep_rounds above 1")


Sample = tuple[Interested, ...]


def combine(groups: Sequence[tuple[int, Sequence[Interested]]], size: int, draw: random.Random) -> Sample:
    """A uniform sample of `size` out of several groups, each given by its number of members and a uniform sample of them.

    A member is drawn by drawing a group by the number of its members not yet drawn, then one of its sample. Since a group's
    sample is uniform and has `size` members (or all), that is a uniform draw from the whole without replacement.
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


class _Report:
    __slots__ = ("count", "sample", "until")

    def __init__(self, until: float, count: int, sample: Sample) -> None:
        self.until, self.count, self.sample = until, count, sample


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
        self._max_topics = max_topics
        self._reports: dict[TopicId, dict[NodeId, _Report]] = {}
        self._views: dict[TopicId, tuple[float, Sample]] = {}
        self._reported: set[TopicId] = set()
        """Topics that this node reported or answered for already: nothing to hurry about."""
        self._told: dict[
            TopicId, int
        ] = {}  # how many subscribers the last report (or view, at home) stood for
        self._grown: dict[TopicId, None] = {}
        self._newer: dict[TopicId, None] = {}  # views to be passed down
        self._round_at = world.now
        self._excluded: dict[NodeId, float] = {}
        self.version = 0
        """Grows whenever a view changes."""

    def receivers(self) -> Receivers:
        return {SampleReport: self._receive_report, SampleView: self._receive_view}

    # What a node asks.

    def view(self) -> dict[NodeId, Interested]:
        """Everybody known who wants something that the node wants."""
        people: dict[NodeId, Interested] = {}
        for topic in self._wanted:
            view = self._views.get(topic)
            if view is not None:
                for person in view[1]:
                    people[person.contact.id] = person
        people.pop(self._control.id, None)
        for peer in self._excluded:
            people.pop(peer, None)
        return people

    def sample(self, topic: TopicId) -> Sample:
        view = self._views.get(topic)
        return view[1] if view is not None else ()

    def answered(self) -> bool:
        """Whether there is a view, if an empty one, of every wanted topic."""
        return all(topic in self._views for topic in self._wanted)

    def known_peers(self) -> set[NodeId]:
        people = {person.contact.id for _, sample in self._views.values() for person in sample}
        people.discard(self._control.id)
        return people.union(self._excluded, *self._reports.values())

    # What a node tells.

    def exclude(self, peer: NodeId) -> None:
        """A peer of the view did not answer (Algorithm 1: it is left out, and the next best tried)."""
        self._excluded[peer] = self._world.now + self._parameters.keep_rounds * self._parameters.round_period
        self.version += 1

    def lost(self, peer: NodeId) -> None:
        for topic in [topic for topic, reports in self._reports.items() if peer in reports]:
            del self._reports[topic][peer]
            if not self._reports[topic]:
                del self._reports[topic]
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
        self._told = {topic: count for topic, count in self._told.items() if topic in self._reported}
        self._report(topics)

    # Rounds (rules 1 and 2).

    def _report(self, topics: Iterable[TopicId]) -> None:
        now = self._world.now
        until = now + self._parameters.keep_rounds * self._parameters.round_period
        own = self._own()
        by_hop: dict[NodeId, list[tuple[TopicId, int, Sample]]] = {}
        at_home: list[TopicId] = []
        next_hop, me, size = self._control.table.next_hop, self._control.id, self._parameters.size
        alone: Sample = (own,) if own is not None else ()
        self._grown = {}
        for topic in topics:
            reports = self._reports.get(topic)
            mine = alone if topic in self._wanted else ()
            if reports is None:
                count, sample = len(mine), mine
            else:
                groups: list[tuple[int, Sequence[Interested]]] = [
                    (r.count, r.sample) for r in reports.values()
                ]
                if mine:
                    groups.append((1, mine))
                count = sum(number for number, _ in groups)
                sample = combine(groups, size, self._world.random)
            self._told[topic] = count
            hop = next_hop(as_point(topic))
            if hop == me:
                self._views[topic] = (until, sample)
                at_home.append(topic)
            else:
                by_hop.setdefault(hop, []).append((topic, count, sample))
        for hop, entries in by_hop.items():
            people, samples = _numbered([sample for _, _, sample in entries])
            self._world.send(
                hop,
                SampleReport(tuple(e[0] for e in entries), tuple(e[1] for e in entries), samples, people),
            )
        if at_home:
            self.version += 1
            self._pass_down(at_home)

    def _pass_down(self, topics: Iterable[TopicId], only: NodeId | None = None) -> None:
        by_child: dict[NodeId, list[TopicId]] = {}
        for topic in topics:
            for child in self._reports.get(topic, ()):
                if only is None or child == only:
                    by_child.setdefault(child, []).append(topic)
        for child, theirs in by_child.items():
            people, samples = _numbered([self._views[topic][1] for topic in theirs])
            self._world.send(child, SampleView(tuple(theirs), samples, people))

    def _receive_report(self, sender: NodeId, message: SampleReport) -> None:
        topics, counts, samples = message.topics, message.counts, message.samples
        if (
            sender == self._control.id
            or self._control.own is None
            or not len(topics) == len(counts) == len(samples) <= MOST_TOPICS
            or not self._believable(message.people, samples)
        ):
            return
        until = self._world.now + self._parameters.keep_rounds * self._parameters.round_period
        people = message.people
        answered, asked = [], []
        for topic, count, numbers in zip(topics, counts, samples, strict=True):
            if not 0 <= topic < RING_SIZE or not 0 <= count < RING_SIZE:
                continue
            reports = self._reports.setdefault(topic, {})
            first = sender not in reports
            before = 0 if first else reports[sender].count
            reports[sender] = _Report(until, count, tuple([people[number] for number in numbers]))
            if count - before > _MUCH * self._told.get(topic, 0):
                self._grown[topic] = None
            if first:
                if topic in self._views:
                    answered.append(topic)
                elif topic not in self._reported:
                    asked.append(topic)
        self._pass_down(answered, only=sender)
        if asked:
            self._reported.update(asked)
            self._report(asked)

    def _receive_view(self, sender: NodeId, message: SampleView) -> None:
        topics, samples, people = message.topics, message.samples, message.people
        if not len(topics) == len(samples) <= MOST_TOPICS or not self._believable(people, samples):
            return
        if self._control.own is None:
            return
        until = self._world.now + self._parameters.keep_rounds * self._parameters.round_period
        first, next_hop = [], self._control.table.next_hop
        for topic, numbers in zip(topics, samples, strict=True):
            # From the next node on the way home only: so views never go round in circles.
            if (topic in self._wanted or topic in self._reports) and next_hop(as_point(topic)) == sender:
                if topic in self._views:
                    self._newer[topic] = None
                else:
                    first.append(topic)
                self._views[topic] = (until, tuple([people[number] for number in numbers]))
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
        for topic, reports in list(self._reports.items()):
            for child in [child for child, report in reports.items() if report.until <= now]:
                del reports[child]
            if not reports:
                del self._reports[topic]
        for topic in [topic for topic, (until, _) in self._views.items() if until <= now]:
            del self._views[topic]
        for peer in [peer for peer, until in self._excluded.items() if until <= now]:
            del self._excluded[peer]


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
