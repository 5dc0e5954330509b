"""Scribe over a Pastry-like ring that knows distances: what Rappel §6.4 is measured against.

M. Castro, P. Druschel, A.-M. Kermarrec, A. Rowstron: "SCRIBE: A large-scale and decentralized
application-level multicast infrastructure", JSAC 2002; A. Rowstron, P. Druschel: "Pastry", Middleware 2001.

Rules kept
----------
1. Routing as in Pastry: a leaf set of the nearest identifiers on both sides, and a table whose row r, column
   c leads to a peer that shares r digits (of four bits) with the node and has digit c next. Among the peers
   for one place the nearest is taken, by the least of `MEASUREMENTS` round trips (the first one has to wait
   for the connection); of those as near as that (`RESOLUTION`) the one of lowest identifier.
2. A subscriber's requests go hop by hop towards the root; whoever passes one on becomes part of the feed's
   tree, wanted or not (`RelayPaths`, the block that RVR uses, too). Events are pushed along the tree at once.
3. The root is the publisher's own node where publishers are given (the optimisation that Rappel's authors
   enforced), else the node whose identifier is nearest to the feed's.

4. Neighbours in the leaf set tell each other their leaves (`LeafSet`), so lookups end at the same node though
   nobody knows everybody. They and the parents in trees are asked for signs of life; whoever is silent for
   `suspect_after` is replaced.

Deviations: peers are learnt from the interest view instead of by Pastry's join, so a table is complete after
one look; the paper's runs are static as well. Every place is filled from at most `choices` measured peers, as
FreePastry does over time. A child asks its parent for a sign of life, where Scribe's parents give theirs
unasked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from topicweave.blocks.failure_detector import FailureDetector
from topicweave.blocks.interest_node import ViewNode
from topicweave.blocks.late_neighbours import LateEvent, PassedOn, aged_event
from topicweave.blocks.relay_paths import RelayParameters, RelayPaths
from topicweave.blocks.seen import SeenEvents
from topicweave.blocks.small_world import Router, nearest
from topicweave.blocks.views import InterestView
from topicweave.model.event import Event
from topicweave.model.ids import NodeId, TopicId, clockwise, distance
from topicweave.port import EventMessage, Link, Message, Receivers, TimerKey, Timers, World
from topicweave.systems.baselines.leaf_set import LeafSet
from topicweave.systems.system import System

DIGIT = 4
DIGITS = 64 // DIGIT
LOOK = "scribe-look"
MOST_HOPS = 200
MEASUREMENTS = 6
RESOLUTION = 0.01
"""Seconds. Round trips that differ by less differ by how busy machines were, and nodes that choose by that
each choose another peer of several equally near ones: paths that would meet do not, and more nodes relay.
"""


KEPT = 60.0
"""Seconds for which a measured peer keeps its place after the view named it, or it spoke. A bounded view forgets nodes
that live; a table that followed it would change all the time, and trees with it.
"""


class ScribeParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds."""

    leaves: int = 8
    """On either side."""
    choices: int = 4
    """Peers measured for each place of the table."""
    look_every: float = 5.0
    keep_alive: float = 5.0
    """Between two signs of life of neighbours in the leaf set, and of parents."""
    suspect_after: float = 10.0
    relay: RelayParameters = RelayParameters(refresh=5.0, expire=18.0)
    publishers: dict[TopicId, NodeId] = {}


class Measure(Message, frozen=True, array_like=True, tag="scribe-measure"):
    """Answer at once; 0 asks for a sign of life alone."""

    number: int


class Measured(Message, frozen=True, array_like=True, tag="scribe-measured"):
    number: int


class ScribeEvent(EventMessage, frozen=True, array_like=True, tag="scribe-event"):
    """An event on its way along the tree, or up to it."""


class ScribeGone(Message, frozen=True, array_like=True, tag="scribe-gone"):
    """I leave."""


