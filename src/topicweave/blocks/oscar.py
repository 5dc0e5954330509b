"""OSCAR: long links for a ring whose identifiers are distributed in any way (Magnet §2.2; Girdzijauskas et
al., TAAS 2010).

Rules kept
----------
1. A node knows the population only by random walks over the overlay. The median of a few of them, clockwise
   from the node, is taken for the population's; the median of a few walks on the arc before it for that
   arc's, and so on. The medians cut the ring into partitions, each about half the size of the one before,
   whatever the identifiers.
2. A finger is a node drawn from a partition drawn at random, both uniformly. A node drawn twice is drawn again.
3. Of `choices` candidates per finger the one with the most similar interest is taken ("power of two choices").
4. Walks are uniform on their arc: a step to a neighbour there, which takes it with the chance min(1, own /
   its neighbours there), else it stays (Metropolis and Hastings). Without that, nodes with many links would
   get ever more.
5. Fingers are drawn anew when the population has changed much, or when the node has moved; those lost are
   replaced. Links that need not change do not: trees run over them. As long as looks at the population find
   nothing new, they become fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from topicweave.blocks.growing_ids import NOBODY, RingPlace, is_position
from topicweave.blocks.ring.messages import Contact, RingMessage
from topicweave.blocks.ring.ring import Ring
from topicweave.model.ids import RING_SIZE, Interest, NodeId
from topicweave.port import Receivers, TimerKey, Timers, World

MOST_STEPS = 256
MOST_PARTITIONS = 64


class Walk(RingMessage, frozen=True, array_like=True, tag="oscar-walk"):
    """Walk on the arc [start, end), so many more steps, then tell `origin`.

    `degree` is how many neighbours the last node has on the arc; 0 if the step is not to be judged.
    """

    origin: NodeId
    number: int
    start: RingPlace
    end: RingPlace
    steps: int
    degree: int

    def introduces(self) -> Iterable[NodeId]:
        return (self.origin,)


class Sampled(RingMessage, frozen=True, array_like=True, tag="oscar-sampled"):
    """Walk `number` ended at me."""

    number: int
    own: Contact
    interest: Interest


class OscarParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a node samples, and how many links it makes."""

    fingers: float = 8.5
    """On average: of 8.5, half of the nodes have 8 and half 9. With the ring that makes 19 links per node,
    both ends counted.
    """
    walks: int = 5
    """Per median."""
    steps: int = 10
    """Of a walk."""
    choices: int = 2
    """Candidates per finger."""
    check_period: float = 30.0
    """Seconds between two looks at the population."""
    calm: float = 8.0
    """Each look that finds the population as it was makes the wait for the next one four times as long, up to
    so many times as long; 1: never longer.
    """
    refinements: int = 2
    """How often all fingers are drawn once more after the first time: walks over an overlay that is still bad are
    bad samples. Each waits a third of a `check_period`."""
    rewire_after: float = 2.5
    """By how many partitions more or less, on average over a few looks, all fingers are drawn anew. Each
    partition is about a doubling of the population; one look alone errs by more than one. 0: always.
    """
    patience: float = 3.0
    """Seconds until walks that have not come back are given up."""

    def __post_init__(self) -> None:
        if not (self.fingers >= 1 and self.walks >= 1 and self.choices >= 1):
            raise ValueError("need at least one finger, one walk and one choice")
        if self.refinements < 0 or self.rewire_after < 0 or not self.calm >= 1:
            raise ValueError("need refinements and rewire_after of 0 or more, and calm of 1 or more")
        if not (1 <= self.steps < MOST_STEPS and self.check_period > 0 and self.patience > 0):
            raise ValueError(f"need 1 to {MOST_STEPS - 1} steps, a check_period and patience above 0")


# The rules, as functions of plain data.


