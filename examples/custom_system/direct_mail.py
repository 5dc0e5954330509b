"""A system of one's own: a publisher sends every event straight to each subscriber that it knows of.

A node has a link to everybody who shares a topic with it: no relays, no noise. Good for a few hundred nodes.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from topicweave.blocks.interest_node import ViewNode
from topicweave.blocks.seen import SeenEvents
from topicweave.blocks.views import InterestView
from topicweave.model.event import Event
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import EventMessage, Link, Receivers, TimerKey, Timers, World
from topicweave.systems.system import System


class Letter(EventMessage, frozen=True, array_like=True, tag="direct-letter"):
    """An event, from its publisher."""


class Times(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keep: float = 20.0
    """Seconds for which an event is sent to subscribers that become known after it was published."""
    look_every: float = 1.0


class DirectMailNode(ViewNode):
    """Membership, numbers and interests come with `ViewNode`; what is left is whom to write to."""

    def __init__(
        self, world: World, node_id: NodeId, topics: Iterable[TopicId], view: InterestView, parameters: Times
    ) -> None:
        super().__init__(world, node_id, topics, view)
        self.parameters = parameters
        self._seen = SeenEvents()
        self._written: dict[Event, tuple[float, set[NodeId]]] = {}  # until when, and who has it
        self.use(self)

    def receivers(self) -> Receivers:
        return {Letter: self._receive_letter}

    def timers(self) -> Timers:
        return {"look": self._look}

    def start(self, contacts: Sequence[NodeId]) -> None:
        super().start(contacts)
        self._look(("look",))

    def _spread(self, event: Event) -> int:
        self._seen.first_time(event.id)
        self._written[event] = (self.world.now + self.parameters.keep, {self.id})
        return self._write(event)

    def _reached_nobody(self, topic: TopicId) -> str:
        return f"no subscriber is known yet; whoever is within {self.parameters.keep:g} s gets it"

    def _write(self, event: Event) -> int:
        has_it = self._written[event][1]
        new = [peer for peer in self.view.subscribers(event.topic).tolist() if peer not in has_it]
        has_it.update(new)
        for peer in new:
            self.world.send(peer, Letter(event, 1))
        return len(new)

    def _look(self, key: TimerKey) -> None:
        self.world.set_timer(key, self.parameters.look_every)
        self._written = {event: kept for event, kept in self._written.items() if kept[0] > self.world.now}
        for event in self._written:
            self._write(event)

    def _receive_letter(self, _sender: NodeId, letter: Letter) -> None:
        if self._seen.first_time(letter.event.id):
            self._hand_over(letter.event)

    def peer_lost(self, peer: NodeId) -> None:
        self.view.lost(peer)

    def leave(self) -> None:
        self.view.leave()

    def links(self) -> Iterator[Link]:
        for peer in self.view.peers():
            if self._interest & self.view.interest_of(peer):
                yield Link(peer, "shares")

    def known_peers(self) -> set[NodeId]:
        return set(self.view.peers())


DIRECT_MAIL = System(
    name="direct-mail",
    summary="every event straight from its publisher to each subscriber it knows",
    source="examples/custom_system",
    parameters=Times,
    build=DirectMailNode,
    connects_topics=True,
)
