"""An OMen node: the local view kept by gossip, churn handled by coordinators, events over the overlay's links.

Theory of operation
-------------------
- T-Man (Alg. 3) brings candidates together; `LocalView` (Alg. 2, 4) keeps from them the node's place on the circle and the backup
  sets of its L predecessors.
- A node watches its neighbours, and its L predecessors and successors. When a predecessor goes, `ChurnEvents` (Alg. 5) says who handles it, and
  `Repairs` runs Algorithm 1 over the shadow set.
- A node that has no neighbour on some topic (it joined, or wants something new) tells its successors so; the nearest one links it.
- Beyond the paper: at a start from nothing, and should more go wrong than L covers, `TopicBeacons` show which topics are in several
  parts, and the lowest member of a part has itself linked to a lower part by the same repair.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

from topicweave.blocks.broadcast_tree import BroadcastTree
from topicweave.blocks.descriptors import Descriptor
from topicweave.blocks.failure_detector import FailureDetector
from topicweave.blocks.tman import TMan, TManParams
from topicweave.blocks.topic_beacons import TopicBeacons
from topicweave.blocks.views import GossipView, InterestView
from topicweave.model.event import Event
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.port import Link, Node, Receipt, Receivers, TimerKey, Timers, World
from topicweave.systems.omen import circle
from topicweave.systems.omen.churn import ChurnEvents
from topicweave.systems.omen.highest_degree import HighestDegree
from topicweave.systems.omen.labels import LabelSpreading
from topicweave.systems.omen.links import OverlayLinks
from topicweave.systems.omen.local_view import LocalView, Predecessor
from topicweave.systems.omen.messages import (
    AddLink,
    Handled,
    Heartbeat,
    InterestQuery,
    InterestUpdate,
    Leaving,
    LinkMade,
    Links,
    LinksQuery,
    Report,
    Survey,
)
from topicweave.systems.omen.parameters import OMenParameters
from topicweave.systems.omen.repair import shadow_of_join, shadow_of_leave
from topicweave.systems.omen.repairs import Repairs, reporting_delay

TICK = 0.5
"""Seconds between looks at what is to be done."""
TOPICS_PER_LOOK = 8
CANDIDATES_PER_TOPIC = 5
REPORTS_AT_A_TIME = 64
PROMISES_PER_LINK = 8


class OMenNode(Node):
    """One node's half of OMen."""

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        subscriptions: Iterable[TopicId],
        view: InterestView,
        parameters: OMenParameters,
    ) -> None:
        super().__init__(world, node_id, subscriptions)
        self.parameters = parameters
        self.view = view
        self._publishing: set[TopicId] = set()
        self._interest: Interest = frozenset(self.subscriptions)
        self._interest_version = 0
        self._epoch = 0
        self._sequences: dict[TopicId, int] = {}
        # What this node was asked, by (coordinator, churned node), and when.
        self._surveys: dict[tuple[NodeId, NodeId], tuple[Survey, float]] = {}
        # Links asked for by coordinators, to be confirmed: by peer, (coordinator, churned node).
        self._promised: dict[NodeId, list[tuple[NodeId, NodeId]]] = {}
        # Topics this node leads although somebody lower wants them, and since when.
        self._parted: dict[TopicId, float] = {}
        size = parameters.view_size
        self.local = LocalView(node_id, parameters, world.random, lambda: world.now, self._everybody)
        self._tman = TMan(
            world,
            self._own_descriptor,
            self.local.select_view,
            self._sample,
            TManParams(
                view_size=size,
                message_size=size + parameters.samples + 1,
                psi=0,
                period=parameters.gossip_period,
                max_age=30 * parameters.gossip_period,
            ),
            self._view_changed,
        )
        self.links_kept = OverlayLinks(
            world,
            node_id,
            self._own_interest,
            self._link_up,
            self._link_down,
            self._no_answer,
            parameters.most_links,
        )
        self._detector = FailureDetector(
            world, parameters.heartbeat_period, parameters.suspect_after, self._beat, self.peer_lost
        )
        self._tree = BroadcastTree(
            world, self.links_kept.serving, self._takes_part_in, self._hand_over, parameters.tree
        )
        self._labels = LabelSpreading(
            world, node_id, self.links_kept.serving, self._takes_part_in, 4 * parameters.label_time
        )
        # The beacons only name the parts of topics; what to do about them is decided in `_look_at_parts`.
        self._beacons = TopicBeacons(
            world, node_id, self._topics, lambda topic: None, lambda peer: None, parameters.beacons
        )
        self.churn = ChurnEvents(
            world,
            node_id,
            2 * parameters.resilience,
            parameters.standby_time,
            self._in_predecessor_range,
            self._departure_done,
        )
        self._highest = HighestDegree(world, lambda: self.degree, parameters.most_links)
        self.repairs = Repairs(
            world,
            node_id,
            parameters,
            self._begin_survey,
            self._report,
            lambda churned, peer: self._promise(self.id, churned, peer),
            lambda: self._highest.tell()[0],
        )
        for block in (
            view,
            self._tman,
            self.links_kept,
            self._detector,
            self._tree,
            self._labels,
            self._beacons,
            self.churn,
            self.repairs,
        ):
            self.use(block)
        self.use(self)

    def receivers(self) -> Receivers:
        return {
            Heartbeat: self._receive_heartbeat,
            InterestQuery: self._receive_interest_query,
            InterestUpdate: self._receive_interest_update,
            LinksQuery: self._receive_links_query,
            Links: self._receive_links,
            Survey: self._receive_survey,
            AddLink: self._receive_add_link,
            Handled: self._receive_handled,
            Leaving: self._receive_leaving,
        }

    def timers(self) -> Timers:
        return {
            "omen-tick": self._tick,
            "omen-report": self._report_now,
            "publishing": self._stop_publishing,
        }

    # What the node is told.

    def start(self, contacts: Sequence[NodeId]) -> None:
        # Microseconds tell a new life's events from those of the last one, milliseconds its versions.
        self._epoch = self._epoch or 1 + int(self.world.now * 1e6)
        self._interest_version = max(self._interest_version, 1 + int(self.world.now * 1e3))
        self._surveys.clear()
        self._promised.clear()
        self._parted.clear()
        self.repairs.restart()
        self._labels.restart()
        self.links_kept.restart()
        self.links_kept.version += 1
        for departed in [*self.churn.executing, *self.churn.standby]:
            self.churn.handled(departed)
        self.view.set_interest(self._interest)
        self.view.start(contacts)
        self._tree.restart()
        self._tman.start()
        self._detector.start()
        self._beacons.start()
        for topic in self._publishing:
            self.world.set_timer(("publishing", topic), self.parameters.publisher_interest)
        self.world.set_timer(("omen-tick",), TICK * self.world.random.random())

    def resume(self, epoch: int, sequences: Mapping[TopicId, int]) -> None:
        self._epoch = epoch
        self._sequences = dict(sequences)

    def subscribe(self, topic: TopicId) -> None:
        self.subscriptions.add(topic)
        self._update_interest()

    def unsubscribe(self, topic: TopicId) -> None:
        self.subscriptions.discard(topic)
        self._update_interest()

    def publish(self, topic: TopicId, payload: bytes = b"") -> Receipt:
        if topic not in self.subscriptions:
            self._publishing.add(topic)
            self.world.set_timer(("publishing", topic), self.parameters.publisher_interest)
            self._update_interest()
        sequence = self._sequences.get(topic, 0)
        self._sequences[topic] = sequence + 1
        event = Event(self.id, topic, self._epoch, sequence, payload)
        sent_to = self._tree.publish(event)
        self._hand_over(event)
        if sent_to:
            return Receipt(event, sent_to)
        return Receipt(event, 0, "no neighbour wants this topic yet; the event goes to the first that does")

    def peer_lost(self, peer: NodeId) -> None:
        """A peer is gone, and has been silent for some time."""
        # Its last word came `suspect_after` ago or earlier, and its next one was due a period later.
        self._departed(
            peer, self.world.now - self.parameters.suspect_after + self.parameters.heartbeat_period
        )

    def _departed(self, peer: NodeId, gone: float) -> None:
        """If it is a predecessor, a churn event (Alg. 5); in any case a link less."""
        record = self.local.records.get(peer)
        self._detector.unwatch(peer)
        self._tman.forget(peer)
        self.view.lost(peer)
        self.links_kept.remove(peer)
        self._promised.pop(peer, None)
        # Only the departed itself could have told who its neighbours were.
        known = record is not None and record.ready and peer in self.local.predecessors
        if record is not None and known:
            record.gone = gone
            self.local.held.add(peer)
        self.local.forget(peer)
        self.local.place(self._alive())
        if known:
            self.churn.handle(peer, self._coordinator_of(peer))
            self._execute_churn()
        self._watch_ring()

    def leave(self) -> None:
        for peer in sorted({*self.links_kept.neighbours, *self.local.ring()}):
            self.world.send(peer, Leaving())
        self.view.leave()

    def links(self) -> Iterator[Link]:
        for peer in self.links_kept.neighbours:
            yield Link(peer, "tco")

    @property
    def degree(self) -> int:
        return len(self.links_kept.neighbours)

    def known_peers(self) -> set[NodeId]:
        return set(self._detector.watched).union(
            *(coordinator for coordinator in self._surveys),
            self._promised,
            (descriptor.id for descriptor in self._tman.view()),
            self.links_kept.known_peers(),
            self.local.known_peers(),
            self._tree.known_peers(),
            self._labels.known_peers(),
            self._beacons.known_peers(),
            self.churn.executing,
            self.churn.standby,
            self.repairs.known_peers(),
        )

    def gauges(self) -> Mapping[str, float]:
        records = self.local.records.values()
        sizes = [len(record.backups) for record in records]
        return {
            "backup_size": sum(sizes) / len(sizes) if sizes else 0.0,
            "local_view": float(self.local.size()),
            "standby": float(len(self.churn.standby)),
        }

    # Interest.

    def _own_interest(self) -> tuple[int, Interest]:
        return self._interest_version, self._interest

    def _topics(self) -> Interest:
        return self._interest

    def _takes_part_in(self, topic: TopicId) -> bool:
        return topic in self._interest

    def _hand_over(self, event: Event) -> None:
        if event.topic in self.subscriptions:
            self.world.deliver(event)

    def _stop_publishing(self, key: TimerKey) -> None:
        self._publishing.discard(key[1])
        self._update_interest()

    def _update_interest(self) -> None:
        interest = frozenset(self.subscriptions | self._publishing)
        if interest == self._interest:
            return
        dropped = self._interest - interest
        held = self.links_kept.held() & dropped
        neighbours = {peer for topic in held for peer in self.links_kept.serving(topic)}
        self._interest = interest
        self._interest_version += 1
        self.view.set_interest(interest)
        update = InterestUpdate(self._interest_version, interest)
        for peer in self.links_kept.neighbours:
            self.world.send(peer, update)
        for topic in sorted(dropped):
            self._tree.topic_down(topic)
            self._parted.pop(topic, None)
        self.links_kept.own_interest_changed()
        if held and not self.repairs.busy and self.id not in self.repairs:
            # To leave a topic is to leave the overlay as far as that topic goes; the node can see to it itself.
            pool = self._pool(held)
            backups = self.local.build_backups(self.id, held, pool)
            self.repairs.start(
                self.id,
                held,
                shadow_of_leave(backups, neighbours),
                self._unanswered,
                since=0.0,
                sources=neighbours,
                spread=held,
            )

    def _receive_interest_query(self, sender: NodeId, _message: InterestQuery) -> None:
        self.world.send(sender, InterestUpdate(*self._own_interest()))

    def _receive_interest_update(self, sender: NodeId, message: InterestUpdate) -> None:
        self._detector.heard(sender)
        self.links_kept.learn(sender, message.version, message.interest)

    # Gossip and the circle (Alg. 3, 4).

    def _own_descriptor(self) -> Descriptor:
        if isinstance(self.view, GossipView):
            return self.view.sampling.own()
        return Descriptor(self.id, 0.0, self._interest_version, self._interest)

    def _sample(self) -> list[Descriptor]:
        """rnd.view: what peer sampling has, or a draw from the directory, whose news is never old."""
        if isinstance(self.view, GossipView):
            # Peer sampling may keep the dead for longer than T-Man does: nobody that old is to become a backup again.
            descriptors = [
                descriptor
                for descriptor in self.view.sampling.descriptors()
                if descriptor.age <= self._tman.params.max_age
            ]
            return self.world.random.sample(descriptors, min(self.parameters.samples, len(descriptors)))
        slots = self.view.candidates()
        chosen = self.world.random.sample(range(len(slots)), min(self.parameters.samples, len(slots)))
        peers = [self.view.peer_at(slots[place]) for place in chosen]
        return [Descriptor(peer, 0.0, 0, self.view.interest_of(peer)) for peer in peers]

    def _everybody(self) -> Mapping[NodeId, Interest]:
        """All that the interest view knows (OMen-G)."""
        return {peer: self.view.interest_of(peer) for peer in self.view.peers()}

    def _alive(self) -> set[NodeId]:
        """Nodes this one may count on when it looks at the circle."""
        return {descriptor.id for descriptor in self._tman.view()} | self.local.ring()

    def _view_changed(self, _entered: list[NodeId], _left: list[NodeId]) -> None:
        self._watch_ring()

    def _watch_ring(self) -> None:
        ring = self.local.ring()
        for peer in self._detector.watched:
            if peer not in ring and peer not in self.links_kept.neighbours:
                self._detector.unwatch(peer)
        for peer in sorted(ring):
            self._detector.watch(peer)

    # Links.

    def _link_up(self, peer: NodeId, interest: Interest) -> None:
        self._detector.watch(peer)
        self._tree.link_up(peer, interest)
        # Should this node die next, its successors must know of the link: telling them comes before telling the coordinator.
        self._tell_links(self.local.successors)
        for coordinator, churned in self._promised.pop(peer, ()):
            self._confirm(coordinator, churned, peer)

    def _link_down(self, peer: NodeId) -> None:
        self._tree.link_down(peer)
        self._watch_ring()

    def _receive_add_link(self, sender: NodeId, message: AddLink) -> None:
        for peer in message.peers:
            self._promise(sender, message.churned, peer)

    def _promise(self, coordinator: NodeId, churned: NodeId, peer: NodeId) -> None:
        """Make a link, and confirm it to the coordinator when it stands."""
        if peer in self.links_kept.neighbours:
            self._confirm(coordinator, churned, peer)
        elif self.links_kept.ask(peer):
            promised = self._promised.setdefault(peer, [])
            if (coordinator, churned) not in promised and len(promised) < PROMISES_PER_LINK:
                promised.append((coordinator, churned))

    def _confirm(self, coordinator: NodeId, churned: NodeId, peer: NodeId) -> None:
        if coordinator == self.id:
            self.repairs.link_made(churned, self.id, peer)
        else:
            self.world.send(coordinator, LinkMade(churned, peer))

    def _no_answer(self, peer: NodeId) -> None:
        self._promised.pop(peer, None)
        self.view.lost(peer)

    def _receive_leaving(self, sender: NodeId, _message: Leaving) -> None:
        self._departed(sender, self.world.now)

    # Heartbeats.

    def _beat(self, peers: Iterable[NodeId]) -> None:
        for peer in peers:
            self._send_heartbeat(peer, answer=False)

    def _send_heartbeat(self, peer: NodeId, answer: bool) -> None:
        neighbour = self.links_kept.neighbours.get(peer)
        beacons = (
            self._beacons.tell(sorted(neighbour.interest & self._interest))
            if neighbour is not None and (self.parameters.bridges or self.parameters.components == "beacons")
            else ()
        )
        versions = (self._interest_version, self.links_kept.version)
        self.world.send(
            peer, Heartbeat(neighbour is not None, *versions, *self._highest.tell(), answer, beacons)
        )

    def _receive_heartbeat(self, sender: NodeId, message: Heartbeat) -> None:
        self._detector.heard(sender)
        self._highest.hear(message.highest, message.highest_age)
        neighbour = self.links_kept.neighbours.get(sender)
        if message.linked != (neighbour is not None):
            self.links_kept.confirm(sender)
        elif neighbour is not None:
            self._beacons.hear(message.beacons)
            if neighbour.version != message.interest_version:
                self.world.send(sender, InterestQuery())
        record = self.local.records.get(sender)
        if record is not None and (record.links is None or record.links.version != message.links_version):
            self.world.send(sender, LinksQuery())
        if not message.answer and sender not in self._detector.watched:
            self._send_heartbeat(sender, answer=True)

    def _receive_links_query(self, sender: NodeId, _message: LinksQuery) -> None:
        self._tell_links([sender])

    def _tell_links(self, peers: Sequence[NodeId]) -> None:
        kept = self.links_kept
        links = Links(kept.version, self._interest, tuple(kept.neighbours), kept.held(), kept.lonely())
        for peer in peers:
            self.world.send(peer, links)

    def _receive_links(self, sender: NodeId, message: Links) -> None:
        record = self.local.records.get(sender)
        if record is None or len(message.neighbours) > self.parameters.most_links:
            return
        record.links = message
        record.interest = message.interest
        if not message.lonely:
            record.lonely_since = None
        elif record.lonely_since is None:
            record.lonely_since = self.world.now

    # Churn (Alg. 5).

    def _coordinator_of(self, churned: NodeId) -> NodeId:
        return circle.successors(churned, {self.id, *self._alive()} - {churned}, 1)[0]

    def _in_predecessor_range(self, churned: NodeId) -> bool:
        return circle.is_in_predecessor_range(
            self.id, churned, self.local.predecessors, self.parameters.resilience
        )

    def _departure_done(self, churned: NodeId) -> None:
        self.local.held.discard(churned)
        if churned not in self.local.predecessors:
            self.local.records.pop(churned, None)

    def _tick(self, _key: TimerKey) -> None:
        self.world.set_timer(("omen-tick",), TICK)
        self._watch_ring()
        self._execute_churn()
        self._link_predecessor()
        if self.parameters.bridges:
            self._look_at_parts()

    def _execute_churn(self) -> None:
        """processExeQ: one departure after another."""
        while (event := self.churn.next()) is not None:
            if event.node in self.repairs or self.repairs.busy:
                return
            record = self.local.records[event.node]
            if self._repair_departure(event.node, record):
                return
            self._complete(event.node, ())

    def _repair_departure(self, departed: NodeId, record: Predecessor) -> bool:
        """Start a repair, unless nothing can have come apart."""
        assert record.links is not None
        topics = record.links.held
        # The departed's neighbours as it told them; some of them may have gone, too, and will not answer.
        neighbours = set(record.links.neighbours) - {departed}
        backups = [peer for peer, interest in record.backups.items() if interest & topics]
        members = shadow_of_leave(backups, neighbours)
        if not topics or len(members) < 2:
            return False
        how = self.parameters.components
        self.repairs.start(
            departed,
            topics,
            members,
            partial(self._complete, departed),
            since=self.world.now - record.gone,
            sources=() if how == "shadow" else neighbours,
            spread=topics if how == "spread" else frozenset(),
        )
        return True

    def _complete(self, departed: NodeId, silent: Collection[NodeId]) -> None:
        """notifySuccRange: all who stand by may forget it."""
        self.churn.handled(departed)
        for peer in self.local.successors:
            self.world.send(peer, Handled(departed))
        self._unanswered(silent)

    def _unanswered(self, silent: Collection[NodeId]) -> None:
        for peer in silent:
            if peer not in self._detector.watched:
                self.view.lost(peer)

    def _receive_handled(self, sender: NodeId, message: Handled) -> None:
        if message.churned not in self.repairs:
            self.churn.handled(message.churned)

    # Joins: a predecessor without a neighbour on some topic.

    def _link_predecessor(self) -> None:
        if not self.local.predecessors or self.repairs.busy:
            return
        nearest = self.local.predecessors[0]
        record = self.local.records[nearest]
        now = self.world.now
        if (
            record.links is None
            or record.lonely_since is None
            or now - record.lonely_since < self.parameters.join_patience
            or nearest in self.repairs
        ):
            return
        record.lonely_since = now
        topics = record.links.lonely
        pool = {peer: interest for peer, interest in record.backups.items() if interest & topics}
        pool.update(self._pool(topics))
        backups = self.local.build_backups(nearest, topics, pool)
        if backups:
            members = shadow_of_join(backups, nearest)
            self.repairs.start(nearest, topics, members, self._unanswered, part_of=nearest)

    def _pool(self, topics: Collection[TopicId]) -> dict[NodeId, Interest]:
        """A few subscribers of each topic, as the interest view knows them; and this node."""
        pool = {}
        for topic in sorted(topics):
            known = self.view.subscribers(topic).tolist()
            for peer in self.world.random.sample(known, min(CANDIDATES_PER_TOPIC, len(known))):
                pool[peer] = self.view.interest_of(peer)
        if self._interest.intersection(topics):
            pool[self.id] = self._interest
        return pool

    # Mending parts (beyond the paper).

    def _look_at_parts(self) -> None:
        """The lowest member of a part of a topic joins it to others, if it goes on to know of lower subscribers."""
        now, rng = self.world.now, self.world.random
        topics = sorted(self._interest)
        some = rng.sample(topics, min(TOPICS_PER_LOOK, len(topics)))
        for topic in {**dict.fromkeys(some), **self._parted}:
            lower = self._beacons.leader(topic) == self.id and self._knows_lower(topic)
            if lower:
                self._parted.setdefault(topic, now)
            else:
                self._parted.pop(topic, None)
        due = frozenset(
            topic for topic, since in self._parted.items() if now - since >= self.parameters.beacons.patience
        )
        if not due or self.repairs.busy or self.id in self.repairs:
            return
        for topic in due:
            self._parted[topic] = now
        pool = self._pool(due)
        pool.pop(self.id, None)
        self.repairs.start(self.id, due, {self.id, *pool}, self._unanswered, part_of=self.id)

    def _knows_lower(self, topic: TopicId) -> bool:
        subscribers = self.view.subscribers(topic)
        return bool(len(subscribers)) and int(subscribers.min()) < self.id

    # Surveys, as a member of a shadow set.

    def _receive_survey(self, sender: NodeId, message: Survey) -> None:
        key = (sender, message.churned)
        if len(self._surveys) >= REPORTS_AT_A_TIME and key not in self._surveys:
            return
        self._surveys[key] = (message, self.world.now)
        self._begin_survey(message, sender)
        self.world.set_timer(("omen-report", *key), reporting_delay(message, self.parameters))

    def _begin_survey(self, survey: Survey, coordinator: NodeId | None = None) -> None:
        """As a neighbour of the departed, spread labels where they are asked for, and where it led the topic: beacons are of no use there."""
        if survey.source:
            led = {topic for topic in survey.topics if self._beacons.leader(topic) == survey.churned}
            topics = (survey.spread | led) & self._interest
            if topics:
                self._labels.begin((self.id if coordinator is None else coordinator, survey.churned), topics)

    def _report_now(self, key: TimerKey) -> None:
        survey, asked = self._surveys.pop((key[1], key[2]), (None, 0.0))
        if survey is not None:
            self.world.send(key[1], self._report(key[1], survey, self.world.now - asked))

    def _report(self, coordinator: NodeId, survey: Survey, age: float) -> Report:
        topics = survey.topics & self._interest
        if survey.since is None:
            labels = {topic: self._beacons.leader(topic) for topic in sorted(topics)}
        else:
            # Without a label this node is in a part of its own, as far as anybody knows.
            labels = dict.fromkeys(sorted(topics), self.id)
            for beacon in self._beacons.tell(sorted(topics - survey.spread)):
                if beacon.leader != survey.churned and beacon.age < survey.since + age:
                    labels[beacon.topic] = beacon.leader
            labels.update(self._labels.labels((coordinator, survey.churned), topics))
        neighbours = tuple(peer for peer in survey.members if peer in self.links_kept.neighbours)
        lonely = self.links_kept.lonely() & topics
        return Report(survey.churned, self.degree, topics, neighbours, tuple(labels.items()), lonely)


def complaints(node: Node) -> Iterator[str]:
    """What must hold of a node at rest: no departure is left over, and lists of them never outgrew what the paper says (§5)."""
    assert isinstance(node, OMenNode)
    left = {*node.churn.executing, *node.churn.standby, *node.local.held}
    if left:
        yield f"has {len(left)} departures that nobody reported as handled"
    most = 2 * node.parameters.resilience
    if node.churn.most > most:
        yield f"kept {node.churn.most} departures at a time, more than {most}"
    if len(node.local.records) > most:
        yield f"keeps records of {len(node.local.records)} predecessors, more than {most}"
