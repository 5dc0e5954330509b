"""The view that live nodes have: what gossip brings, and for topics that it knows too little of, what their homes tell.

Gossip alone cannot find the third subscriber of a rare topic among thousands of nodes, unless a view holds
them all. The topic directory finds it, whatever the size. Both together are the *membership service*, which
the papers leave open.
"""

from __future__ import annotations

from collections.abc import Sequence

from topicweave.blocks.descriptors import Descriptor
from topicweave.blocks.named_contacts import NamedContacts
from topicweave.blocks.peer_sampling import PeerSampling
from topicweave.blocks.profiles import Profiles
from topicweave.blocks.topic_directory import DirectoryParameters, Parts, TopicDirectory
from topicweave.blocks.topic_directory.directory import NamedSubscribers
from topicweave.blocks.topic_directory.messages import TopicContact
from topicweave.blocks.views import GossipView
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.port import Receivers, Timers, World

GONE = 20.0
"""Seconds for which one that could not be reached is not taken from a home's answer: it may not have heard of
that yet.
"""
MOST_REPORTED = 64
MOST_SAID = 256
"""Peers whose own word is remembered."""


class DirectoryView(GossipView):
    """A gossip view of at most `capacity` peers, and some contacts of each topic beside it (`named_contacts`)."""

    introduces = True

    def __init__(
        self,
        world: World,
        owner: NodeId,
        sampling: PeerSampling,
        profiles: Profiles | None = None,
        capacity: int = 1000,
        parameters: DirectoryParameters | None = None,
        max_age: float = 60.0,
    ) -> None:
        super().__init__(world, sampling, capacity, max_age, profiles)
        self.directory = TopicDirectory(
            world, owner, self._known_subscribers, self._named, self._any_peer, parameters
        )
        self._interest: Interest = sampling.profile
        self._profiles: dict[NodeId, Interest] = {}  # as gossip has them, of those that a home named, too
        self._contacts = NamedContacts()
        self._gone: dict[NodeId, float] = {}
        self._said: dict[NodeId, Interest] = {}  # what peers told the owner themselves, where it counts
        self.directory.said = lambda peer, topic: topic in self._said.get(peer, ())
        sampling.listen(self._candidates)

    # What the system tells and asks.

    def start(self, contacts: Sequence[NodeId]) -> None:
        super().start(contacts)
        self.directory.set_topics(self._interest)
        self.directory.start(contacts)

    def set_interest(self, interest: Interest) -> None:
        super().set_interest(interest)
        self._interest = interest
        self.directory.set_topics(interest)

    def lost(self, peer: NodeId) -> None:
        shared = self._interest & self.interest_of(peer)
        topics = dict.fromkeys([*self._contacts.remove(peer), *sorted(shared)])
        super().lost(peer)
        self._said.pop(peer, None)
        self._gone[peer] = self.world.now + GONE
        self.directory.unreachable(peer, list(topics)[:MOST_REPORTED])

    def leave(self) -> None:
        self.directory.leave()

    def serve(self, parts: Parts) -> None:
        self.directory.serve(parts)

    def spoke(self, peer: NodeId) -> None:
        self.directory.ring.spoke(peer)

    def heard(self, peer: NodeId) -> None:
        self.directory.ring.hear(peer)

    def said(self, peer: NodeId, interest: Interest) -> None:
        wrong = [topic for topic in self._contacts.topics(peer) if topic not in interest]
        if self._contacts.remove(peer, wrong):
            self._put(peer)
        if self.world.vouches_by:
            # Who speaks for itself needs no proof.
            self._said.pop(peer, None)
            if len(self._said) >= MOST_SAID:
                del self._said[next(iter(self._said))]
            self._said[peer] = interest

    def seek(self, topic: TopicId) -> None:
        self.directory.seek(topic)

    def audience(self, topic: TopicId) -> int | None:
        return self.directory.audience(topic)

    def contacts(self) -> set[NodeId]:
        return self.directory.ring.contacts()

    def known_peers(self) -> set[NodeId]:
        return self.directory.known_peers().union(self.peers())

    def receivers(self) -> Receivers:
        return {**super().receivers(), **self.directory.receivers()}

    def timers(self) -> Timers:
        return {**super().timers(), **self.directory.timers()}

    # What is known.

    def _known_subscribers(self, topic: TopicId) -> int:
        return self._known.count(topic)

    def _any_peer(self) -> NodeId | None:
        sample = self.sampling.sample(1)
        return sample[0] if sample else None

    def _candidates(self, descriptors: Sequence[Descriptor]) -> None:
        self.directory.candidates([news.id for news in descriptors if news.age <= self.max_age])

    def _named(self, named: Sequence[NamedSubscribers]) -> list[list[TopicContact]]:
        """Homes named these as subscribers; returns of each topic those that are believed."""
        changed: dict[NodeId, None] = {}
        believed = [self._believed(one, changed) for one in named]
        for peer in changed:
            self._put(peer)
        return believed

    def _believed(self, named: NamedSubscribers, changed: dict[NodeId, None]) -> list[TopicContact]:
        """Those of one topic; `changed` gets those of whom the view has to be told, the last one last. An
        introduction makes the system call, each time.
        """
        now, topic = self.world.now, named.topic
        believed = []
        for contact in named.contacts:
            peer = contact.id
            stranger = topic not in self._profiles.get(peer, ())
            known = topic in self._contacts.topics(peer)
            gone = self._gone.get(peer, 0.0) > now
            if (gone or (named.parted and known and stranger)) and not self._contacts.may(topic, now):
                continue
            if not gone:
                forgotten = self._contacts.put(topic, peer, contact.left, now, stranger)
                if forgotten is None:
                    continue
                for other in [*forgotten, peer] if stranger and not known else forgotten:
                    changed.pop(other, None)
                    changed[other] = None
            # One that is gone may have come back to another part of the topic; to the system it is not offered yet.
            believed.append(contact)
        return believed

    def _put(self, peer: NodeId) -> None:
        """A peer wants what gossip says, and what homes said of it."""
        interest = self._profiles.get(peer, frozenset()).union(self._contacts.topics(peer))
        if interest:
            self._known.put(peer, interest)
        else:
            self._known.discard(peer)

    def _learn_profile(self, peer: NodeId, profile: Interest) -> None:
        self._profiles[peer] = profile
        named = self._contacts.topics(peer)
        self._known.put(peer, profile.union(named) if named else profile)

    def _drop(self, peer: NodeId) -> None:
        self._made.pop(peer, None)
        self._profiles.pop(peer, None)
        self._put(peer)

    def _sweep(self) -> None:
        now = self.world.now
        if now < self._next_sweep:
            return
        for peer in [peer for peer, until in self._gone.items() if until <= now]:
            del self._gone[peer]
        for peer in self._contacts.sweep(now):
            self._put(peer)
        super()._sweep()
