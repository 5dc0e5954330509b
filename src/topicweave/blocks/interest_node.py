"""What the nodes of all systems have in common: they want topics, and publish events.

Rules kept
----------
1. Events are numbered per topic. A life that kept its memory, or was told of the last one (`resume`), numbers
   on from there.
2. A node's interest has a version that grows with every change, so that peers need compare no more than that.
3. Where a system says so, publishing on a topic that a node does not want makes it part of its interest,
   until `publisher_interest` seconds after the last event. A restart that kept the memory begins that time
   anew: its timers died with the last life.
4. The application is handed what it subscribed to, and nothing else; of what comes late, nothing from before it did.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence

from topicweave.blocks.numbering import EventNumbers
from topicweave.blocks.views import InterestView
from topicweave.model.event import Event
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.port import Node, Published, TimerKey, World

PUBLISHING = "publishing"


class InterestNode(Node):
    """Keeps the interest and numbers events. A system says what a change means, and where events go."""

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        subscriptions: Iterable[TopicId],
        publisher_interest: float | None = None,
    ) -> None:
        super().__init__(world, node_id, subscriptions)
        self._interest: Interest = frozenset(self.subscriptions)
        self._interest_version = 0
        self._numbers = EventNumbers(node_id)
        self._since, self._topic_since = world.now, dict[TopicId, float]()
        """When this life began, and when topics were subscribed to since."""
        self._publisher_interest = publisher_interest
        self._publishing: dict[TopicId, float] = {}  # on what it does not want: when the last event was
        if publisher_interest is not None:
            self._timers[PUBLISHING] = self._publishing_ends

    # What a system fills in.

    def _interest_changed(self, before: Interest) -> None:
        """The interest is another than `before` now."""

    def _carried(self) -> Collection[TopicId]:
        """Topics that it takes part in for the sake of others, though it wants them not."""
        return ()

    @abstractmethod
    def _spread(self, event: Event) -> int:
        """Send an event of this node's own on its way; returns to how many peers."""

    @abstractmethod
    def _reached_nobody(self, topic: TopicId) -> str:
        """Why an event went to nobody, and what becomes of it: the reason on its receipt."""

    # What the node is told.

    def start(self, contacts: Sequence[NodeId]) -> None:
        self._numbers.begin(self.world.now)
        self._since = self.world.now
        self._topic_since.clear()
        for topic in sorted(self._publishing):
            self._publishes_on(topic, renew=True)

    def resume(self, epoch: int, sequences: Mapping[TopicId, int]) -> None:
        self._numbers.resume(epoch, sequences)

    def subscribe(self, topic: TopicId) -> None:
        self.subscribe_all([topic])

    def subscribe_all(self, topics: Sequence[TopicId]) -> None:
        new = [topic for topic in topics if topic not in self.subscriptions]
        self._topic_since.update(dict.fromkeys(new, self.world.now))
        self.subscriptions.update(new)
        self._update_interest()

    def unsubscribe(self, topic: TopicId) -> None:
        self.subscriptions.discard(topic)
        self._topic_since.pop(topic, None)
        self._update_interest()

    def publish(self, topic: TopicId, payload: bytes = b"") -> Published:
        if self._publisher_interest is not None and topic not in self.subscriptions:
            self._publishes_on(topic, renew=topic not in self._publishing)
            if topic not in self._interest:
                self._update_interest()
        event = self._numbers.next_event(topic, payload)
        sent_to = self._spread(event)
        self._hand_over(event)
        return Published(event, sent_to, "" if sent_to else self._reached_nobody(topic))

    # For systems.

    def _own_interest(self) -> tuple[int, Interest]:
        return self._interest_version, self._interest

    def _topics(self) -> Interest:
        return self._interest

    def _takes_part_in(self, topic: TopicId) -> bool:
        return topic in self._interest

    def _hand_over(self, event: Event, age: float = 0.0) -> None:
        """`age`: of an event that comes late; one that is older than the application's interest is not for it."""
        topic = event.topic
        if topic in self.subscriptions and not (
            age and self.world.now - age < self._topic_since.get(topic, self._since)
        ):
            self.world.deliver(event)

    # The interest.

    def _own_topics(self) -> Interest:
        """What the node itself wants or publishes on."""
        publishes = self._publisher_interest is not None
        return frozenset().union(self.subscriptions, self._publishing if publishes else ())

    def _update_interest(self) -> None:
        wanted, carried = self._own_topics(), self._carried()
        interest = wanted.union(carried) if carried else wanted
        if interest != self._interest:
            before, self._interest = self._interest, interest
            self._interest_version += 1
            self._interest_changed(before)

    def _publishes_on(self, topic: TopicId, renew: bool) -> None:
        """Note an event. The timer runs on as it is, and looks how long ago the last event was when it ends."""
        assert self._publisher_interest is not None
        self._publishing[topic] = self.world.now
        if renew:
            self.world.set_timer((PUBLISHING, topic), self._publisher_interest)

    def _publishing_ends(self, key: TimerKey) -> None:
        topic = key[1]
        last = self._publishing.get(topic)
        if last is None or self._publisher_interest is None:
            return
        left = last + self._publisher_interest - self.world.now
        if left > 1e-6:
            self.world.set_timer(key, left)
        else:
            del self._publishing[topic]
            self._update_interest()


class ViewNode(InterestNode):
    """One that lets others know of its interest, and learns of theirs, through an interest view."""

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        subscriptions: Iterable[TopicId],
        view: InterestView,
        publisher_interest: float | None = None,
    ) -> None:
        super().__init__(world, node_id, subscriptions, publisher_interest)
        self.view = view
        self.use(view)

    def start(self, contacts: Sequence[NodeId]) -> None:
        super().start(contacts)
        self._enter_view(contacts)

    def _enter_view(self, contacts: Sequence[NodeId]) -> None:
        self._tell_view()
        self.view.start(contacts)

    def _interest_changed(self, before: Interest) -> None:
        self._tell_view()

    def _tell_view(self) -> None:
        """Others look for those who want a topic, not for those who carry it."""
        self.view.set_interest(self._own_topics() if self._carried() else self._interest)

    def _others_wanting(self, topic: TopicId) -> int | None:
        """How many others want a topic; None while that is not known. Whoever does not take part in it looks
        for them from now on.
        """
        if topic not in self._interest:
            self.view.seek(topic)
        return self.view.audience(topic)
