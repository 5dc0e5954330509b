"""One tree per topic, from its home location down greedy routes to its subscribers (Magnet §3.3, Algorithm 2).

A topic's *home* is the node that owns the topic's hash on the control ring. The trees run over another ring (or, in the
strawman, the same one), and the path from the home to a subscriber is the greedy route between the two there.

Rules kept
----------
1. Everything between two entries of a routing table goes to the first of them. So the points whose greedy routes from the home
   pass through a node of the tree are one arc, from the node to its *end*: the nearest of all next entries in the tables
   on the way. Each parent tells its children their ends. A node is on the route to a subscriber if and only if
   the subscriber is on its arc.
2. A subscriber's request climbs the tree from any node in it to the first node on whose arc it is, or goes to the home, and
   from there down the greedy route; every hop becomes a child of the one before.
3. Only subscribers ask. A node that neither wants a topic nor has children for it leaves the tree.
4. Children tell their parent so every period, and the parent answers with their ends. A child that is no longer where a
   route would go is told; so are all below it, and every subscriber among them asks anew. Until it has got another
   parent, the old one serves it, for a while; and for a period more, since an event may have passed the new one before the child
   was there, and not have reached the old one when the child leaves it.
5. Whoever finds that it is not the home any more, or loses its parent, tells all below, too.
6. A node that has no fingers yet waits for some, for a while, before it asks. While a network starts there are only ring neighbours, and routes
   over these lead through half of it.
7. A request is handed on down once per period. Where tables disagree about somebody's place a route may be a circle for a
   while, and on a network that duplicates messages each round would bring more of them.

Deviation: the paper stops climbing at a node whose next hop towards the subscriber is already its child in the tree (Algorithm 2,
lines 8 to 11). That is not enough for the path to be the home's greedy route: a table further up may hold
an entry between the present path and the subscriber, which a request that comes from below never meets, and a node
beyond the subscriber would route to it all the way round the ring. The arcs are what is missing. (Line 1 there asks that *p*
be in T(t); it is q that must be.)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from topicweave.blocks.growing_ids import Place, inside, is_position
from topicweave.blocks.harmonic_links import as_point
from topicweave.blocks.ring import Contact, Ring
from topicweave.blocks.tree_messages import (
    TreeAttached,
    TreeEnds,
    TreeGraft,
    TreeJoin,
    TreeLeft,
    TreeMisplaced,
)
from topicweave.model.ids import RING_SIZE, NodeId, TopicId
from topicweave.port import Receivers, World

MOST_TOPICS = 16_384
MOST_HOPS = 256


class TreeParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """In periods of the ring."""

    silent_after: float = 5.0
    """Periods after which a silent parent or child is given up."""
    linger: float = 5.0
    """Periods for which a misplaced child is still served."""
    patience: float = 5.0
    """Periods for which a node that has no fingers waits before it asks for a place in trees."""
    most_children: int = 500_000

    def __post_init__(self) -> None:
        if not (self.silent_after > 1 and self.linger > 0 and self.patience >= 0 and self.most_children > 0):
            raise ValueError(
                "need silent_after above 1 period, linger and most_children above 0, and patience of 0 or more"
            )


Guides = Callable[[Collection[TopicId]], Mapping[NodeId, list[TopicId]]]
"""Who may be in which of some trees already: where to ask (Algorithm 2, phase 1)."""


class TopicTrees:
    """One node's part in all trees. The node calls `beat` once per period and `table_changed` when the ring's table did."""

    def __init__(
        self,
        world: World,
        control: Ring,
        ring: Ring,
        wanted: Collection[TopicId],
        guides: Guides,
        period: float,
        parameters: TreeParameters,
    ) -> None:
        self._world = world
        self._id = ring.id
        self._control = control
        self._ring = ring
        self._wanted = wanted
        self._guides = guides
        self._period = period
        self._silent = parameters.silent_after * period
        self._linger = parameters.linger * period
        self._patience = parameters.patience * period
        self._asks_from: float | None = None
        self._most = parameters.most_children
        self._roots: set[TopicId] = set()
        self._parent: dict[TopicId, NodeId] = {}
        self._end: dict[TopicId, Place] = {}
        self._under: dict[NodeId, dict[TopicId, None]] = {}  # by parent
        self._parent_heard: dict[NodeId, float] = {}
        self._leaving: dict[NodeId, dict[TopicId, float]] = {}  # former parents, and since when
        self._misplaced: dict[TopicId, None] = {}  # that this node has to ask anew for, or was told to
        self._children: dict[TopicId, dict[NodeId, float]] = {}  # since when
        self._over: dict[NodeId, dict[TopicId, None]] = {}  # by child
        self._child_heard: dict[NodeId, float] = {}
        self._fading: dict[TopicId, dict[NodeId, float]] = {}  # until when
        self._count = 0
        self._attempts: dict[TopicId, int] = {}
        self._handed_on: set[tuple[TopicId, NodeId]] = (
            set()
        )  # requests: topic and subscriber, since the last beat
        self._pings: dict[NodeId, TreeAttached] = {}
        self._pinged: dict[NodeId, TreeAttached] = {}
        self._answers: dict[NodeId, tuple[TreeAttached, int, TreeEnds]] = {}
        self._ends_heard: dict[NodeId, TreeEnds] = {}
        self._version = 0
        self._unchecked = True

    def receivers(self) -> Receivers:
        return {
            TreeJoin: self._receive_join,
            TreeGraft: self._receive_graft,
            TreeAttached: self._receive_attached,
            TreeEnds: self._receive_ends,
            TreeMisplaced: self._receive_misplaced,
            TreeLeft: self._receive_left,
        }

    # What a node asks.

    def is_home(self, topic: TopicId) -> bool:
        return self._control.own is not None and self._control.next_hop(as_point(topic)) == self._id

    def targets(self, topic: TopicId) -> list[NodeId]:
        """Whom to hand an event on to."""
        children = list(self._children.get(topic, ()))
        if topic in self._fading:
            children += [peer for peer in self._fading[topic] if peer not in children]
        return children

    def children(self, topic: TopicId) -> list[NodeId]:
        return list(self._children.get(topic, ()))

    def parent(self, topic: TopicId) -> NodeId | None:
        return self._parent.get(topic)

    def is_in(self, topic: TopicId) -> bool:
        return topic in self._roots or topic in self._parent

    @property
    def topics(self) -> int:
        """How many topics this node has children for."""
        return len(self._children)

    @property
    def unattached(self) -> int:
        """How many wanted topics this node is not (rightly) in the tree of."""
        return sum(1 for topic in self._wanted if topic in self._misplaced or not self.is_in(topic))

    def known_peers(self) -> set[NodeId]:
        fading = (peers for peers in self._fading.values())
        return {*self._under, *self._leaving, *self._over, *self._parent_heard, *self._child_heard}.union(
            *fading
        )

    # What a node tells.

    def table_changed(self) -> None:
        self._unchecked = True
        self._version += 1

    def restart(self) -> None:
        now = self._world.now
        self._parent_heard = dict.fromkeys(self._parent_heard, now)
        self._child_heard = dict.fromkeys(self._child_heard, now)
        self._unchecked = True

    def lost(self, peer: NodeId) -> None:
        """A peer is dead: nobody's child, and no parent."""
        for topic in list(self._over.get(peer, ())):
            self._drop_child(topic, peer)
        for topic in [topic for topic, peers in self._fading.items() if peer in peers]:
            self._stop_fading(topic, peer)
        self._orphan(peer, list(self._under.get(peer, ())))
        for memory in (self._parent_heard, self._child_heard, self._pings, self._pinged, self._ends_heard):
            memory.pop(peer, None)
        self._leaving.pop(peer, None)
        self._answers.pop(peer, None)

    def unwanted(self, topic: TopicId) -> None:
        """The node does not want a topic any more."""
        self._attempts.pop(topic, None)
        self._misplaced.pop(topic, None)
        self._leave_if_useless(topic)

    def leave(self) -> None:
        """Let the children look for another parent at once."""
        for child, topics in self._over.items():
            self._world.send(child, TreeMisplaced(tuple(topics)))
        for parent in {**self._under, **self._leaving}:
            left = (*self._under.get(parent, ()), *self._leaving.get(parent, ()))
            self._world.send(parent, TreeLeft(left))

    def beat(self) -> None:
        """Once per period."""
        if self._ring.own is None or self._control.own is None:
            return
        now = self._world.now
        self._handed_on.clear()
        self._give_up_silent(now)
        for topic in [topic for topic in self._roots if not self.is_home(topic)]:
            self._roots.discard(topic)
            self._tell_all_below([topic])
            self._leave_if_useless(topic)
        if self._unchecked:
            self._unchecked = False
            self._check(list(self._children))
        self._leave_former_parents(now)
        for parent, topics in self._under.items():
            ping = self._pings.get(parent)
            if ping is None:
                former = self._leaving.get(parent, {})
                ping = self._pings[parent] = TreeAttached((*topics, *former))
            self._world.send(parent, ping)
        self.join()

    def join(self) -> None:
        """Ask for a place in the trees of all wanted topics that the node is not in (Algorithm 2)."""
        own = self._ring.own
        if own is None or self._control.own is None or len(self._ring.table) < 2 or not self._may_ask():
            return
        missing = []
        for topic in self._wanted:
            if topic not in self._misplaced and (topic in self._parent or topic in self._roots):
                continue
            if self.is_home(topic):
                self._become_root(topic)
            else:
                missing.append(topic)
        if not missing:
            return
        attempts = self._attempts
        first = [topic for topic in missing if topic not in attempts and topic not in self._misplaced]
        rest = dict.fromkeys(missing)
        for guide, topics in self._guides(first).items() if first else ():
            if guide != self._id:
                self._world.send(guide, TreeJoin(tuple(topics), own, climb=True))
                for topic in topics:
                    rest.pop(topic, None)
        for topic in missing:
            attempts[topic] = attempts.get(topic, 0) + 1
        if rest:
            self._route_join(list(rest), own, climb=False, hops=0)

    def _may_ask(self) -> bool:
        """Whether routes are short by now, or have had the time to get so (rule 6)."""
        now = self._world.now
        if self._asks_from is None:
            self._asks_from = now + self._patience
        if now < self._asks_from and self._ring.fingers:
            self._asks_from = now  # From now on, even if it loses them all.
        return now >= self._asks_from

    # Requests (rule 2).

    def _receive_join(self, _sender: NodeId, message: TreeJoin) -> None:
        subscriber = message.subscriber
        if (
            self._ring.own is None
            or self._control.own is None
            or not 0 <= message.hops < MOST_HOPS
            or not 0 <= subscriber.id < RING_SIZE
            or not is_position(subscriber.position)
            or subscriber.id == self._id
        ):
            return
        self._route_join(_believable(message.topics), subscriber, message.climb, message.hops)

    def _route_join(self, topics: list[TopicId], subscriber: Contact, climb: bool, hops: int) -> None:
        up: dict[tuple[NodeId, bool], list[TopicId]] = {}
        here: list[TopicId] = []
        place = subscriber.place
        for topic in topics:
            if climb and topic not in self._misplaced:
                if self._covers(topic, place):
                    here.append(topic)
                    continue
                parent = self._parent.get(topic)
                if parent is not None and parent != subscriber.id:
                    up.setdefault((parent, True), []).append(topic)
                    continue
            hop = self._control.next_hop(as_point(topic))
            if hop == self._id:
                self._become_root(topic)
                here.append(topic)
            else:
                up.setdefault((hop, False), []).append(topic)
        for (peer, climbs), together in up.items():
            self._world.send(peer, TreeJoin(tuple(together), subscriber, climbs, hops + 1))
        if here:
            self._descend(here, subscriber, 0)

    def _covers(self, topic: TopicId, place: Place) -> bool:
        """Whether this node is on the route from the topic's home to a place (rule 1)."""
        if topic in self._roots:
            return True
        return topic in self._parent and inside(place, self._ring.here, self._end[topic])

    def _descend(self, topics: list[TopicId], subscriber: Contact, hops: int) -> None:
        """One hop down the greedy route to a subscriber."""
        if subscriber.id == self._id or hops >= MOST_HOPS:
            return
        ring = self._ring
        hop, table_end = ring.hop_and_end(subscriber.place)
        if hop[1] == self._id:
            return  # The ring does not know the subscriber yet; it will ask again.
        here, ends, given = ring.here, [], []
        for topic in topics:
            own_end = here if topic in self._roots else self._end.get(topic, here)
            if not self._add_child(topic, hop[1]):
                continue
            given.append(topic)
            ends.append(table_end if inside(table_end, hop, own_end) else own_end)
        if given:
            self._world.send(hop[1], TreeGraft(tuple(given), tuple(ends), subscriber, hops + 1))

    def _receive_graft(self, sender: NodeId, message: TreeGraft) -> None:
        ring = self._ring
        topics, ends = message.topics, message.ends
        if ring.own is None or len(topics) != len(ends) or len(topics) > MOST_TOPICS or sender == self._id:
            return
        if not is_position(message.subscriber.position) or not 0 <= message.subscriber.id < RING_SIZE:
            return
        accepted, refused, changed = [], [], []
        now = self._world.now
        for topic, end in zip(topics, ends, strict=True):
            if topic in self._roots or not _is_place(end):
                refused.append(topic)
                continue
            self._set_parent(topic, sender)
            if self._end.get(topic) != end:
                self._end[topic] = end
                self._version += 1
                if topic in self._children:
                    changed.append(topic)
            self._misplaced.pop(topic, None)
            self._attempts.pop(topic, None)
            accepted.append(topic)
        self._parent_heard[sender] = now
        if refused:
            self._world.send(sender, TreeLeft(tuple(refused)))
        if changed:
            self._check(changed)
        onward = [topic for topic in accepted if (topic, message.subscriber.id) not in self._handed_on]
        if onward and message.hops >= 0:
            self._handed_on.update((topic, message.subscriber.id) for topic in onward)
            self._descend(onward, message.subscriber, message.hops)
        for topic in accepted:
            self._leave_if_useless(topic)

    # Heartbeats (rule 4).

    def _receive_attached(self, sender: NodeId, message: TreeAttached) -> None:
        now = self._world.now
        if sender in self._child_heard:
            self._child_heard[sender] = now
        if self._pinged.get(sender) is not message:
            if len(message.topics) > MOST_TOPICS:
                return
            told = set(message.topics)
            for topic in [topic for topic in self._over.get(sender, ()) if topic not in told]:
                if now - self._children[topic][sender] > self._linger:
                    self._drop_child(topic, sender)
            if sender in self._over:
                self._pinged[sender] = message
        kept = self._answers.get(sender)
        if kept is not None and kept[0] is message and kept[1] == self._version:
            self._world.send(sender, kept[2])
            return
        children, strangers, ends = [], [], []
        for topic in message.topics:
            end = self._end_for(topic, sender) if sender in self._children.get(topic, ()) else None
            if end is None:
                strangers.append(topic)
            else:
                children.append(topic)
                ends.append(end)
        if strangers:
            self._world.send(sender, TreeMisplaced(tuple(strangers)))
        if children:
            answer = TreeEnds(tuple(children), tuple(ends))
            self._world.send(sender, answer)
            if not strangers:
                self._answers[sender] = (message, self._version, answer)

    def _end_for(self, topic: TopicId, child: NodeId) -> Place | None:
        """The end of a child's arc; None if no route leads to it from here."""
        contact = self._ring.contact(child)
        if contact is None:
            return None
        place = contact.place
        table_end = self._ring.end_of(place)
        if table_end is None or not self._covers(topic, place):
            return None
        own_end = self._ring.here if topic in self._roots else self._end[topic]
        return table_end if inside(table_end, place, own_end) else own_end

    def _receive_ends(self, sender: NodeId, message: TreeEnds) -> None:
        if sender in self._parent_heard:
            self._parent_heard[sender] = self._world.now
        if self._ends_heard.get(sender) is message:
            return
        if len(message.topics) != len(message.ends) or len(message.topics) > MOST_TOPICS:
            return
        changed = []
        for topic, end in zip(message.topics, message.ends, strict=True):
            if self._parent.get(topic) == sender and self._end.get(topic) != end and _is_place(end):
                self._end[topic] = end
                self._version += 1
                if topic in self._children:
                    changed.append(topic)
        if sender in self._under:
            self._ends_heard[sender] = message
        if changed:
            self._check(changed)

    def _receive_misplaced(self, sender: NodeId, message: TreeMisplaced) -> None:
        topics = [topic for topic in message.topics[:MOST_TOPICS] if self._parent.get(topic) == sender]
        news = [topic for topic in topics if topic not in self._misplaced]
        for topic in topics:
            self._misplaced[topic] = None
        self._tell_all_below(news)
        for topic in topics:
            self._leave_if_useless(topic)

    def _receive_left(self, sender: NodeId, message: TreeLeft) -> None:
        for topic in message.topics[:MOST_TOPICS]:
            self._stop_fading(topic, sender)
            if sender in self._children.get(topic, ()):
                self._drop_child(topic, sender)

    def _check(self, topics: Iterable[TopicId]) -> None:
        """Tell those children that no route leads to from here any more."""
        gone: dict[NodeId, list[TopicId]] = {}
        for topic in topics:
            for child in self._children.get(topic, ()):
                if self._end_for(topic, child) is None:
                    gone.setdefault(child, []).append(topic)
        self._misplace(gone)

    def _tell_all_below(self, topics: Iterable[TopicId]) -> None:
        below: dict[NodeId, list[TopicId]] = {}
        for topic in topics:
            for child in self._children.get(topic, ()):
                below.setdefault(child, []).append(topic)
        self._misplace(below)

    def _misplace(self, children: Mapping[NodeId, list[TopicId]]) -> None:
        until = self._world.now + self._linger
        for child, topics in children.items():
            self._world.send(child, TreeMisplaced(tuple(topics)))
            for topic in topics:
                self._fading.setdefault(topic, {})[child] = until
                self._drop_child(topic, child)

    # State.

    def _give_up_silent(self, now: float) -> None:
        deadline = now - self._silent
        for peer in [peer for peer, heard in self._parent_heard.items() if heard < deadline]:
            self._orphan(peer, list(self._under.get(peer, ())))
            self._parent_heard.pop(peer, None)
        for peer in [peer for peer, heard in self._child_heard.items() if heard < deadline]:
            for topic in list(self._over.get(peer, ())):
                self._drop_child(topic, peer)
        over = [
            (t, peer) for t, peers in self._fading.items() for peer, until in peers.items() if until <= now
        ]
        for topic, peer in over:
            self._stop_fading(topic, peer)

    def _become_root(self, topic: TopicId) -> None:
        if topic not in self._roots:
            self._roots.add(topic)
            self._version += 1
            self._leave_parent_later(topic)
        self._misplaced.pop(topic, None)
        self._attempts.pop(topic, None)

    def _set_parent(self, topic: TopicId, parent: NodeId) -> None:
        if self._parent.get(topic) == parent:
            return
        self._leave_parent_later(topic)
        self._parent[topic] = parent
        self._under.setdefault(parent, {})[topic] = None
        self._pings.pop(parent, None)
        self._stay(topic, parent)

    def _leave_parent_later(self, topic: TopicId) -> None:
        """The parent serves a period longer (rule 4)."""
        parent = self._parent.get(topic)
        if parent is not None:
            self._unlink_parent(topic, parent)
            self._leaving.setdefault(parent, {})[topic] = self._world.now

    def _leave_former_parents(self, now: float) -> None:
        for parent in list(self._leaving):
            topics = self._leaving[parent]
            due = [topic for topic, since in topics.items() if now - since >= self._period]
            if due:
                self._world.send(parent, TreeLeft(tuple(due)))
                for topic in due:
                    self._stay(topic, parent)

    def _stay(self, topic: TopicId, parent: NodeId) -> None:
        """The parent is not left, or has been."""
        topics = self._leaving.get(parent)
        if topics is not None and topics.pop(topic, None) is not None:
            self._pings.pop(parent, None)
            if not topics:
                del self._leaving[parent]

    def _leave_parent(self, topic: TopicId) -> None:
        parent = self._parent.get(topic)
        if parent is not None:
            self._unlink_parent(topic, parent)
            self._world.send(parent, TreeLeft((topic,)))

    def _unlink_parent(self, topic: TopicId, parent: NodeId) -> None:
        del self._parent[topic]
        self._end.pop(topic, None)
        self._version += 1
        topics = self._under[parent]
        del topics[topic]
        self._pings.pop(parent, None)
        if not topics:
            del self._under[parent]
            self._parent_heard.pop(parent, None)
            self._ends_heard.pop(parent, None)

    def _orphan(self, parent: NodeId, topics: list[TopicId]) -> None:
        """The parent is dead: nothing comes from there any more, and all below have to ask anew."""
        for topic in topics:
            self._unlink_parent(topic, parent)
        self._tell_all_below(topics)
        for topic in topics:
            self._misplaced.pop(topic, None)

    def _add_child(self, topic: TopicId, child: NodeId) -> bool:
        children = self._children.get(topic)
        if children is not None and child in children:
            return True
        if self._count >= self._most:
            return False
        self._count += 1
        self._children.setdefault(topic, {})[child] = self._world.now
        self._stop_fading(topic, child)  # Not before: a node without children leaves.
        self._over.setdefault(child, {})[topic] = None
        self._child_heard.setdefault(child, self._world.now)
        self._version += 1
        return True

    def _drop_child(self, topic: TopicId, child: NodeId) -> None:
        children = self._children[topic]
        del children[child]
        self._count -= 1
        self._version += 1
        if not children:
            del self._children[topic]
        topics = self._over[child]
        del topics[topic]
        if not topics:
            del self._over[child]
            for memory in (self._child_heard, self._pinged, self._answers):
                memory.pop(child, None)
        self._leave_if_useless(topic)

    def _stop_fading(self, topic: TopicId, child: NodeId) -> None:
        peers = self._fading.get(topic)
        if peers is not None and peers.pop(child, None) is not None and not peers:
            del self._fading[topic]
            self._leave_if_useless(topic)

    def _leave_if_useless(self, topic: TopicId) -> None:
        """A node without children that does not want the topic has no part in its tree (rule 3)."""
        if topic in self._wanted or topic in self._children or topic in self._fading:
            return
        self._roots.discard(topic)
        self._misplaced.pop(topic, None)
        self._leave_parent(topic)


def _believable(topics: tuple[TopicId, ...]) -> list[TopicId]:
    return [topic for topic in topics[:MOST_TOPICS] if 0 <= topic < RING_SIZE]


def _is_place(place: Place) -> bool:
    return is_position(place[0]) and 0 <= place[1] < RING_SIZE
