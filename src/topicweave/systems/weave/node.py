"""A node of Weave."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from topicweave.blocks.views import InterestView
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import World
from topicweave.systems.spidercast.messages import Redirect
from topicweave.systems.spidercast.node import OverlayNode
from topicweave.systems.weave.parameters import WeaveParameters
from topicweave.systems.weave.selection import LowerSelection, ShortcutSelection

COVER, SHORTCUT = "cover", "shortcut"


class WeaveNode(OverlayNode):
    """Links to lower ids that cover its topics, and shortcuts where those are few."""

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        subscriptions: Iterable[TopicId],
        view: InterestView,
        parameters: WeaveParameters,
    ) -> None:
        self._cover = LowerSelection(node_id, view, parameters.most_links, parameters.tie)
        shortcuts = ShortcutSelection(parameters.links, view, self._needed)
        super().__init__(
            world, node_id, subscriptions, view, parameters, {COVER: self._cover, SHORTCUT: shortcuts}
        )

    def _needed(self) -> Collection[NodeId] | None:
        """The neighbours of the tasks that come before shortcuts; None while they still ask for some."""
        if not self.tasks[COVER].content():
            return None
        return [peer for name, task in self.tasks.items() if name != SHORTCUT for peer in task.neighbours]

    def _receive_redirect(self, sender: NodeId, message: Redirect) -> None:
        # Somebody with a higher id would be of no use.
        if message.task != COVER or self._cover.is_below(message.peer):
            super()._receive_redirect(sender, message)

    def _better_neighbours(self) -> None:
        super()._better_neighbours()
        cover = self.tasks[COVER]
        if cover.content() and self._cover.look_for_better([self.id, *cover.known_peers()]):
            cover.wake()
        self.tasks[SHORTCUT].wake()
