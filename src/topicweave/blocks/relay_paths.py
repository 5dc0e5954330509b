"""Relay paths: from nodes that want a topic, by greedy lookups, to the topic's rendezvous. Together they are
the topic's tree.

As Scribe does it (Castro, Druschel, Kermarrec, Rowstron 2002), and Vitis §III-B and §III-D.

Rules kept
----------
1. A node that wants a path sends a request to the next hop of a lookup for the topic. A node that gets a
   request keeps the sender as a child of the topic and, if it has no path itself, sends a request on. The
   node where the lookup ends is the rendezvous.
2. All of it is soft state. A node that wants a path or has children asks again every `refresh` seconds, over
   the links that it has then, and with one word if nothing has changed. A request that is not repeated is
   forgotten after `expire` seconds, at both ends. So a path that moves works at its old place until it works
   at the new one.
3. A node that stops needing a path says so, as in Scribe. A relay without children tells its own parent, so a
   path ends within a few hops' time. If paths only expired, they would end hop by hop, each waiting for the
   one in front: a minute, during which events travel along paths that lead nowhere. If a path moved, the old
   parent is told one refresh later.
4. Each hop is strictly nearer to the topic than the one in front of it, so paths have no loops, whatever the links.
5. A dead parent is replaced at once. Requests for many topics that go the same way share one message.
6. Whatever peers ask for, a node keeps at most `most_children` entries, and no message holds more than `MOST_TOPICS`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple
from zlib import crc32

import msgspec

from topicweave.blocks.small_world import Router
from topicweave.model.ids import RING_SIZE, NodeId, TopicId
from topicweave.port import Message, Receivers, TimerKey, Timers, World

TIMER = "relay"
MOST_TOPICS = 16_384


class RelayRequest(Message, frozen=True, array_like=True, tag="relay-request"):
    """Relay these topics for me."""

    topics: tuple[TopicId, ...]


class RelayAgain(Message, frozen=True, array_like=True, tag="relay-again"):
    """Relay for me what my last request named; its topics have this mark."""

    mark: int


class RelayTell(Message, frozen=True, array_like=True, tag="relay-tell"):
    """That request I do not have: which topics?"""


class RelayEnd(Message, frozen=True, array_like=True, tag="relay-end"):
    """Relay these topics for me no more."""

    topics: tuple[TopicId, ...]


class RelayParameters(msgspec.Struct, frozen=True):
    """Seconds. A path survives two lost requests if `expire` is more than thrice `refresh`."""

    refresh: float = 2.0
    expire: float = 7.0
    most_children: int = 200_000

    def __post_init__(self) -> None:
        if not 0 < self.refresh < self.expire:
            raise ValueError(f"need 0 < refresh < expire, got {self}")


def mark_of(topics: tuple[TopicId, ...]) -> int:
    return crc32(msgspec.msgpack.encode(topics))


class _Term:
    """Until when a peer's request counts: shared by all topics of one message, so that hearing the same one
    again is cheap.
    """

    __slots__ = ("peer", "until")

    def __init__(self, peer: NodeId, until: float) -> None:
        self.peer = peer
        self.until = until


class _Plan(NamedTuple):
    """What was asked for at the last refresh, and on what grounds: as long as these hold, it is asked for
    again as it is.
    """

    router: Router
    wanted: list[TopicId]
    changes: int
    requests: list[tuple[_Term, RelayRequest]]


class RelayPaths:
    """One node's part in the relay paths of all topics.

    `router()` routes over the links of the moment, and gives the same object as long as these do not change;
    `wanted()` names the topics that the node itself wants a path for; `appeared(topic, peer)` hears of each
    new neighbour in a tree.
    """

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        router: Callable[[], Router],
        wanted: Callable[[], Collection[TopicId]],
        parameters: RelayParameters | None = None,
        appeared: Callable[[TopicId, NodeId], None] | None = None,
    ) -> None:
        self._world = world
        self._id = node_id
        self._router = router
        self._wanted = wanted
        self._parameters = parameters or RelayParameters()
        self._children: dict[TopicId, dict[NodeId, _Term]] = {}
        self._parents: dict[TopicId, _Term] = {}  # no entry at the rendezvous
        self._entries = 0
        # The last request of each child that was taken whole.
        self._latest: dict[NodeId, tuple[tuple[TopicId, ...], _Term]] = {}
        self._plan: _Plan | None = None
        self._changes = 0  # of the topics that there are children for
        self._moved: list[tuple[TopicId, NodeId]] = []  # away from these parents, since the last refresh
        self._none_expires_before = 0.0
        self._appeared = appeared or (lambda _topic, _peer: None)
        self._new: list[tuple[TopicId, NodeId]] = []  # parents, until they were asked

    def start(self) -> None:
        self._world.set_timer((TIMER,), self._world.random.uniform(0.0, self._parameters.refresh))

    def receivers(self) -> Receivers:
        return {
            RelayRequest: self._receive_request,
            RelayEnd: self._receive_end,
            RelayAgain: self._receive_again,
            RelayTell: self._receive_tell,
        }

    def timers(self) -> Timers:
        return {TIMER: self._refresh}

    # What a node asks.

    def neighbours(self, topic: TopicId) -> list[NodeId]:
        """Up and down the tree of a topic from here."""
        now = self._world.now
        peers = [peer for peer, term in self._children.get(topic, {}).items() if term.until > now]
        parent = self._parents.get(topic)
        if parent is not None and parent.until > now and parent.peer not in peers:
            peers.append(parent.peer)
        return peers

    def relays(self, topic: TopicId) -> bool:
        """Whether some path of the topic leads through or up to this node."""
        return topic in self._children or topic in self._parents

    def carried(self, by: Collection[NodeId]) -> list[TopicId]:
        """The topics that some of these peers have asked for."""
        return [topic for topic, children in self._children.items() if not children.keys().isdisjoint(by)]

    @property
    def topics(self) -> int:
        """How many topics this node has children for."""
        return len(self._children)

    def parent(self, topic: TopicId) -> NodeId | None:
        parent = self._parents.get(topic)
        return parent.peer if parent is not None else None

    def parents(self) -> set[NodeId]:
        """Of all topics."""
        return {term.peer for term in self._parents.values()}

    def has_parent(self, peer: NodeId) -> bool:
        """Whether the path of some topic goes over this peer."""
        return any(term.peer == peer for term in self._parents.values())

    def known_peers(self) -> set[NodeId]:
        return self.parents().union(self._latest, *self._children.values())

    # What a node tells.

    def request(self, topics: Collection[TopicId]) -> None:
        """Ask for paths at once."""
        if topics:
            self._send(self._requests(list(topics), self._router()))

    def _requests(self, topics: list[TopicId], router: Router) -> list[tuple[_Term, RelayRequest]]:
        """Note the parents of these topics; returns what to send them."""
        by_hop: dict[NodeId, list[TopicId]] = {}
        for topic, hop in zip(topics, router.next_hops(topics), strict=True):
            if hop == self._id:
                if (old := self._parents.pop(topic, None)) is not None:
                    self._moved.append((topic, old.peer))
            else:
                by_hop.setdefault(hop, []).append(topic)
        requests = []
        for hop, together in by_hop.items():
            term = _Term(hop, 0.0)
            for topic in together:
                before = self._parents.get(topic)
                if before is None or before.peer != hop:
                    self._new.append((topic, hop))
                    if before is not None:
                        self._moved.append((topic, before.peer))
            self._parents.update(dict.fromkeys(together, term))
            requests += [
                (term, RelayRequest(tuple(together[start : start + MOST_TOPICS])))
                for start in range(0, len(together), MOST_TOPICS)
            ]
        return requests

    def _send(self, requests: list[tuple[_Term, RelayRequest]]) -> None:
        until = self._world.now + self._parameters.expire
        for term, request in requests:
            term.until = until
            self._world.send(term.peer, request)
        new, self._new = self._new, []
        for topic, parent in new:
            self._appeared(topic, parent)

    def _send_again(self, requests: list[tuple[_Term, RelayRequest]]) -> None:
        """Nothing has changed: a word to each parent will do."""
        until = self._world.now + self._parameters.expire
        for term, request in requests:
            term.until = until
            # Of several requests to one parent, which are long ones, it keeps only the last in mind.
            long = len(request.topics) == MOST_TOPICS
            self._world.send(term.peer, request if long else RelayAgain(mark_of(request.topics)))

    def lost(self, peer: NodeId) -> None:
        """A peer is dead: nobody's child any more, and replaced where it was the parent."""
        self._latest.pop(peer, None)
        for topic in [topic for topic, children in self._children.items() if peer in children]:
            self._forget_child(topic, peer)
        orphaned = [topic for topic, term in self._parents.items() if term.peer == peer]
        if orphaned:
            self._plan = None
            for topic in orphaned:
                del self._parents[topic]
            wanted = self._wanted()
            self.request([topic for topic in orphaned if topic in self._children or topic in wanted])

    def _refresh(self, _key: TimerKey) -> None:
        self._world.set_timer((TIMER,), self._parameters.refresh)
        self._expire(self._world.now)
        router, wanted, plan = self._router(), list(self._wanted()), self._plan
        if (
            plan is None
            or plan.router is not router
            or plan.changes != self._changes
            or plan.wanted != wanted
        ):
            topics = dict.fromkeys([*wanted, *self._children])
            moved, self._moved = self._moved, []
            plan = self._plan = _Plan(router, wanted, self._changes, self._requests(list(topics), router))
            unneeded = [topic for topic in self._parents if topic not in topics]
            self._send(plan.requests)
        else:
            moved, self._moved, unneeded = self._moved, [], []
            self._send_again(plan.requests)
        ends = [(topic, self._parents.pop(topic).peer) for topic in unneeded]
        self._end([*ends, *(move for move in moved if self.parent(move[0]) != move[1])])

    def _end(self, paths: Iterable[tuple[TopicId, NodeId]]) -> None:
        """Tell parents that they are so no more."""
        by_parent: dict[NodeId, list[TopicId]] = {}
        for topic, parent in paths:
            by_parent.setdefault(parent, []).append(topic)
        for parent, together in by_parent.items():
            for start in range(0, len(together), MOST_TOPICS):
                self._world.send(parent, RelayEnd(tuple(together[start : start + MOST_TOPICS])))

    def _expire(self, now: float) -> None:
        if now < self._none_expires_before:
            return
        over = [
            (topic, child)
            for topic, children in self._children.items()
            for child, term in children.items()
            if term.until <= now
        ]
        for topic, child in over:
            self._forget_child(topic, child)
        for child in [child for child, (_, term) in self._latest.items() if term.until <= now]:
            del self._latest[child]
        for topic in [topic for topic, term in self._parents.items() if term.until <= now]:
            del self._parents[topic]
        # Terms only grow, and new ones are longer than any that is there.
        terms = [term.until for children in self._children.values() for term in children.values()]
        terms += [term.until for term in self._parents.values()]
        terms += [term.until for _, term in self._latest.values()]
        self._none_expires_before = min(terms, default=now + self._parameters.expire)

    def _forget_child(self, topic: TopicId, child: NodeId) -> None:
        children = self._children[topic]
        del children[child]
        self._entries -= 1
        if not children:
            del self._children[topic]
            self._changes += 1

    def _receive_request(self, sender: NodeId, message: RelayRequest) -> None:
        if sender == self._id:
            return
        now = self._world.now
        topics, until = message.topics, now + self._parameters.expire
        latest = self._latest.get(sender)
        if latest is not None and latest[1].until > now and (latest[0] is topics or latest[0] == topics):
            latest[1].until = until
            return
        term, new, orphans, whole = _Term(sender, until), [], [], True
        for topic in _believable(topics):
            children = self._children.get(topic)
            if children is not None and sender in children:
                children[sender] = term
                continue
            if self._entries >= self._parameters.most_children:
                whole = False
                continue
            self._entries += 1
            new.append(topic)
            if children is None:
                self._children[topic] = {sender: term}
                self._changes += 1
                parent = self._parents.get(topic)
                if parent is None or parent.until <= now:
                    orphans.append(topic)
            else:
                children[sender] = term
        if whole and topics:
            self._latest[sender] = (topics, term)
        else:
            self._latest.pop(sender, None)
        self.request(orphans)
        for topic in new:
            self._appeared(topic, sender)

    def _receive_again(self, sender: NodeId, message: RelayAgain) -> None:
        latest = self._latest.get(sender)
        if latest is not None and latest[1].until > self._world.now and mark_of(latest[0]) == message.mark:
            latest[1].until = self._world.now + self._parameters.expire
        else:
            self._world.send(sender, RelayTell())

    def _receive_tell(self, sender: NodeId, _message: RelayTell) -> None:
        if self._plan is not None:
            self._send([(term, request) for term, request in self._plan.requests if term.peer == sender])

    def _receive_end(self, sender: NodeId, message: RelayEnd) -> None:
        self._latest.pop(sender, None)  # what it asked for last, it does not ask for whole any more
        childless = []
        for topic in _believable(message.topics):
            if sender in self._children.get(topic, ()):
                self._forget_child(topic, sender)
                if topic not in self._children and topic in self._parents:
                    childless.append(topic)
        if childless:
            wanted = self._wanted()
            self._end([(topic, self._parents.pop(topic).peer) for topic in childless if topic not in wanted])


def _believable(topics: tuple[TopicId, ...]) -> Iterable[TopicId]:
    return (topic for topic in topics[:MOST_TOPICS] if 0 <= topic < RING_SIZE)
