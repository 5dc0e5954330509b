"""A node of a rendezvous overlay: what Vitis and RVR have in common.

Peer sampling (Newscast) and T-Man keep the routing table; profiles go over the links as heartbeats (Alg. 6,
7); relay paths lead to the topics' rendezvous; events are spread by notification. A system adds whom it wants
in the table besides the ring, which topics a node asks for a relay path for, and who gets events besides the
relays.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from topicweave.blocks.descriptors import Descriptor
from topicweave.blocks.failure_detector import FailureDetector
from topicweave.blocks.interest_node import InterestNode
from topicweave.blocks.newscast import Newscast
from topicweave.blocks.notify_pull import NotifyPull
from topicweave.blocks.profiles import Profiles
from topicweave.blocks.relay_paths import RelayPaths
from topicweave.blocks.tman import TMan, TManParams
from topicweave.model.event import Event
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.port import Block, Link, Node, Receivers, Timers, World
from topicweave.systems.vitis.changes import change, changed
from topicweave.systems.vitis.links import LinkEnd, LinkTable
from topicweave.systems.vitis.messages import (
    Alive,
    Gone,
    Parted,
    Profile,
    ProfileChange,
    Refused,
    TellProfile,
)
from topicweave.systems.vitis.parameters import RendezvousParameters
from topicweave.systems.vitis.selection import TableSelection, Utilities


class RendezvousNode(InterestNode):
    """Links, paths and events; see the module."""

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        subscriptions: Iterable[TopicId],
        parameters: RendezvousParameters,
        small_world: int,
    ) -> None:
        super().__init__(world, node_id, subscriptions)
        self.parameters = parameters
        self.table = LinkTable(node_id)
        self._own_profiles: dict[bool, Profile] = {}
        self._profile_number = 0
        self._last_change: ProfileChange | None = None
        book = Profiles(world, node_id) if parameters.names_first else None
        self.sampling = Newscast(world, node_id, self._interest, parameters.sampling, book)
        self._selection = TableSelection(
            world, self.sampling, self.table, parameters, small_world, self._utilities()
        )
        self.tman = TMan(
            world,
            self.sampling.own,
            self._selection.rank,
            self._selection.candidates,
            TManParams(
                view_size=parameters.table_size,
                message_size=parameters.message_size,
                period=parameters.period,
                rest_period=parameters.rest_period,
                # What is in the table is refreshed by heartbeats; silence is the failure detector's to judge.
                max_age=_MAX_AGE * parameters.heartbeat_period,
                max_topics=parameters.max_topics,
            ),
            self._table_changed,
            self._selection.partner,
            book,
        )
        self._detector = FailureDetector(
            world, parameters.heartbeat_period, parameters.suspect_after, self._beat, self._silent
        )
        self._events = NotifyPull(world, self._notified, self._hand_over, parameters.spreading)
        self.relays = RelayPaths(
            world, node_id, self.table.router, self._topics_to_relay, parameters.relay, self._events.appeared
        )
        gossip: tuple[Block, ...] = (
            (self.sampling, self.tman) if book is None else (book, self.sampling, self.tman)
        )
        for block in (*gossip, self._detector, self.relays, self._events, self):
            self.use(block)

    def receivers(self) -> Receivers:
        return {
            Profile: self._receive_profile,
            ProfileChange: self._receive_change,
            Alive: self._receive_alive,
            TellProfile: self._receive_tell,
            Parted: self._receive_parted,
            Refused: self._receive_refused,
            Gone: self._receive_gone,
        }

    def timers(self) -> Timers:
        return {}

    # What a system fills in.

    @abstractmethod
    def _topics_to_relay(self) -> Collection[TopicId]:
        """The topics that this node wants a relay path for itself."""

    def _utilities(self) -> Utilities | None:
        """How to tell how good friends peers would be; None if there are no friends."""
        return None

    def _floods(self, topic: TopicId, source: NodeId | None) -> bool:
        """Whether an event goes to interested neighbours, too, or along relay paths only."""
        return False

    def _proposals(self) -> bytes:
        """What goes with the profile."""
        return b""

    def _heard(self, peer: NodeId, message: Profile) -> None:
        """A neighbour's profile came over a link that is there to stay."""

    def _link_ended(self, peer: NodeId) -> None:
        """A link began to fade, or is gone."""

    def _before_beat(self) -> None:
        """Once per heartbeat, before it goes out."""

    def _wants_something_else(self) -> None:
        """The interest changed, and others are about to be told."""

    # What the node is told.

    def start(self, contacts: Sequence[NodeId]) -> None:
        super().start(contacts)
        self._events.restart()
        self.sampling.start(contacts)
        self.tman.start()
        self.relays.start()
        self._detector.start()

    def _interest_changed(self, before: Interest) -> None:
        self.sampling.profile = self._interest
        self._wants_something_else()
        self._profile_is_out_of_date()
        for peer in self.table:
            self._send_profile(peer)

    def _spread(self, event: Event) -> int:
        return self._events.publish(event)

    def _reached_nobody(self, topic: TopicId) -> str:
        if not len(self.table):
            return "this node has no neighbours yet"
        return "no neighbour wants this topic or relays it, and its rendezvous is this node"

    def peer_lost(self, peer: NodeId) -> None:
        self._end_link(peer)
        self.tman.forget(peer)
        self.sampling.forget(peer)
        self.relays.lost(peer)
        self._events.lost(peer)

    def leave(self) -> None:
        for peer in dict.fromkeys([*self.table, *sorted(self.relays.known_peers())]):
            self.world.send(peer, Gone())

    def links(self) -> Iterator[Link]:
        return self.table.listed()

    def known_peers(self) -> set[NodeId]:
        return {
            *self.table,
            *self._detector.watched,
            *(descriptor.id for descriptor in self.tman.view()),
            *self._selection.known_peers(),
            *self.relays.known_peers(),
            *self._events.known_peers(),
        }

    @property
    def degree(self) -> int:
        return len(self.table)

    def gauges(self) -> Mapping[str, float]:
        fans = len(self.table.fans())
        return {
            "table": float(len(self.table) - fans),
            "fans": float(fans),
            "relayed_topics": float(self.relays.topics),
            "requested_paths": float(len(self._topics_to_relay())),
        }

    # The routing table (Alg. 2 to 4).

    def _table_changed(self, entered: list[NodeId], left: list[NodeId]) -> None:
        for peer in left:
            self._drop(peer)
        for peer in entered:
            self._choose(peer)
        for peer, (_, kind) in self._selection.ranked.items():
            if (neighbour := self.table.get(peer)) is not None:
                neighbour.kind = kind

    def _choose(self, peer: NodeId) -> None:
        neighbour = self.table.get(peer)
        if neighbour is None:
            neighbour = self.table.add(peer, self._selection.ranked[peer][0])
            self._detector.watch(peer)
        elif neighbour.fading:
            self._detector.heard(peer)  # a new term: nothing had to be heard while the link faded
        neighbour.chosen = True
        self.table.hold(peer)
        self._send_profile(peer)
        self._events.link_up()

    def _drop(self, peer: NodeId) -> None:
        neighbour = self.table.get(peer)
        if neighbour is not None and neighbour.chosen:
            neighbour.chosen = False
            most = self.parameters.most_fans
            if len(self.table) > most and len(self.table.fans()) > most:
                self._end_link(peer)
                self.world.send(peer, Refused() if neighbour.fan else Parted())
            elif not neighbour.fan:
                self._fade(peer)
                self.world.send(peer, Parted())

    def _fade(self, peer: NodeId) -> None:
        self.table.fade(peer, self.world.now + self.parameters.linger)
        self._link_ended(peer)

    def _silent(self, peer: NodeId) -> None:
        """Nothing was heard of a peer for long. Over a link that fades nothing has to be."""
        neighbour = self.table.get(peer)
        if neighbour is not None and neighbour.fading:
            self._end_link(peer)
        else:
            self.peer_lost(peer)

    def _end_link(self, peer: NodeId) -> None:
        if self.table.remove(peer) is not None:
            self._detector.unwatch(peer)
            self._link_ended(peer)

    # Profiles (Alg. 6, 7).

    def _profile_is_out_of_date(self) -> None:
        self._own_profiles.clear()

    def _profile(self, chosen: bool) -> Profile:
        """Made once for all neighbours, as long as nothing in it changes."""
        profile = self._own_profiles.get(chosen)
        own = self.sampling.own()
        if profile is None or profile.descriptor.version != own.version:
            self._profile_number = max(self._profile_number, int(self.world.now * 1000.0)) + 1
            profile = Profile(own, chosen, self._proposals(), self._profile_number)
            self._own_profiles[chosen] = profile
        return profile

    def _send_profile(self, peer: NodeId, all_of_it: bool = False) -> None:
        neighbour = self.table.get(peer)
        if neighbour is not None and not neighbour.fading:
            profile = self._profile(neighbour.chosen)
            news = None if all_of_it else self._news(peer, neighbour.told, profile)
            neighbour.told = profile
            self.world.send(peer, news or profile)

    def _news(self, peer: NodeId, told: Profile | None, profile: Profile) -> ProfileChange | None:
        """What somebody who has one profile lacks of another, if that is less than all; made once for all
        neighbours in a row.
        """
        if told is None or not self.parameters.names_first or not self.world.understands(peer, ProfileChange):
            return None
        last = self._last_change
        if last is None or last.since != told.number or last.number != profile.number:
            last = self._last_change = change(told, profile)
        return last

    def _beat(self, _watched: Iterable[NodeId]) -> None:
        for peer in self.table.faded(self.world.now):
            self._end_link(peer)
        self._before_beat()
        table, send, brief = self.table, self.world.send, self.parameters.names_first
        # Equal messages in a row: the world need not measure each anew.
        for chosen in (True, False):
            profile = self._profile(chosen)
            alive = Alive(profile.number, chosen)
            for peer, neighbour in table.items():
                if neighbour.chosen is chosen and not neighbour.fading:
                    told = neighbour.told
                    send(
                        peer,
                        alive if brief and told is profile else self._news(peer, told, profile) or profile,
                    )
                    neighbour.told = profile

    def _receive_alive(self, sender: NodeId, message: Alive) -> None:
        self._detector.heard(sender)
        neighbour = self.table.get(sender)
        if (
            neighbour is None
            or neighbour.number != message.number
            or neighbour.fan is not message.chosen
            or neighbour.fading
        ):
            self.world.send(sender, TellProfile())
        elif neighbour.chosen:
            self.tman.refresh(neighbour.descriptor)

    def _receive_tell(self, sender: NodeId, _message: TellProfile) -> None:
        if sender in self.table:
            self._send_profile(sender, all_of_it=True)
        else:
            self.world.send(sender, Parted())

    def _receive_change(self, sender: NodeId, message: ProfileChange) -> None:
        neighbour = self.table.get(sender)
        profile = neighbour.said if neighbour is not None else None
        if profile is not None and profile.number != message.number:  # else a second copy
            profile = changed(profile, message) if profile.number == message.since else None
        if profile is not None:
            self._receive_profile(sender, profile)
        else:
            self._detector.heard(sender)
            self.world.send(sender, TellProfile())

    def _receive_profile(self, sender: NodeId, message: Profile) -> None:
        self._detector.heard(sender)
        neighbour = self.table.get(sender)
        if neighbour is not None and neighbour.said is message and not neighbour.fading:
            # In the simulator, where messages pass by reference, this is most of them.
            self._note(neighbour, message.descriptor)
            return
        descriptor = message.descriptor
        if (
            descriptor.id != sender
            or sender == self.id
            or len(descriptor.profile) > self.parameters.max_topics
            or descriptor.version < 0
        ):
            return
        if neighbour is None:
            neighbour = self._meet(sender, message)
            if neighbour is None:
                return
        neighbour.fan = message.chosen
        if message.chosen:
            self.table.hold(sender)
        elif not neighbour.chosen:
            # Both ends let go at about the same time, and this one takes us for one that still holds on.
            if not neighbour.fading:
                self._fade(sender)
            self.world.send(sender, Parted())
        self._note(neighbour, descriptor)
        if not neighbour.fading:
            neighbour.said, neighbour.number = message, message.number
            self._heard(sender, message)

    def _meet(self, sender: NodeId, message: Profile) -> LinkEnd | None:
        """A profile from a stranger."""
        if not message.chosen:
            # It takes us for one who chose it: some message was lost or overtaken. One word sets it right.
            self.world.send(sender, Parted())
            return None
        most = self.parameters.most_fans
        if len(self.table) >= most and len(self.table.fans()) >= most:
            self.world.send(sender, Refused())
            return None
        neighbour = self.table.add(sender, message.descriptor)
        self._detector.watch(sender)
        self._send_profile(sender)
        self._events.link_up()
        return neighbour

    def _note(self, neighbour: LinkEnd, descriptor: Descriptor) -> None:
        neighbour.descriptor = descriptor
        if neighbour.chosen:
            self.tman.refresh(descriptor)

    def _receive_parted(self, sender: NodeId, _message: Parted) -> None:
        neighbour = self.table.get(sender)
        if neighbour is not None:
            neighbour.fan = False
            if neighbour.chosen:
                self._send_profile(sender, all_of_it=True)
            elif not neighbour.fading:
                self._fade(sender)

    def _receive_refused(self, sender: NodeId, _message: Refused) -> None:
        self._end_link(sender)
        self.tman.forget(sender)

    def _receive_gone(self, sender: NodeId, _message: Gone) -> None:
        self.peer_lost(sender)

    # Events (§III-C).

    def _notified(self, topic: TopicId, source: NodeId | None) -> Iterable[NodeId]:
        """Interested neighbours, and up and down the relay path.

        A node that has nothing to do with the topic (it publishes without wanting it, or was told by mistake), or knows
        nobody else who has (it joined just now), hands the event on towards the rendezvous, where all paths meet.
        """
        peers = dict.fromkeys(self.relays.neighbours(topic))
        if self._floods(topic, source):
            peers.update(dict.fromkeys(self.table.interested(topic)))
        if not peers or (topic not in self._interest and not self.relays.relays(topic)):
            hop = self.table.router().next_hop(topic)
            if hop != self.id:
                peers[hop] = None
        return peers


_MAX_AGE = 20
"""Heartbeats after which an entry of the table is dropped that nothing was heard of."""


def degree_limit(node: Node) -> int:
    """The table and as many fans as are served."""
    assert isinstance(node, RendezvousNode)
    return node.parameters.table_size + node.parameters.most_fans