class PastryRouter(Router):
    """Where a lookup goes next from one node; `leaves` are in the order of the ring, the node itself in their
    middle.
    """

    def __init__(
        self,
        own: NodeId,
        leaves: Sequence[NodeId],
        everybody: bool,
        table: Mapping[tuple[int, int], NodeId],
        keys: Mapping[TopicId, NodeId],
    ) -> None:
        super().__init__(own, {*leaves, *table.values()})
        self._own = own
        self._leaves = sorted(leaves)
        self._first = leaves[0]
        self._reach = clockwise(leaves[0], leaves[-1])
        self._everybody = everybody
        self._table = table
        self._keys = keys

    def next_hops(self, points: Sequence[int]) -> list[NodeId]:
        return [self.next_hop(point) for point in points]

    def next_hop(self, point: int) -> NodeId:
        key = self._keys.get(point, point)
        own = self._own
        if key == own:
            return own
        if self._everybody or clockwise(self._first, key) <= self._reach:
            leaf = nearest(key, self._leaves)
            assert leaf is not None
            return leaf
        row = shared_digits(own, key)
        hop = self._table.get((row, digit(key, row)))
        return hop if hop is not None else self._rare_case(key, row)

    def _rare_case(self, key: int, row: int) -> NodeId:
        """Pastry's: nobody for that place, so the nearest of all known who share as many digits. One that
        shares fewer could send the lookup back.
        """
        away = distance(self._own, key)
        nearer = [
            peer for peer in self._ids if distance(peer, key) < away and shared_digits(peer, key) >= row
        ]
        hop = nearest(key, nearer)
        return hop if hop is not None else super().next_hop(key)


def shared_digits(one: int, other: int) -> int:
    """How many leading digits two identifiers have in common.

    >>> shared_digits(0xAB00_0000_0000_0000, 0xAC00_0000_0000_0000)
    1
    """
    return (64 - (one ^ other).bit_length()) // DIGIT


def digit(identifier: int, row: int) -> int:
    return identifier >> (64 - DIGIT * (row + 1)) & 15


