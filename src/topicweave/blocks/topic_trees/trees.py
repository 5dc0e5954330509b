"""One tree per topic, from its home location down greedy routes to its subscribers (Magnet §3.3, Algorithm 2).

A topic's *home* is the node that owns the topic's hash on the control ring. The trees run over another ring (or, in the
strawman, the same one), and the path from the home to a subscriber is the greedy route between the two there.

Rules kept
----------
1. A node routes everything between two entries of its table to the first of them. So the home's greedy routes
   through a node of the tree lead to one arc of points. The arc begins at the node and reaches to its *end*: the
   nearest of all next entries in the tables on the way. Each parent tells its children their ends. A node is on
   the route to a subscriber if and only if the subscriber is on its arc.
2. A subscriber sends its request to any node in the tree. The request climbs to the first node on whose arc the
   subscriber is. If there is none, or no node of the tree is known, it goes to the home. From there it goes down
   the greedy route, and every hop becomes a child of the hop before it.
3. Only subscribers ask. A node that neither wants a topic nor has children for it leaves the tree.
4. Both ends of an edge tell each other at the next beat after a change: a child tells its parent in which trees
   it is, and the parent tells the child its ends.
   - Every few beats a child sends a mark of both. A parent with another mark asks for the whole.
   - The ring notices when the other end dies, because every edge of a tree is a link of the ring.
   - A parent tells a child to which no route leads from it any more. The child tells all below it, and every
     subscriber among them asks anew.
   - The old parent serves such a child for a while: at most until it has had another parent for one period. An
     event may have passed the new parent before the child came, and not yet have reached the old one.
5. A node that is not the home any more, or loses its parent, tells all below it, too.
6. A node that has no fingers yet waits for some, for a while, before it asks. While a network starts there
   are only ring neighbours, and routes over these lead through half of it.
7. A request is handed on down once per period. Where tables disagree about somebody's place a route may be a
   circle for a while, and on a network that duplicates messages each round would bring more of them.

Deviation: the paper stops climbing at a node whose next hop towards the subscriber is already its child in
the tree (Algorithm 2, lines 8 to 11). That is not enough for the path to be the home's greedy route: a table
further up may hold an entry between the present path and the subscriber, which a request that comes from
below never meets, and a node beyond the subscriber would route to it all the way round the ring. The arcs are
what is missing. (Line 1 there asks that *p* be in T(t); it is q that must be.)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from topicweave.blocks.growing_ids import RingPlace, inside, is_position
from topicweave.blocks.harmonic_links import as_point
from topicweave.blocks.ring.messages import Contact
from topicweave.blocks.ring.ring import Ring
from topicweave.blocks.topic_trees.edges import Children, Parents
from topicweave.blocks.topic_trees.messages import (
    TreeAttached,
    TreeEnds,
    TreeGraft,
    TreeJoin,
    TreeLeft,
    TreeMisplaced,
    TreeStill,
    TreeTell,
)
from topicweave.model.ids import RING_SIZE, NodeId, TopicId
from topicweave.port import Receivers, World

MOST_TOPICS = 16_384
MOST_HOPS = 256
STILL_EVERY = 4
"""Beats between two words to a parent that nothing has changed."""


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
    """One node's part in all trees. The node calls `beat` once per period and `table_changed` when the ring's
    table did.
    """

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
        self._roots: set[TopicId] = set()
        self._parents = Parents()
        self._children = Children(parameters.most_children)
        self._misplaced: dict[TopicId, None] = {}  # that this node has to ask anew for, or was told to
        self._attempts: dict[TopicId, int] = {}
        # Requests, by topic and subscriber, since the last beat.
        self._handed_on: set[tuple[TopicId, NodeId]] = set()
        self._changes = 0
        self._unchecked = True
        self._beats = 0
        self._ends_as_of = 0

    def receivers(self) -> Receivers:
        return {
            TreeJoin: self._receive_join,
            TreeGraft: self._receive_graft,
            TreeAttached: self._receive_attached,
            TreeEnds: self._receive_ends,
            TreeStill: self._receive_still,
            TreeTell: self._receive_tell,
            TreeMisplaced: self._receive_misplaced,
            TreeLeft: self._receive_left,
        }

    # What a node asks.

    def is_home(self, topic: TopicId) -> bool:
        return self._control.own is not None and self._control.table.next_hop(as_point(topic)) == self._id

    def targets(self, topic: TopicId) -> list[NodeId]:
        """Whom to hand an event on to."""
        return self._children.served(topic)

    def children(self, topic: TopicId) -> list[NodeId]:
        return list(self._children.of.get(topic, ()))

    def parent(self, topic: TopicId) -> NodeId | None:
        return self._parents.of.get(topic)

    def is_in(self, topic: TopicId) -> bool:
        return topic in self._roots or topic in self._parents.of

    @property
    def topics(self) -> int:
        """How many topics this node has children for."""
        return len(self._children.of)

    @property
    def unattached(self) -> int:
        """How many wanted topics this node is not (rightly) in the tree of."""
        return sum(1 for topic in self._wanted if topic in self._misplaced or not self.is_in(topic))

    def known_peers(self) -> set[NodeId]:
        return self._parents.peers() | self._children.peers()

    # What a node tells.

    def table_changed(self) -> None:
        self._unchecked = True
        self._changes += 1

    def restart(self) -> None:
        for heard in (self._parents.heard, self._children.heard):
            heard.update(dict.fromkeys(heard, self._world.now))
        self._unchecked = True

    def lost(self, peer: NodeId) -> None:
        """A peer is dead: nobody's child, and no parent."""
        for topic in self._children.topics(peer):
            self._drop_child(topic, peer)
        for topic in [topic for topic, peers in self._children.fading.items() if peer in peers]:
            self._stop_fading(topic, peer)
        self._orphan(self._parents.topics(peer))
        self._parents.forget(peer)
        self._children.forget(peer)

    def unwanted(self, topic: TopicId) -> None:
        """The node does not want a topic any more."""
        self._attempts.pop(topic, None)
        self._misplaced.pop(topic, None)
        self._leave_if_useless(topic)

    def leave(self) -> None:
        """Let the children look for another parent at once."""
        for child, topics in self._children.all_edges():
            self._world.send(child, TreeMisplaced(topics))
        for parent, topics in self._parents.all_edges():
            self._world.send(parent, TreeLeft(topics))

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
            self._check(list(self._children.of))
        for former, topics in self._parents.to_leave(now - self._period):
            self._world.send(former, TreeLeft(topics))
        self._beats += 1
        for parent, ping in self._parents.pings(self._beats % STILL_EVERY == 0):
            self._ring.send(parent, ping)
        if self._ends_as_of != self._version:
            self._ends_as_of = self._version
            for child in self._children.with_topics():
                self._tell_ends(child)
        self.join()

    def join(self) -> None:
        """Ask for a place in the trees of all wanted topics that the node is not in (Algorithm 2)."""
        own = self._ring.own
        if own is None or self._control.own is None or len(self._ring.table) < 2 or not self._may_ask():
            return
        missing = []
        for topic in self._wanted:
            if topic not in self._misplaced and self.is_in(topic):
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
                parent = self._parents.of.get(topic)
                if parent is not None and parent != subscriber.id:
                    up.setdefault((parent, True), []).append(topic)
                    continue
            hop = self._control.table.next_hop(as_point(topic))
            if hop == self._id:
                self._become_root(topic)
                here.append(topic)
            else:
                up.setdefault((hop, False), []).append(topic)
        for (peer, climbs), together in up.items():
            self._world.send(peer, TreeJoin(tuple(together), subscriber, climbs, hops + 1))
        if here:
            self._descend(here, subscriber, 0)

    def _covers(self, topic: TopicId, place: RingPlace) -> bool:
        """Whether this node is on the route from the topic's home to a place (rule 1)."""
        if topic in self._roots:
            return True
        return topic in self._parents.of and inside(place, self._ring.here, self._parents.end[topic])

    def _descend(self, topics: list[TopicId], subscriber: Contact, hops: int) -> None:
        """One hop down the greedy route to a subscriber."""
        if subscriber.id == self._id or hops >= MOST_HOPS:
            return
        ring = self._ring
        hop, table_end = ring.table.hop_and_end(subscriber.place)
        if hop[1] == self._id:
            return  # The ring does not know the subscriber yet; it will ask again.
        here, ends, given = ring.here, [], []
        for topic in topics:
            own_end = here if topic in self._roots else self._parents.end.get(topic, here)
            if not self._children.add(topic, hop[1], self._world.now):
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
        for topic, end in dict(zip(topics, ends, strict=True)).items():
            if topic in self._roots or not _is_place(end) or not 0 <= topic < RING_SIZE:
                refused.append(topic)
                continue
            self._set_parent(topic, sender)
            if self._parents.set_end(topic, end) and topic in self._children.of:
                changed.append(topic)
            self._misplaced.pop(topic, None)
            self._attempts.pop(topic, None)
            accepted.append(topic)
        self._parents.heard[sender] = now
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
        now, below = self._world.now, self._children
        if sender in below.heard:
            below.heard[sender] = now
        unmentioned = below.unmentioned(sender, message, MOST_TOPICS)
        if unmentioned is None:
            return
        for topic in unmentioned:
            if now - below.of[topic][sender] > self._linger:
                self._drop_child(topic, sender)
        arc = self._arc_to(sender)
        strangers = [
            topic
            for topic in dict.fromkeys(message.topics)
            if sender not in below.of.get(topic, ()) or self._end_for(topic, arc) is None
        ]
        if strangers:
            self._world.send(sender, TreeMisplaced(tuple(strangers)))
        below.told.pop(sender, None)
        self._tell_ends(sender)

    def _tell_ends(self, child: NodeId) -> None:
        """A child's ends, unless it was told just these."""
        arc = self._arc_to(child)
        known = {topic: self._end_for(topic, arc) for topic in self._children.topics(child)}
        ends = {topic: end for topic, end in known.items() if end is not None}
        message = TreeEnds(tuple(ends), tuple(ends.values()))
        if ends and self._children.told.get(child) != message:
            self._children.told[child] = message
            self._world.send(child, message)

    def _receive_still(self, sender: NodeId, message: TreeStill) -> None:
        below = self._children
        if sender in below.heard:
            below.heard[sender] = self._world.now
        arc = self._arc_to(sender)
        if below.mark(sender, self._version, lambda topic: self._end_for(topic, arc)) != message.mark:
            self._world.send(sender, TreeTell())

    def _receive_tell(self, sender: NodeId, _message: TreeTell) -> None:
        if self._parents.topics(sender):
            self._world.send(sender, self._parents.ping(sender))

    def _arc_to(self, child: NodeId) -> tuple[RingPlace, RingPlace] | None:
        """A child's place, and where the arc ends that goes to it; None if the table does not hold it."""
        contact = self._ring.contact(child)
        if contact is None:
            return None
        place = contact.place
        end = self._ring.table.end_of(place)
        return (place, end) if end is not None else None

    def _end_for(self, topic: TopicId, arc: tuple[RingPlace, RingPlace] | None) -> RingPlace | None:
        """The end of a child's arc in the tree of a topic; None if no route leads to it from here."""
        if arc is None:
            return None
        place, table_end = arc
        if topic in self._roots:
            own_end = self._ring.here
        elif self._covers(topic, place):
            own_end = self._parents.end[topic]
        else:
            return None
        return table_end if inside(table_end, place, own_end) else own_end

    def _receive_ends(self, sender: NodeId, message: TreeEnds) -> None:
        above = self._parents
        if sender in above.heard:
            above.heard[sender] = self._world.now
        if above.ends_heard.get(sender) is message:
            return
        if len(message.topics) != len(message.ends) or len(message.topics) > MOST_TOPICS:
            return
        changed = []
        for topic, end in dict(zip(message.topics, message.ends, strict=True)).items():
            if above.of.get(topic) != sender or not _is_place(end):
                continue
            if above.set_end(topic, end) and topic in self._children.of:
                changed.append(topic)
        if above.topics(sender):
            above.ends_heard[sender] = message
        if changed:
            self._check(changed)

    def _receive_misplaced(self, sender: NodeId, message: TreeMisplaced) -> None:
        topics = [topic for topic in _believable(message.topics) if self._parents.of.get(topic) == sender]
        news = [topic for topic in topics if topic not in self._misplaced]
        for topic in topics:
            self._misplaced[topic] = None
        self._tell_all_below(news)
        for topic in topics:
            self._leave_if_useless(topic)

    def _receive_left(self, sender: NodeId, message: TreeLeft) -> None:
        for topic in _believable(message.topics):
            self._stop_fading(topic, sender)
            if sender in self._children.of.get(topic, ()):
                self._drop_child(topic, sender)

    def _check(self, topics: Iterable[TopicId]) -> None:
        """Tell those children that no route leads to from here any more."""
        gone: dict[NodeId, list[TopicId]] = {}
        arcs: dict[NodeId, tuple[RingPlace, RingPlace] | None] = {}
        for topic in topics:
            for child in self._children.of.get(topic, ()):
                if child not in arcs:
                    arcs[child] = self._arc_to(child)
                if self._end_for(topic, arcs[child]) is None:
                    gone.setdefault(child, []).append(topic)
        self._misplace(gone)

    def _tell_all_below(self, topics: Iterable[TopicId]) -> None:
        below: dict[NodeId, list[TopicId]] = {}
        for topic in topics:
            for child in self._children.of.get(topic, ()):
                below.setdefault(child, []).append(topic)
        self._misplace(below)

    def _misplace(self, children: Mapping[NodeId, list[TopicId]]) -> None:
        until = self._world.now + self._linger
        for child, topics in children.items():
            self._world.send(child, TreeMisplaced(tuple(topics)))
            for topic in topics:
                self._children.fade(topic, child, until)
                self._drop_child(topic, child)

    # State.

    def _give_up_silent(self, now: float) -> None:
        deadline = now - self._silent
        for peer in self._silent_since(deadline, self._parents.heard):
            self._orphan(self._parents.topics(peer))
            self._parents.heard.pop(peer, None)
        for peer in self._silent_since(deadline, self._children.heard):
            for topic in self._children.topics(peer):
                self._drop_child(topic, peer)
        for topic, peer in self._children.faded(now):
            self._stop_fading(topic, peer)

    def _silent_since(self, deadline: float, heard: Mapping[NodeId, float]) -> list[NodeId]:
        last = self._ring.heard
        return [peer for peer, time in heard.items() if time < deadline and last(peer) < deadline]

    def _become_root(self, topic: TopicId) -> None:
        if topic not in self._roots:
            self._roots.add(topic)
            self._changes += 1
            self._parents.remove_later(topic, self._world.now)
        self._misplaced.pop(topic, None)
        self._attempts.pop(topic, None)

    def _set_parent(self, topic: TopicId, parent: NodeId) -> None:
        if self._parents.of.get(topic) != parent:
            self._parents.remove_later(topic, self._world.now)
            self._parents.add(topic, parent)

    def _orphan(self, topics: list[TopicId]) -> None:
        """The parent is dead: nothing comes from there any more, and all below have to ask anew."""
        for topic in topics:
            self._parents.remove(topic)
        self._tell_all_below(topics)
        for topic in topics:
            self._misplaced.pop(topic, None)

    def _drop_child(self, topic: TopicId, child: NodeId) -> None:
        self._children.remove(topic, child)
        self._leave_if_useless(topic)

    def _stop_fading(self, topic: TopicId, child: NodeId) -> None:
        if topic in self._children.fading:
            self._children.stop_fading(topic, child)
            if topic not in self._children.fading:
                self._leave_if_useless(topic)

    def _leave_if_useless(self, topic: TopicId) -> None:
        """A node without children that does not want the topic has no part in its tree (rule 3)."""
        if topic in self._wanted or self._children.serves(topic):
            return
        self._roots.discard(topic)
        self._misplaced.pop(topic, None)
        parent = self._parents.remove(topic)
        if parent is not None:
            self._world.send(parent, TreeLeft((topic,)))

    @property
    def _version(self) -> int:
        """Grows whenever an answer to a child may be another one."""
        return self._changes + self._parents.version + self._children.version


def _believable(topics: tuple[TopicId, ...]) -> list[TopicId]:
    """Each once, whatever a peer says."""
    return [topic for topic in dict.fromkeys(topics[:MOST_TOPICS]) if 0 <= topic < RING_SIZE]


def _is_place(place: RingPlace) -> bool:
    return is_position(place[0]) and 0 <= place[1] < RING_SIZE
