"""Friends and fans: audits, requests, and what is known of each other (Rappel §3).

Rules kept
----------
1. At most alpha friends and 2 alpha fans. Requests are granted first come, first served.
2. An audit looks at one candidate; its filter and coordinate are fetched only if not known. With room among
   the friends any candidate will do; else it replaces the friend whose eviction helps most, if the utility
   then grows by the hysteresis.
3. A denied request is followed by another audit at once as long as there is room among the friends.
4. Filters and coordinates have versions; a friend's are fetched again when its pings or acks show newer ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from topicweave.blocks import bloom as blooms
from topicweave.blocks.bloom import Bloom
from topicweave.blocks.vivaldi import Coordinate
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import Receivers, World
from topicweave.systems.rappel.candidates import Candidates
from topicweave.systems.rappel.messages import Fetch, FriendReply, FriendRequest, Profile, Unfriend
from topicweave.systems.rappel.parameters import RappelParameters
from topicweave.systems.rappel.place import NetworkPlace
from topicweave.systems.rappel.rules import FriendCandidate, best_swap, is_place


class Known(NamedTuple):
    """What a peer told of itself."""

    coordinate_version: int
    bloom_version: int
    coordinate: Coordinate
    bloom: Bloom


class Friendship:
    """`changed(peer)` is called after a friend came (with who it is) or went (None)."""

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        parameters: RappelParameters,
        place: NetworkPlace,
        changed: Callable[[NodeId | None], None],
    ) -> None:
        self._world = world
        self._parameters = parameters
        self._place = place
        self._changed = changed
        self.bloom: Bloom = 0
        self.bloom_version = 0
        self.friends: dict[NodeId, Known] = {}
        self.names: tuple[NodeId, ...] = ()
        """The friends, as pings and acks carry them."""
        self.fans: dict[NodeId, float] = {}
        """Since when."""
        self._profiles: dict[NodeId, Known] = {}
        self.candidates = Candidates(
            node_id, parameters.most_candidates, parameters.candidate_memory, self._forget_profile
        )
        self._audited: NodeId | None = None  # whose profile or answer is awaited
        # Friends of an earlier session that said yes, their profiles awaited.
        self._granted: set[NodeId] = set()
        self.audits = 0

    def receivers(self) -> Receivers:
        return {
            Fetch: self._receive_fetch,
            Profile: self._receive_profile,
            FriendRequest: self._receive_request,
            FriendReply: self._receive_reply,
            Unfriend: self._receive_unfriend,
        }

    # What the node tells.

    def begin(self) -> list[NodeId]:
        """A new session; returns the friends of the last one, who are strangers now."""
        stale = list(self.friends)
        self.friends.clear()
        self.fans.clear()
        self._profiles.clear()
        self._audited = None
        self._granted.clear()
        self._friends_changed(None)
        return stale

    def subscribed_to(self, feeds: Iterable[TopicId], besides: bool = False) -> None:
        """These are the feeds, or so are these `besides` those that are."""
        bloom = blooms.bloom_of(feeds) | (self.bloom if besides else 0)
        if bloom != self.bloom:
            self.bloom = bloom
            self.bloom_version += 1

    def covering(self, feed: TopicId) -> list[NodeId]:
        """Friends that seem to want a feed, nearest first (§5.1)."""
        bits = blooms.topic_bits(feed)
        own = self._place.coordinate
        found = [
            (math.dist(own, known.coordinate), peer)
            for peer, known in self.friends.items()
            if known.bloom & bits == bits
        ]
        return [peer for _, peer in sorted(found)]

    def audit(self) -> None:
        """Look at one candidate (Algorithm 1)."""
        peer = self.candidates.next(self.friends, self._world.now)
        self._audited = peer
        if peer is None:
            return
        self.audits += 1
        if peer in self._profiles:
            self._consider(peer)
        else:
            self._world.send(peer, Fetch(True, True))

    def request(self, peer: NodeId) -> None:
        """Ask for friendship without an audit: a friend of an earlier session."""
        self._world.send(peer, FriendRequest())

    def versions(self, peer: NodeId, coordinate_version: int, bloom_version: int) -> None:
        """A friend's message showed its versions."""
        known = self.friends.get(peer)
        if known is not None:
            moved = coordinate_version != known.coordinate_version
            changed = bloom_version != known.bloom_version
            if moved or changed:
                self._world.send(peer, Fetch(moved, changed))

    def admit(self, peer: NodeId) -> bool:
        """Take a fan, if there is room."""
        if peer in self.fans:
            return True
        if len(self.fans) >= self._parameters.most_fans:
            return False
        self.fans[peer] = self._world.now
        self.candidates.hear(peer, self._world.now)
        return True

    def drop_fan(self, peer: NodeId) -> None:
        self.fans.pop(peer, None)

    def lost(self, peer: NodeId) -> None:
        """A peer is gone."""
        self.fans.pop(peer, None)
        self.candidates.lost(peer)
        self._granted.discard(peer)
        if self._audited == peer:
            self._audited = None
        self.remove(peer)

    def remove(self, peer: NodeId) -> None:
        """Somebody is a friend no more."""
        if self.friends.pop(peer, None) is not None:
            self._profiles.pop(peer, None)
            self._friends_changed(None)
            self.audit()

    def known_peers(self) -> set[NodeId]:
        """Candidates are hearsay, which fades by itself; they are not counted as known."""
        return {*self.friends, *self.fans}

    # Messages.

    def _receive_fetch(self, sender: NodeId, message: Fetch) -> None:
        place = self._place
        if place.settled:
            self._world.send(
                sender,
                Profile(
                    place.version,
                    self.bloom_version,
                    place.coordinate if message.coordinate else (),
                    blooms.to_bytes(self.bloom) if message.bloom else b"",
                ),
            )

    def _receive_profile(self, sender: NodeId, message: Profile) -> None:
        before = self.friends.get(sender) or self._profiles.get(sender)
        coordinate, bloom = message.coordinate, before.bloom if before else 0
        if message.bloom:
            bloom = blooms.from_bytes(message.bloom)
        if not coordinate and before is not None:
            coordinate = before.coordinate
        if not is_place(coordinate, self._parameters.dimensions):
            return
        known = Known(message.coordinate_version, message.bloom_version, coordinate, bloom)
        if sender in self.friends:
            self.friends[sender] = known
            # What the friends are worth changed, not who they are.
            self._changed(sender)
        elif sender in self.candidates:
            self._profiles[sender] = known
        if sender in self._granted:
            self._granted.discard(sender)
            self._befriend(sender, known)
        elif sender == self._audited:
            self._profiles[sender] = known
            self._consider(sender)

    def _receive_request(self, sender: NodeId, _message: FriendRequest) -> None:
        accepted = self._place.settled and self.admit(sender)
        self._world.send(sender, FriendReply(accepted, self.names))

    def _receive_reply(self, sender: NodeId, message: FriendReply) -> None:
        now = self._world.now
        for peer in message.friends[: self._parameters.alpha]:
            self.candidates.hear(peer, now)
        if sender == self._audited:
            self._audited = None
        if sender in self.friends:
            return
        if not message.accepted:
            self.candidates.denied(sender, now)
            if len(self.friends) < self._parameters.alpha:
                self.audit()
            return
        if (known := self._profiles.get(sender)) is None:
            # A friend of an earlier session: what it wants now has to be asked first.
            if len(self._granted) < self._parameters.alpha:
                self._granted.add(sender)
                self._world.send(sender, Fetch(True, True))
            return
        self._befriend(sender, known)

    def _receive_unfriend(self, sender: NodeId, _message: Unfriend) -> None:
        self.fans.pop(sender, None)

    # Audits.

    def _consider(self, peer: NodeId) -> None:
        if peer in self.friends:
            return
        if len(self.friends) < self._parameters.alpha or self._victim(self._profiles[peer]) is not None:
            self._world.send(peer, FriendRequest())
        else:
            self._audited = None

    def _victim(self, candidate: Known) -> NodeId | None:
        parameters = self._parameters
        names = list(self.friends)
        place = best_swap(
            self.bloom,
            [self._peer(self.friends[name]) for name in names],
            self._peer(candidate),
            parameters.hysteresis,
            parameters.utility,
            parameters.least_distance,
        )
        return None if place is None else names[place]

    def _peer(self, known: Known) -> FriendCandidate:
        return FriendCandidate(math.dist(self._place.coordinate, known.coordinate), known.bloom)

    def _befriend(self, peer: NodeId, known: Known) -> None:
        if len(self.friends) >= self._parameters.alpha:
            # The friends may have changed since it was asked.
            victim = self._victim(known)
            if victim is None:
                self._world.send(peer, Unfriend())
                return
            del self.friends[victim]
            self._world.send(victim, Unfriend())
            self.candidates.hear(victim, self._world.now)
        self.friends[peer] = known
        self._profiles.pop(peer, None)
        self._friends_changed(peer)

    def _friends_changed(self, peer: NodeId | None) -> None:
        self.names = tuple(self.friends)
        self.candidates.reset()
        self._changed(peer)

    def _forget_profile(self, peer: NodeId) -> None:
        self._profiles.pop(peer, None)
