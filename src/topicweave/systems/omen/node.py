"""An OMen node: the local view kept by gossip, churn handled by coordinators, events over the overlay's links.

Theory of operation
-------------------
- T-Man (Alg. 3) brings candidates together; `LocalView` (Alg. 2, 4) keeps from them the node's place on the
  circle and the backup sets of its L predecessors.
- A node watches its neighbours, and its L predecessors and successors. When a predecessor goes, its
  `Coordinator` half sees to it: `ChurnEvents` (Alg. 5) says who handles it, and `Repairs` runs Algorithm 1
  over the shadow set, whose nodes answer as `ShadowMember`.
- A node that has no neighbour on some topic (it joined, or wants something new) tells its successors so; the
  nearest one links it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from topicweave.blocks.broadcast_tree import BroadcastTree
from topicweave.blocks.broadcast_tree.node import TreeNode
from topicweave.blocks.descriptors import Descriptor
from topicweave.blocks.failure_detector import FailureDetector
from topicweave.blocks.interest_news import InterestNews
from topicweave.blocks.tman import TMan, TManParams
from topicweave.blocks.topic_beacons import TopicBeacons
from topicweave.blocks.topic_directory import Parts
from topicweave.blocks.views import GossipView, InterestView
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.port import Link, Receivers, TimerKey, Timers, World
from topicweave.systems.omen.coordinator import Coordinator
from topicweave.systems.omen.finding import Finding
from topicweave.systems.omen.highest_degree import HighestDegree
from topicweave.systems.omen.labels import LabelSpreading
from topicweave.systems.omen.links import OverlayLinks
from topicweave.systems.omen.local_view import LocalView
from topicweave.systems.omen.member import ShadowMember
from topicweave.systems.omen.messages import (
    Heartbeat,
    InterestQuery,
    InterestUpdate,
    Leaving,
    Links,
    LinksQuery,
)
from topicweave.systems.omen.parameters import OMenParameters
from topicweave.systems.omen.repairs import Repairs

TICK = 0.5
"""Seconds between looks at what is to be done."""


class OMenNode(TreeNode):
    """One node's half of OMen."""

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        subscriptions: Iterable[TopicId],
        view: InterestView,
        parameters: OMenParameters,
    ) -> None:
        super().__init__(world, node_id, subscriptions, view, parameters.publisher_interest)
        self.parameters = parameters
        size = parameters.view_size
        self.local = LocalView(node_id, parameters, world.random, lambda: world.now, self._everybody)
        self._tman = TMan(
            *(world, self._own_descriptor, self.local.select_view, self._sample),
            TManParams(
                view_size=size,
                message_size=size + parameters.samples + 1,
                psi=0,
                period=parameters.gossip_period,
                max_age=30 * parameters.gossip_period,
            ),
            self._view_changed,
            profiles=view.profiles if isinstance(view, GossipView) else None,
            strangers=self.local.worth_asking if self._finds(view) else None,
        )
        self.links_kept = OverlayLinks(
            *(world, node_id, self._own_interest, self._link_up, self._link_down, self._no_answer),
            parameters.most_links,
        )
        self._news = InterestNews(
            *(world, self._own_interest, self.links_kept.told_by, self._note_interest),
            *(InterestUpdate, InterestQuery()),
        )
        self._detector = FailureDetector(
            world,
            parameters.heartbeat_period,
            parameters.suspect_after,
            self._beat,
            self.peer_lost,
            ask=self._ask,
        )
        self._tree = BroadcastTree(
            world, self.links_kept.serving, self._takes_part_in, self._hand_over, parameters.tree
        )
        self._labels = LabelSpreading(
            world, node_id, self.links_kept.serving, self._takes_part_in, 4 * parameters.label_time
        )
        # The beacons only name the parts of topics; what to do about them is decided by the `Coordinator`, or
        # by `Finding`.
        self._beacons = TopicBeacons(
            *(world, node_id, self._topics, lambda topic: None, lambda peer: None),
            *(parameters.beacons, parameters.heartbeat_period),
        )
        self._member = ShadowMember(
            *(world, node_id, parameters, self._topics, self.links_kept, self._labels, self._beacons),
            self._link_made,
        )
        self._highest = HighestDegree(world, lambda: self.degree, parameters.most_links)
        repairs = Repairs(world, node_id, parameters, self._member, lambda: self._highest.tell()[0])
        self.coordinator = Coordinator(
            *(world, node_id, parameters, self.local, view, self._beacons, repairs),
            interest=self._topics,
            alive=self._alive,
            watches=self._detector.__contains__,
        )
        self._finding = self._found_by(view)
        for block in (
            self._tman,
            self.links_kept,
            self._detector,
            self._news,
            self._tree,
            self._labels,
            self._beacons,
            self._member,
            self.coordinator,
            self,
        ):
            self.use(block)

    def _found_by(self, view: InterestView) -> Finding | None:
        """Finding other parts through the directory, where there is one and it is to be used."""
        if not self._finds(view):
            return None
        finding = Finding(
            *(self.world, self.id, self.parameters, view, self.links_kept, self._beacons),
            interest=self._topics,
        )
        beacons = self._beacons
        view.serve(Parts(beacons.lifetime, beacons.leader, beacons.leading, finding.introduced))
        return finding

    def _finds(self, view: InterestView) -> bool:
        """Whether the node finds others itself. Otherwise coordinators link whom their views hold, and these
        have to hold many.
        """
        return view.introduces and self.parameters.finds == "directory"

    def receivers(self) -> Receivers:
        return {
            Heartbeat: self._receive_heartbeat,
            InterestQuery: self._receive_interest_query,
            InterestUpdate: self._receive_interest_update,
            LinksQuery: self._receive_links_query,
            Links: self._receive_links,
            Leaving: self._receive_leaving,
        }

    def timers(self) -> Timers:
        return {"omen-tick": self._tick}

    # What the node is told.

    def start(self, contacts: Sequence[NodeId]) -> None:
        super().start(contacts)
        self._interest_version = max(self._interest_version, 1 + int(self.world.now * 1e3))
        self._member.restart()
        self.coordinator.restart()
        self._labels.restart()
        self.links_kept.restart()
        self.links_kept.version += 1
        self._tree.restart()
        self._tman.start()
        self._detector.start()
        self._beacons.start()
        self.world.set_timer(("omen-tick",), TICK * self.world.random.random())

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
        self._member.no_link(peer)
        # Only the departed itself could have told who its neighbours were.
        known = record is not None and record.ready and peer in self.local.predecessors
        if record is not None and known:
            record.gone = gone
            self.local.held.add(peer)
        self.local.forget(peer)
        self.local.place(self._alive())
        if known:
            self.coordinator.departed(peer)
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
            (descriptor.id for descriptor in self._tman.view()),
            self.links_kept.known_peers(),
            self.local.known_peers(),
            self._tree.known_peers(),
            self._labels.known_peers(),
            self._beacons.known_peers(),
            self._member.known_peers(),
            self.coordinator.known_peers(),
            self._news.known_peers(),
        )

    def gauges(self) -> Mapping[str, float]:
        records = self.local.records.values()
        sizes = [len(record.backups) for record in records]
        return {
            "backup_size": sum(sizes) / len(sizes) if sizes else 0.0,
            "local_view": float(self.local.size()),
            "standby": float(len(self.coordinator.churn.standby)),
        }

    # Interest.

    def _interest_changed(self, before: Interest) -> None:
        super()._interest_changed(before)
        dropped = before - self._interest
        held = self.links_kept.held(before) & dropped
        neighbours = {peer for topic in held for peer in self.links_kept.serving(topic)}
        self._news.tell(self.links_kept.neighbours, before)
        for topic in sorted(dropped):
            self._tree.topic_down(topic)
        for topic in sorted(self._interest - before):
            self._tree.topic_up(topic)
        self.coordinator.forget_topics(dropped)
        self.links_kept.own_interest_changed()
        self.coordinator.left_topics(held, neighbours)

    def _receive_interest_query(self, sender: NodeId, _message: InterestQuery) -> None:
        self._news.tell_all(sender)

    def _receive_interest_update(self, sender: NodeId, message: InterestUpdate) -> None:
        self._news.heard_all(sender)
        self._note_interest(sender, message.version, message.interest)

    def _note_interest(self, peer: NodeId, version: int, interest: Interest) -> None:
        """A peer told what it wants."""
        self._detector.heard(peer)
        self.view.said(peer, interest)
        self.links_kept.learn(peer, version, interest)

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
        self.view.said(peer, interest)
        self._tree.link_up(peer, interest)
        # Should this node die next, its successors must know of the link: telling them comes before telling
        # the coordinator.
        self._tell_links(self.local.successors)
        self._member.link_up(peer)

    def _link_down(self, peer: NodeId) -> None:
        self._news.heard_all(peer)
        self._tree.link_down(peer)
        self._watch_ring()

    def _link_made(self, churned: NodeId, end: NodeId, peer: NodeId) -> None:
        self.coordinator.repairs.link_made(churned, end, peer)

    def _no_answer(self, peer: NodeId) -> None:
        self._member.no_link(peer)
        self.view.lost(peer)

    def _receive_leaving(self, sender: NodeId, _message: Leaving) -> None:
        self._departed(sender, self.world.now)

    # Heartbeats.

    def _beat(self, peers: Iterable[NodeId]) -> None:
        highest = self._highest.tell()
        for peer in peers:
            self._send_heartbeat(peer, highest, answer=False)
            self.view.spoke(peer)

    def _ask(self, peers: Iterable[NodeId]) -> None:
        highest = self._highest.tell()
        for peer in peers:
            self._send_heartbeat(peer, highest, answer=False, asks=True)

    def _send_heartbeat(
        self, peer: NodeId, highest: tuple[int, float], answer: bool, asks: bool = False
    ) -> None:
        neighbour = self.links_kept.neighbours.get(peer)
        labels = (
            self._beacons.tell(neighbour.interest)
            if neighbour is not None and (self.parameters.bridges or self.parameters.components == "beacons")
            else None
        )
        versions = (self._interest_version, self.links_kept.version)
        self.world.send(peer, Heartbeat(neighbour is not None, *versions, *highest, answer, labels, asks))

    def _receive_heartbeat(self, sender: NodeId, message: Heartbeat) -> None:
        self._detector.heard(sender)
        self.view.heard(sender)
        self._highest.hear(message.highest, message.highest_age)
        neighbour = self.links_kept.neighbours.get(sender)
        if message.linked != (neighbour is not None):
            self.links_kept.confirm(sender)
        elif neighbour is not None:
            if message.labels is not None:
                self._beacons.hear(neighbour.interest, message.labels)
            if neighbour.version != message.interest_version:
                self.world.send(sender, InterestQuery())
        record = self.local.records.get(sender)
        if record is not None and (record.links is None or record.links.version != message.links_version):
            self.world.send(sender, LinksQuery())
        if message.asks or (not message.answer and sender not in self._detector):
            self._send_heartbeat(sender, self._highest.tell(), answer=True)

    def _receive_links_query(self, sender: NodeId, _message: LinksQuery) -> None:
        self._tell_links([sender])

    def _tell_links(self, peers: Sequence[NodeId]) -> None:
        kept = self.links_kept
        links = Links(
            kept.version, self._interest, tuple(kept.neighbours), kept.held(self._interest), kept.lonely()
        )
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

    def _tick(self, _key: TimerKey) -> None:
        self.world.set_timer(("omen-tick",), TICK)
        self._watch_ring()
        if self._finding is not None:
            self._finding.look()
        self.coordinator.look(finds=self._finding is None)
