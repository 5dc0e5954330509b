"""A node whose events spread over a broadcast tree: whole bursts of them at once, where the world has them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from topicweave.blocks.broadcast_tree import BroadcastTree, Push
from topicweave.blocks.interest_node import InterestNode
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import EventMessage, Onward


class TreeNode(InterestNode):
    """A system says what its tree is."""

    _tree: BroadcastTree

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
