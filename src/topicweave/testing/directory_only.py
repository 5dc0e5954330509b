"""A system whose nodes do nothing but keep a view with a topic directory: to test and measure membership alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from topicweave.blocks.directory_view import DirectoryView
from topicweave.blocks.topic_directory import TopicDirectory
from topicweave.blocks.views import InterestView
from topicweave.model.event import Event
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.port import Link, Node, Published, World
from topicweave.systems.system import System


class NoParameters(msgspec.Struct, frozen=True):
    """There are none."""


class DirectoryNode(Node):
    def __init__(
        self,
        world: World,
        node_id: NodeId,
        subscriptions: Iterable[TopicId],
        view: InterestView,
        _parameters: NoParameters,
    ) -> None:
        super().__init__(world, node_id, subscriptions)
        assert isinstance(view, DirectoryView)
        self.view = view
        self.use(view)

    @property
    def directory(self) -> TopicDirectory:
        return self.view.directory

    def _interest(self) -> Interest:
        return frozenset(self.subscriptions)

    def start(self, contacts: Sequence[NodeId]) -> None:
        self.view.set_interest(self._interest())
        self.view.start(contacts)

    def subscribe(self, topic: TopicId) -> None:
        self.subscriptions.add(topic)
        self.view.set_interest(self._interest())

    def unsubscribe(self, topic: TopicId) -> None:
        self.subscriptions.discard(topic)
        self.view.set_interest(self._interest())

    def publish(self, topic: TopicId, payload: bytes = b"") -> Published:
        self.view.seek(topic)
        return Published(Event(self.id, topic, 0, 0, payload), 0)

    def peer_lost(self, peer: NodeId) -> None:
        self.view.lost(peer)

    def leave(self) -> None:
        self.view.leave()

    def links(self) -> list[Link]:
        return [Link(peer, "membership") for peer in sorted(self.view.contacts())]

    def known_peers(self) -> set[NodeId]:
        return self.view.known_peers()


DIRECTORY_ONLY = System(
    name="directory-only",
    summary="nothing but membership",
    source="topicweave.testing",
    parameters=NoParameters,
    build=DirectoryNode,
    connects_topics=False,
)
