"""A node's links in the topic-connected overlay: who, for which topics, and how they come about.

A link is symmetric: each end tells the other by `Connect` and believes in it when it hears the same. A link
that one end alone believes in (a message was lost, a node was taken for dead) is made whole again by the next
heartbeat, not dropped: repair counted on it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import msgspec

from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.port import Receivers, TimerKey, Timers, World
from topicweave.systems.omen.messages import Connect, InterestUpdate, Unlink

TIMER = "omen-connect"
TRIES = 3
RETRY = 1.0


class Neighbour(msgspec.Struct):
    version: int
    interest: Interest


class OverlayLinks:
    """`own` gives this node's interest and its version, `up` and `down` hear of links that come, change and
    go, `unanswered` of peers that do not answer.
    """

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        own: Callable[[], tuple[int, Interest]],
        up: Callable[[NodeId, Interest], None],
        down: Callable[[NodeId], None],
        unanswered: Callable[[NodeId], None],
        most: int,
    ) -> None:
        self._world = world
        self._id = node_id
        self._own = own
        self._up = up
        self._down = down
        self._unanswered = unanswered
        self._most = most
        self._wanted: dict[NodeId, int] = {}
        """Peers asked for a link, and how often."""
        self.neighbours: dict[NodeId, Neighbour] = {}
        self._serving: dict[TopicId, dict[NodeId, None]] = {}
        self.version = 0
        """Grows with every change of a link or of what it serves."""

    def receivers(self) -> Receivers:
        return {Connect: self._receive_connect, Unlink: self._receive_unlink}

    def timers(self) -> Timers:
        return {TIMER: self._retry}

    # What the node asks.

    def serving(self, topic: TopicId) -> Collection[NodeId]:
        """The neighbours that want a topic, in the order in which they came."""
        return self._serving.get(topic, ())

    def held(self, interest: Interest) -> Interest:
        """Topics of an interest with two neighbours or more: only these can come apart when this node goes."""
        return frozenset(
            topic for topic, peers in self._serving.items() if len(peers) > 1 and topic in interest
        )

    def told_by(self, peer: NodeId) -> tuple[int, Interest] | None:
        """What a neighbour wants, and in which version; None if it is none."""
        known = self.neighbours.get(peer)
        return None if known is None else (known.version, known.interest)

    def lonely(self) -> Interest:
        """Wanted topics without a neighbour."""
        return frozenset(topic for topic in self._own()[1] if topic not in self._serving)

    def known_peers(self) -> set[NodeId]:
        return {*self.neighbours, *self._wanted}

    # What the node tells.

    def restart(self) -> None:
        self._wanted.clear()

    def ask(self, peer: NodeId) -> bool:
        """Get a link to a peer; returns whether one is being made."""
        if peer in self._wanted:
            return True
        if peer in self.neighbours or peer == self._id or not self._has_room():
            return False
        self._wanted[peer] = 0
        self._retry((TIMER, peer))
        return True

    def confirm(self, peer: NodeId) -> None:
        """One end believes in the link and the other does not, or not yet: say it again."""
        self._world.send(peer, Connect(*self._own()))

    def own_interest_changed(self) -> None:
        self.version += 1
        for peer in [peer for peer, known in self.neighbours.items() if not known.interest & self._own()[1]]:
            self._world.send(peer, Unlink())
            self.remove(peer)

    def learn(self, peer: NodeId, version: int, interest: Interest) -> None:
        """A neighbour told what it wants."""
        known = self.neighbours.get(peer)
        if known is None or known.interest == interest:
            if known is not None:
                known.version = version
            return
        if interest & self._own()[1]:
            self._put(peer, version, interest)
        else:
            self._world.send(peer, Unlink())
            self.remove(peer)

    def remove(self, peer: NodeId) -> None:
        """The link is gone, whoever ended it."""
        self._stop_asking(peer)
        known = self.neighbours.pop(peer, None)
        if known is not None:
            self._unserve(peer, known.interest)
            self.version += 1
            self._down(peer)

    # How links come about.

    def _has_room(self) -> bool:
        return len(self.neighbours) + len(self._wanted) < self._most

    def _retry(self, key: TimerKey) -> None:
        peer = key[1]
        tries = self._wanted.get(peer)
        if tries is None:
            return
        if tries == TRIES:
            del self._wanted[peer]
            self._unanswered(peer)
            return
        self._wanted[peer] = tries + 1
        self._world.send(peer, Connect(*self._own()))
        self._world.set_timer(key, RETRY)

    def _stop_asking(self, peer: NodeId) -> None:
        if self._wanted.pop(peer, None) is not None:
            self._world.cancel_timer((TIMER, peer))

    def _receive_connect(self, sender: NodeId, message: Connect) -> None:
        self._stop_asking(sender)
        if sender == self._id:
            return
        strange = not message.interest & self._own()[1]
        if strange or not (sender in self.neighbours or self._has_room()):
            if strange:
                # A home or gossip told it otherwise: it should not ask again.
                self._world.send(sender, InterestUpdate(*self._own()))
            self._world.send(sender, Unlink())
            self.remove(sender)
            return
        self._put(sender, message.version, message.interest)
        if not message.answered:
            self._world.send(sender, Connect(*self._own(), answered=True))

    def _receive_unlink(self, sender: NodeId, _message: Unlink) -> None:
        self.remove(sender)

    def _put(self, peer: NodeId, version: int, interest: Interest) -> None:
        old = self.neighbours.get(peer)
        if old is not None and old.interest == interest:
            old.version = version
            return
        if old is not None:
            self._unserve(peer, old.interest)
        self.neighbours[peer] = Neighbour(version, interest)
        for topic in interest:
            self._serving.setdefault(topic, {})[peer] = None
        self.version += 1
        self._up(peer, interest)

    def _unserve(self, peer: NodeId, interest: Interest) -> None:
        for topic in interest:
            peers = self._serving[topic]
            del peers[peer]
            if not peers:
                del self._serving[topic]
