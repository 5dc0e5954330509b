"""A node whose events spread over a broadcast tree: whole bursts of them at once, where the world has them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from topicweave.blocks.broadcast_tree import NOBODY, NOT_YET, BroadcastTree, Push
from topicweave.blocks.interest_node import ViewNode
from topicweave.model.event import Event
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import EventMessage, Onward


class TreeNode(ViewNode):
    """A system says what its tree is."""

    _tree: BroadcastTree

    def _spread(self, event: Event) -> int:
        return self._tree.publish(event)

    def _reached_nobody(self, topic: TopicId) -> str:
        return NOBODY if self._others_wanting(topic) == 0 else NOT_YET

    def receive_run(self, sender: NodeId, messages: Sequence[EventMessage]) -> Onward | None:
        return self._tree.receive_run(sender, messages)

    def targets(self, topic: TopicId) -> Collection[NodeId]:
        return self._tree.targets(topic) if topic in self._interest else ()

    def numbered(self, topic: TopicId, payload: bytes) -> EventMessage:
        return Push(self._numbers.next_event(topic, payload), 1)

    def published(self, messages: Sequence[EventMessage]) -> None:
        topic = messages[0].event.topic
        if topic in self._publishing:
            self._publishing[topic] = self.world.now
        self._tree.published(messages)