def clockwise_median(here: RingPlace, sample: Sequence[Contact]) -> Contact:
    """The middle one of a sample, counted clockwise from a place; the nearer one of two.

    >>> at = lambda number: Contact(number, bytes([number]), 0)
    >>> clockwise_median((bytes([50]), 50), [at(20), at(60), at(90)]).id
    90
    """
    ordered = sorted(sample, key=lambda contact: (contact.place < here, contact.place))
    return ordered[(len(ordered) - 1) // 2]


def partition_bounds(here: RingPlace, medians: Sequence[RingPlace]) -> list[tuple[RingPlace, RingPlace]]:
    """The arcs that the medians cut, the largest first: [p1, here), [p2, p1), …

    >>> partition_bounds((b"a", 1), [(b"m", 2), (b"g", 3)])
    [((b'm', 2), (b'a', 1)), ((b'g', 3), (b'm', 2))]
    """
    return list(zip(medians, [here, *medians[:-1]], strict=True))


def most_similar(candidates: Sequence[Contact], similarity: Sequence[float]) -> Contact:
    """The candidate with the highest similarity, the first of equals."""
    return candidates[max(range(len(candidates)), key=similarity.__getitem__)]


class Oscar:
    """One node's fingers on a ring. `similarity(interest)` says how much another's interest is like the node's own."""

    def __init__(
        self,
        world: World,
        ring: Ring,
        interest: Callable[[], Interest],
        similarity: Callable[[Interest], float],
        parameters: OscarParameters,
        max_topics: int = 65_536,
    ) -> None:
        self._world = world
        self._ring = ring
        self._interest = interest
        self._similarity = similarity
        self._parameters = parameters
        self._max_topics = max_topics
        whole, part = divmod(parameters.fingers, 1.0)
        self._wanted = int(whole) + (world.random.random() < part)
        self._key: TimerKey = (f"oscar-{ring.number}",)
        self._waiting: dict[int, int] = {}  # walk -> what it is for
        self._answers: dict[int, list[tuple[Contact, Interest]]] = {}
        self._next_walk = 0
        self._medians: list[Contact] = []
        self._wiring = False
        self._chosen: dict[NodeId, Contact] = {}
        self._tries = 0
        self.partitions: list[tuple[RingPlace, RingPlace]] = []
        self._wired_for = 0.0
        self._usual = 0.0  # partitions, averaged over looks
        self._moved = True
        self._refinements = 0
        self._again_at = 0.0
        self._calm = 1.0

    def receivers(self) -> Receivers:
        return {Walk: self._receive_walk, Sampled: self._receive_sampled}

    def timers(self) -> Timers:
        return {self._key[0]: self._time_is_up}

    def restart(self) -> None:
        self._end()

    def moved(self) -> None:
        """The node is somewhere else, or everybody else is: its fingers are to be drawn anew, soon."""
        self._moved = True
        self._again_at = self._world.now

    def known_peers(self) -> set[NodeId]:
        return {*self._chosen, *(contact.id for contact in self._medians)}

    def lost(self, peer: NodeId) -> None:
        if self._chosen.pop(peer, None) is not None or any(peer == one.id for one in self._medians):
            self._end()

    def beat(self) -> None:
        """Once per period: look at the population if it is time, or replace fingers that were lost."""
        ring = self._ring
        if self._wiring or ring.own is None or ring.near.successor is None:
            return
        missing = len(ring.fingers) < self._wanted and len(ring.near) > 2
        if self._moved or missing or self._world.now >= self._again_at:
            self._wiring = True
            self._medians, self._chosen, self._tries = [], {}, 0
            self._sample_rest()

    # Medians (rule 1).

    def _sample_rest(self) -> None:
        """Walk on the arc up to the last median, unless the ring neighbours known already reach that far."""
        ring = self._ring
        here = ring.here
        end = self._medians[-1].place if self._medians else here
        follow = ring.near.following(ring.here)
        near = {contact.id for contact in follow}
        if self._medians and (self._medians[-1].id in near or len(self._medians) >= MOST_PARTITIONS):
            self._choose()
            return
        # Just after the node itself: it is no part of its own population.
        start = (here[0], min(here[1] + 1, RING_SIZE - 1))
        self._walk([(ring.id, start, end)] * self._parameters.walks)

    def _found_median(self, sample: list[tuple[Contact, Interest]]) -> None:
        ring = self._ring
        others = [contact for contact, _ in sample if contact.id != ring.id]
        if not others:
            self._end()
            return
        median = clockwise_median(ring.here, others)
        if self._medians and median.id == self._medians[-1].id:
            self._choose()
            return
        self._medians.append(median)
        self._sample_rest()

    # Fingers (rules 2 and 3).

    def _choose(self) -> None:
        ring, parameters = self._ring, self._parameters
        places = [contact.place for contact in self._medians]
        self.partitions = partition_bounds(ring.here, places)
        found = len(self.partitions)
        self._usual = found if self._moved or not self._usual else 0.7 * self._usual + 0.3 * found
        refine = self._refinements > 0 and self._world.now >= self._again_at
        anew = self._moved or refine or abs(self._usual - self._wired_for) >= parameters.rewire_after
        if self._moved:
            # A node that moves walks over an overlay that is there already.
            self._refinements = 0 if self._wired_for else parameters.refinements
        elif refine:
            self._refinements -= 1
        if anew:
            self._wired_for = self._usual
            self._moved = False
            self._calm = 1.0
        else:
            self._chosen = dict(ring.fingers)
        wait = self._calm * parameters.check_period / (3.0 if self._refinements else 1.0)
        self._calm = min(4.0 * self._calm, parameters.calm)
        self._again_at = self._world.now + wait * self._world.random.uniform(0.8, 1.2)
        self._draw()

    def _draw(self) -> None:
        missing = self._wanted - len(self._chosen)
        if missing <= 0 or self._tries >= 4:
            self._ring.set_fingers(self._chosen.values())
            self._end()
            return
        self._tries += 1
        walks = []
        for _ in range(missing):
            index = self._world.random.randrange(len(self.partitions))
            start, end = self.partitions[index]
            walks += [(self._medians[index].id, start, end)] * self._parameters.choices
        self._walk(walks, grouped=self._parameters.choices)

    def _found_candidates(self) -> None:
        ring = self._ring
        taken = {ring.id}
        taken.update(
            contact.id for contact in (ring.near.successor, ring.near.predecessor) if contact is not None
        )
        for group in sorted(self._answers):
            found = [
                (c, i) for c, i in self._answers[group] if c.id not in taken and c.id not in self._chosen
            ]
            if found and len(self._chosen) < self._wanted:
                best = most_similar(
                    [contact for contact, _ in found],
                    [self._similarity(interest) for _, interest in found] if len(found) > 1 else [0.0],
                )
                self._chosen[best.id] = best
        self._draw()

    # Walks (rule 4).

    def _walk(self, walks: Sequence[tuple[NodeId, RingPlace, RingPlace]], grouped: int = 0) -> None:
        """Send walks out; with `grouped`, so many in a row are for the same finger."""
        self._answers = {}
        self._waiting = {}
        parameters, ring = self._parameters, self._ring
        self._world.set_timer(self._key, parameters.patience)
        messages = []
        for index, (first, start, end) in enumerate(walks):
            self._next_walk += 1
            self._waiting[self._next_walk] = index // grouped + 1 if grouped else 0
            walk = Walk(ring.number, ring.id, self._next_walk, start, end, parameters.steps, 0)
            messages.append((first, walk))
        for first, walk in messages:
            if first == ring.id:
                self._step(walk, *ring.table.neighbours_between(walk.start, walk.end))
            else:
                self._world.send(first, walk)

    def _receive_walk(self, sender: NodeId, message: Walk) -> None:
        ring = self._ring
        if ring.own is None or not 0 <= message.steps < MOST_STEPS or not _is_arc(message.start, message.end):
            return
        first, own = ring.table.neighbours_between(message.start, message.end)
        judged = message.degree
        if judged and own > judged and self._world.random.random() * own >= judged:
            # The walk stays where it was.
            back = msgspec.structs.replace(message, steps=max(message.steps - 1, 0), degree=0)
            self._world.send(sender, back)
        else:
            self._step(message, first, own)

    def _step(self, walk: Walk, first: int, count: int) -> None:
        """On to one of the `count` neighbours on the arc, the first of which is that of this number."""
        ring, world = self._ring, self._world
        if not walk.steps or not count:
            sampled = Sampled(ring.number, walk.number, ring.own, self._interest())  # type: ignore[arg-type]  # who walks has a place
            if walk.origin == ring.id:
                self._receive_sampled(ring.id, sampled)
            else:
                world.send(walk.origin, sampled)
            return
        place = ring.table.neighbours[
            (first + int(world.random.random() * count)) % len(ring.table.neighbours)
        ]
        # The origin is no part of its population, so a first step is not judged.
        degree = 0 if ring.id == walk.origin else count
        ring.send(
            place[1],
            Walk(walk.ring, walk.origin, walk.number, walk.start, walk.end, walk.steps - 1, degree),
        )

    def _receive_sampled(self, sender: NodeId, message: Sampled) -> None:
        purpose = self._waiting.pop(message.number, None)
        if purpose is None or message.own.id != sender or len(message.interest) > self._max_topics:
            return
        if is_position(message.own.position):
            self._answers.setdefault(purpose, []).append((message.own, message.interest))
        if not self._waiting:
            self._all_back()

    def _time_is_up(self, _key: TimerKey) -> None:
        if self._answers:
            self._all_back()
        else:
            self._end()

    def _all_back(self) -> None:
        self._world.cancel_timer(self._key)
        self._waiting = {}
        if 0 in self._answers:
            self._found_median(self._answers.pop(0))
        else:
            self._found_candidates()

    def _end(self) -> None:
        self._world.cancel_timer(self._key)
        self._wiring = False
        self._waiting, self._answers, self._medians, self._chosen = {}, {}, [], {}
        self._again_at = max(self._again_at, self._world.now + self._parameters.patience)


def _is_arc(start: RingPlace, end: RingPlace) -> bool:
    return is_position(start[0]) and is_position(end[0]) and min(start[1], end[1]) >= NOBODY