class ScribeNode(ViewNode):
    """Links by routing alone; one tree per feed through whoever lies on the way."""

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        subscriptions: Iterable[TopicId],
        view: InterestView,
        parameters: ScribeParameters,
    ) -> None:
        super().__init__(world, node_id, subscriptions, view)
        self.parameters = parameters
        self._seen = SeenEvents()
        self._leaves = LeafSet(world, node_id, parameters.leaves, self._ask_for_life)
        self._places: dict[tuple[int, int], list[NodeId]] = {}
        self._seconds: dict[NodeId, float] = {}
        self._alive: dict[NodeId, float] = {}  # of measured peers: when the view named them, or they spoke
        self._measurements: dict[NodeId, int] = {}  # that are still to be made
        self._asked: dict[int, tuple[NodeId, float]] = {}
        self._number = 0
        self._looked_at = -1
        self._router: PastryRouter | None = None
        self._passed = PassedOn[ScribeEvent](world, aged_event)
        self.relays = RelayPaths(
            world,
            node_id,
            self.router,
            self._topics,
            parameters.relay,
            lambda topic, peer: self._passed.serve(topic, [peer]),
        )
        self._detector = FailureDetector(
            *(world, parameters.keep_alive, parameters.suspect_after),
            beat=self._show_life,
            suspect=self.peer_lost,
            ask=self._ask_all,
        )
        for block in (self.relays, self._leaves, self._detector, self):
            self.use(block)

    def receivers(self) -> Receivers:
        return {
            Measure: self._receive_measure,
            Measured: self._receive_measured,
            ScribeEvent: self._receive_event,
            LateEvent: self._receive_event,
            ScribeGone: lambda sender, _message: self.peer_lost(sender),
        }

    def timers(self) -> Timers:
        return {LOOK: self._look}

    def receive(self, sender: NodeId, message: Message) -> None:
        self._detector.heard(sender)
        self._leaves.heard(sender)
        if sender in self._alive:
            self._alive[sender] = self.world.now
        super().receive(sender, message)
        if self._leaves.changed:
            self._learn()

    # What the node is told.

    def start(self, contacts: Sequence[NodeId]) -> None:
        super().start(contacts)
        self._asked.clear()
        self._looked_at = -1
        self.relays.start()
        self._detector.start()
        self.world.set_timer((LOOK,), self.world.random.uniform(0.0, 1.0))

    def subscribe_all(self, topics: Sequence[TopicId]) -> None:
        super().subscribe_all(topics)
        self.relays.request(topics)

    def _spread(self, event: Event) -> int:
        self._seen.first_time(event)
        return self._pass_on(event, 0, None)

    def _reached_nobody(self, topic: TopicId) -> str:
        return "no tree of this topic leads through this node, and no way to one is known"

    def peer_lost(self, peer: NodeId) -> None:
        self.view.lost(peer)
        self._leaves.lost(peer)
        self._detector.unwatch(peer)
        self._seconds.pop(peer, None)
        self._alive.pop(peer, None)
        self._measurements.pop(peer, None)
        self._learn()
        self.relays.lost(peer)

    def leave(self) -> None:
        for peer in sorted(self.known_peers()):
            self.world.send(peer, ScribeGone())
        self.view.leave()

    def links(self) -> Iterator[Link]:
        for peer in self._leaves:
            yield Link(peer, "leaf")
        for peer in set(self._table().values()):
            yield Link(peer, "route")
        for peer in self.relays.known_peers():
            yield Link(peer, "tree")

    def known_peers(self) -> set[NodeId]:
        return {*self._leaves, *self._table().values(), *self.relays.known_peers(), *self._detector.watched}

    # Routing.

    def router(self) -> PastryRouter:
        if self._router is None:
            leaves = self._leaves
            self._router = PastryRouter(
                self.id, leaves.ring, leaves.everybody, self._table(), self.parameters.publishers
            )
        return self._router

    def _table(self) -> dict[tuple[int, int], NodeId]:
        return {place: self._nearest(peers) for place, peers in self._places.items()}

    def _nearest(self, peers: Sequence[NodeId]) -> NodeId:
        far = float("inf")
        seconds = [self._seconds.get(peer, far) for peer in peers]
        alike = min(seconds) + RESOLUTION
        return min(peer for peer, away in zip(peers, seconds, strict=True) if away <= alike)

    def _look(self, key: TimerKey) -> None:
        self.world.set_timer(key, self.parameters.look_every)
        self._ask_the_forgotten()
        self._learn()
        self._measure()
        watched = {*self._leaves.neighbours(), *self.relays.parents()}
        for peer in self._detector.watched:
            if peer not in watched:
                self._detector.unwatch(peer)
        for peer in sorted(watched):
            self._detector.watch(peer)

    def _show_life(self, watched: list[NodeId]) -> None:
        """To neighbours in the leaf set, which do the same; parents are asked."""
        self._leaves.tell()
        neighbours = self._leaves.neighbours()
        asked = dict.fromkeys([*watched, *self._leaves.unheard()])
        self._ask_all([peer for peer in asked if peer not in neighbours])

    def _ask_all(self, peers: list[NodeId]) -> None:
        for peer in peers:
            self._ask_for_life(peer)

    def _ask_for_life(self, peer: NodeId) -> None:
        self.world.send(peer, Measure(0))

    def _ask_the_forgotten(self) -> None:
        """For a sign of life: measured peers that nobody has named for long. Who gives none loses its place."""
        now = self.world.now
        for peer, when in self._alive.items():
            if now - when >= KEPT:
                self._looked_at = -1
            elif 2.0 * (now - when) >= KEPT:
                self._ask_for_life(peer)

    def _learn(self) -> None:
        """Leaf set and table of those known now; peers never measured are."""
        if self.view.version == self._looked_at and not self._leaves.changed:
            return
        self._looked_at = self.view.version
        known = self._leaves.arrange(self.view.peers())
        self._router = None
        self._places = {}
        if self._leaves.everybody:
            return
        self._fill(np.array(sorted({*known, *self._kept(known)}), dtype=np.uint64))
        chosen = {peer for peers in self._places.values() for peer in peers}
        self._seconds = {peer: seconds for peer, seconds in self._seconds.items() if peer in chosen}
        self._alive = {peer: when for peer, when in self._alive.items() if peer in self._seconds}
        self._asked = {number: asked for number, asked in self._asked.items() if asked[0] in chosen}
        self._measurements = {
            peer: self._measurements.get(peer, 0 if peer in self._seconds else MEASUREMENTS)
            for peer in sorted(chosen)
        }

    def _kept(self, known: Iterable[NodeId]) -> list[NodeId]:
        """Measured peers that are known now, or were not long ago."""
        now = self.world.now
        for peer in known:
            if peer in self._alive:
                self._alive[peer] = now
        return [peer for peer, when in self._alive.items() if now - when < KEPT]

    def _measure(self) -> None:
        """Ask everybody who has not been measured often enough how far away it is."""
        for peer in [peer for peer, left in self._measurements.items() if left]:
            self._measurements[peer] -= 1
            self._number += 1
            self._asked[self._number] = (peer, self.world.now)
            self.world.send(peer, Measure(self._number))

    def _fill(self, peers: np.ndarray[tuple[int, ...], np.dtype[np.uint64]]) -> None:
        """Up to `choices` peers for each place of the table; those measured before stay."""
        for row in range(DIGITS):
            shift = np.uint64(64 - DIGIT * (row + 1))
            digits = (peers >> shift) & np.uint64(15)
            own = digit(self.id, row)
            for column in range(16):
                here = peers[digits == column]
                if column != own and len(here):
                    chosen = here.tolist()
                    if len(chosen) > self.parameters.choices:
                        known = [peer for peer in chosen if peer in self._seconds]
                        room = max(0, self.parameters.choices - len(known))
                        # By identifier, so that a look that finds the same peers chooses the same ones.
                        spread = sorted(
                            chosen, key=lambda peer: (peer * 0x9E3779B97F4A7C15 ^ self.id) & 0xFFFF_FFFF
                        )
                        chosen = [*known, *(peer for peer in spread if peer not in self._seconds)][
                            : len(known) + room
                        ]
                    self._places[row, column] = chosen
            peers = peers[digits == own]
            if not len(peers):
                break

    def _receive_measure(self, sender: NodeId, message: Measure) -> None:
        self.world.send(sender, Measured(message.number))

    def _receive_measured(self, sender: NodeId, message: Measured) -> None:
        peer, sent = self._asked.pop(message.number, (None, 0.0))
        if peer == sender:
            seconds = self.world.now - sent
            if self.view.forgets:
                self._alive[sender] = self.world.now
            if seconds < self._seconds.get(sender, float("inf")):
                self._seconds[sender] = seconds
                self._router = None

    # Events.

    def _receive_event(self, sender: NodeId, message: ScribeEvent | LateEvent) -> None:
        event = message.event
        if message.hops > MOST_HOPS:
            return
        if not self._seen.first_time(event):
            self._passed.has(event.id, sender)
            return
        age = message.age if isinstance(message, LateEvent) else 0.0
        self._pass_on(event, message.hops, sender, age)
        self._hand_over(event, age)

    def _pass_on(self, event: Event, hops: int, source: NodeId | None, age: float = 0.0) -> int:
        """Along the tree; a node that is no part of it sends towards the root."""
        peers = [peer for peer in self.relays.neighbours(event.topic) if peer != source]
        if not self.relays.relays(event.topic):
            hop = self.router().next_hop(event.topic)
            peers = [] if hop in (self.id, source) else [hop]
        message = ScribeEvent(event, hops + 1)
        onward = aged_event(message, age)
        for peer in peers:
            self.world.send(peer, onward)
        self._passed.note(event.id, message, peers if source is None else [*peers, source], age)
        return len(peers)


SCRIBE = System(
    name="scribe",
    summary="one tree per topic over a Pastry-like ring that prefers near peers; relays need not want what they pass on",
    source="Scribe (JSAC 2002), as in Rappel §6.4",
    parameters=ScribeParameters,
    build=ScribeNode,
    connects_topics=True,
    needs="peers",
)
