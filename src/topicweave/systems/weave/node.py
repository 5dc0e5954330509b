"""A node of Weave."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from topicweave.blocks.views import InterestView
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import TimerKey, World
from topicweave.systems.spidercast.messages import Connect, Leave, Redirect
from topicweave.systems.spidercast.node import OverlayNode
from topicweave.systems.weave import rules
from topicweave.systems.weave.parameters import WeaveParameters
from topicweave.systems.weave.selection import LowerSelection, ShortcutSelection

COVER, SHORTCUT = "cover", "shortcut"


class WeaveNode(OverlayNode):
    """Links to lower ids that cover its topics, and shortcuts where those are few."""

    parameters: WeaveParameters

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        subscriptions: Iterable[TopicId],
        view: InterestView,
        parameters: WeaveParameters,
    ) -> None:
        self._cover = LowerSelection(node_id, view, parameters.most_links, parameters.tie)
        self._sent_on: dict[NodeId, float] = {}  # until when they are taken, should they come again
        shortcuts = ShortcutSelection(parameters.links, view, self._needed)
        super().__init__(
            world, node_id, subscriptions, view, parameters, {COVER: self._cover, SHORTCUT: shortcuts}
        )

    def known_peers(self) -> set[NodeId]:
        return super().known_peers().union(self._sent_on)

    def _needed(self) -> Collection[NodeId] | None:
        """The neighbours of the tasks that come before shortcuts; None while they still ask for some."""
        if not self.tasks[COVER].content():
            return None
        return [peer for name, task in self.tasks.items() if name != SHORTCUT for peer in task.neighbours]

    def _suited(self, topic: TopicId) -> bool:
        """Only a lower id is of use. The lowest subscriber of a topic goes on asking, ever more seldom: a lower one may come."""
        if self._cover.covers(topic):
            return True
        lowest = self.view.lowest(topic)
        return lowest is not None and self._cover.is_below(lowest)

    def _maintain(self, key: TimerKey) -> None:
        super()._maintain(key)
        now = self.world.now
        for peer in [peer for peer, until in self._sent_on.items() if until <= now]:
            del self._sent_on[peer]

    def _better_neighbours(self) -> None:
        super()._better_neighbours()
        cover = self.tasks[COVER]
        if cover.content() and self._cover.look_for_better([self.id, *cover.known_peers()]):
            cover.wake()
        self.tasks[SHORTCUT].wake()

    # Who is busy sends others on.

    def _receive_connect(self, sender: NodeId, message: Connect) -> None:
        if self.degree < self.parameters.busy or sender in self._known_versions:
            super()._receive_connect(sender, message)
        elif message.task == SHORTCUT:
            self.world.send(sender, Leave(SHORTCUT))
        elif message.task != COVER or (other := self._stand_in(sender, message)) is None:
            super()._receive_connect(sender, message)
        else:
            self._sent_on[sender] = self.world.now + 3 * self.parameters.quarantine
            self.world.send(sender, Redirect(COVER, other))

    def _stand_in(self, sender: NodeId, message: Connect) -> NodeId | None:
        if self._sent_on.pop(sender, None) is not None or len(self._sent_on) >= self.parameters.most_links:
            return None
        neighbours = {
            peer: (neighbour.degree, neighbour.interest)
            for peer, neighbour in self.tasks[COVER].neighbours.items()
        }
        return rules.stand_in(sender, message.interest & self._interest, neighbours, self.parameters.busy)

    def _receive_redirect(self, sender: NodeId, message: Redirect) -> None:
        # Somebody with a higher id would be of no use.
        if message.task != COVER or self._cover.is_below(message.peer):
            super()._receive_redirect(sender, message)
