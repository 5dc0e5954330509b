"""A node as a coordinator: what it repairs, and when.

- Departures of predecessors (Alg. 5): `ChurnEvents` says which are this node's to handle.
- Joins: the nearest predecessor has no neighbour on some topic (it joined, or wants something new).
- Its own leaving of a topic that it held together.
- Parts (beyond the paper): at a start from nothing, and should more go wrong than L covers, beacons show
  which topics are in several parts, and the lowest member of a part has itself linked to a lower part by the
  same repair.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial

from topicweave.blocks.topic_beacons import TopicBeacons
from topicweave.blocks.views import InterestView
from topicweave.model.ids import RING_SIZE, Interest, NodeId, TopicId
from topicweave.port import Receivers, Timers, World
from topicweave.systems.omen import circle
from topicweave.systems.omen.churn import ChurnEvents
from topicweave.systems.omen.local_view import LocalView, Predecessor
from topicweave.systems.omen.messages import Handled
from topicweave.systems.omen.parameters import OMenParameters
from topicweave.systems.omen.repair import shadow_of_join, shadow_of_leave
from topicweave.systems.omen.repairs import Repairs

TOPICS_PER_LOOK = 8
CANDIDATES_PER_TOPIC = 5
MANY_TOPICS = 256


class Coordinator:
    """`interest` gives what this node wants, `alive` whom it may count on when it looks at the circle,
    `watches` whether a peer's silence would be noticed.
    """

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        parameters: OMenParameters,
        local: LocalView,
        view: InterestView,
        beacons: TopicBeacons,
        repairs: Repairs,
        interest: Callable[[], Interest],
        alive: Callable[[], set[NodeId]],
        watches: Callable[[NodeId], bool],
    ) -> None:
        self._world = world
        self._id = node_id
        self.parameters = parameters
        self._local = local
        self._view = view
        self._beacons = beacons
        self._interest = interest
        self._alive = alive
        self._watches = watches
        # Topics this node leads although somebody lower wants them, and since when.
        self._parted: dict[TopicId, float] = {}
        self.churn = ChurnEvents(
            world,
            node_id,
            2 * parameters.resilience,
            parameters.standby_time,
            self._in_predecessor_range,
            self._departure_done,
        )
        self.repairs = repairs

    def receivers(self) -> Receivers:
        return {Handled: self._receive_handled, **self.repairs.receivers()}

    def timers(self) -> Timers:
        return {**self.churn.timers(), **self.repairs.timers()}

    def restart(self) -> None:
        """Timers were lost with the last life: forget what waited for them."""
        self._parted.clear()
        self.repairs.restart()
        for departed in [*self.churn.executing, *self.churn.standby]:
            self.churn.handled(departed)

    def known_peers(self) -> set[NodeId]:
        return {*self.churn.executing, *self.churn.standby, *self.repairs.known_peers()}

    def look(self, finds: bool) -> None:
        """What is to be done? Asked twice a second. `finds`: whether newcomers and parts of topics are to be
        linked, too.
        """
        self._execute_churn()
        if finds:
            self._link_predecessor()
            if self.parameters.bridges:
                self._look_at_parts()

    # Departures (Alg. 5).

    def departed(self, predecessor: NodeId) -> None:
        coordinator = circle.successors(predecessor, {self._id, *self._alive()} - {predecessor}, 1)[0]
        self.churn.handle(predecessor, coordinator)
        self._execute_churn()

    def _in_predecessor_range(self, churned: NodeId) -> bool:
        return circle.is_in_predecessor_range(
            self._id, churned, self._local.predecessors, self.parameters.resilience
        )

    def _departure_done(self, churned: NodeId) -> None:
        self._local.held.discard(churned)
        if churned not in self._local.predecessors:
            self._local.records.pop(churned, None)

    def _execute_churn(self) -> None:
        """processExeQ: one departure after another."""
        while (event := self.churn.next()) is not None:
            if event.node in self.repairs or self.repairs.busy:
                return
            record = self._local.records[event.node]
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
            since=self._world.now - record.gone,
            sources=() if how == "shadow" else neighbours,
            spread=topics if how == "spread" else frozenset(),
        )
        return True

    def _complete(self, departed: NodeId, silent: Collection[NodeId]) -> None:
        """notifySuccRange: all who stand by may forget it."""
        self.churn.handled(departed)
        for peer in self._local.successors:
            self._world.send(peer, Handled(departed))
        self._unanswered(silent)

    def _unanswered(self, silent: Collection[NodeId]) -> None:
        for peer in silent:
            if not self._watches(peer):
                self._view.lost(peer)

    def _receive_handled(self, sender: NodeId, message: Handled) -> None:
        if message.churned not in self.repairs:
            self.churn.handled(message.churned)

    # Topics that this node itself leaves.

    def left_topics(self, held: Interest, neighbours: Collection[NodeId]) -> None:
        """To leave a topic is to leave the overlay as far as that topic goes; the node can see to it itself."""
        if held and not self.repairs.busy and self._id not in self.repairs:
            backups = self._local.build_backups(self._id, held, self._pool(held))
            self.repairs.start(
                self._id,
                held,
                shadow_of_leave(backups, neighbours),
                self._unanswered,
                since=0.0,
                sources=neighbours,
                spread=held,
            )

    # Joins: a predecessor without a neighbour on some topic.

    def _link_predecessor(self) -> None:
        if not self._local.predecessors or self.repairs.busy:
            return
        nearest = self._local.predecessors[0]
        record = self._local.records[nearest]
        now = self._world.now
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
        # Without any backup there is nobody to link a newcomer to, whatever the coverage factor.
        backups = self._local.build_backups(nearest, topics, pool, least=1)
        if backups:
            members = shadow_of_join(backups, nearest)
            self.repairs.start(nearest, topics, members, self._unanswered, part_of=nearest)

    def _pool(self, topics: Collection[TopicId]) -> dict[NodeId, Interest]:
        """A few subscribers of each topic, as the interest view knows them; and this node."""
        pool = self._known(topics, RING_SIZE)
        interest = self._interest()
        if interest.intersection(topics):
            pool[self._id] = interest
        return pool

    def _known(self, topics: Collection[TopicId], below: NodeId) -> dict[NodeId, Interest]:
        """A few subscribers of each topic with identifiers below a bound."""
        if len(topics) > MANY_TOPICS:
            return self._known_of_many(topics, below)
        pool = {}
        for topic in sorted(topics):
            known = [peer for peer in self._view.subscribers(topic).tolist() if peer < below]
            for peer in self._world.random.sample(known, min(CANDIDATES_PER_TOPIC, len(known))):
                pool[peer] = self._view.interest_of(peer)
        return pool

    def _known_of_many(self, topics: Collection[TopicId], below: NodeId) -> dict[NodeId, Interest]:
        """The same peer by peer, which is faster where many want the same thousands of topics: in random
        order, those that some topic still lacks.
        """
        peers = [peer for peer in self._view.peers() if peer < below]
        self._world.random.shuffle(peers)
        lacking = [set(topics) for _ in range(CANDIDATES_PER_TOPIC)]
        pool = {}
        for peer in peers:
            interest = self._view.interest_of(peer)
            shared = interest & lacking[-1]  # what is covered least often of all
            if shared:
                pool[peer] = interest
                for still in lacking:
                    first = shared & still
                    still -= first
                    shared -= first
        return pool

    # Mending parts (beyond the paper).

    def forget_topics(self, topics: Iterable[TopicId]) -> None:
        for topic in topics:
            self._parted.pop(topic, None)

    def _look_at_parts(self) -> None:
        """The lowest member of a part of a topic joins it to others, if it goes on to know of lower subscribers."""
        now, rng = self._world.now, self._world.random
        topics = self._beacons.topics
        some = rng.sample(topics, min(TOPICS_PER_LOOK, len(topics)))
        for topic in {**dict.fromkeys(some), **self._parted}:
            lower = self._beacons.leader(topic) == self._id and self._knows_lower(topic)
            if lower:
                self._parted.setdefault(topic, now)
            else:
                self._parted.pop(topic, None)
        due = frozenset(
            topic for topic, since in self._parted.items() if now - since >= self.parameters.beacons.patience
        )
        if not due or self.repairs.busy or self._id in self.repairs:
            return
        for topic in due:
            self._parted[topic] = now
        # It is the lowest of its part, so all lower ones are of others. Of any few subscribers all might be
        # of its own, again and again.
        others = self._known(due, self._id)
        self.repairs.start(self._id, due, {self._id, *others}, self._unanswered, part_of=self._id)

    def _knows_lower(self, topic: TopicId) -> bool:
        lowest = self._view.lowest(topic)
        return lowest is not None and lowest < self._id
