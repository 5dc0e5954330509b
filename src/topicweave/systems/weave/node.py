"""A node of Weave."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence

from topicweave.blocks.views import InterestView
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import TimerKey, World
from topicweave.systems.spidercast.messages import Connect, ConnectOk, Leave, Redirect
from topicweave.systems.spidercast.node import NOTHING, OverlayNode
from topicweave.systems.spidercast.selection import Selection
from topicweave.systems.spidercast.task import REFUSED
from topicweave.systems.weave import rules
from topicweave.systems.weave.nearness import Nearness
from topicweave.systems.weave.parameters import WeaveParameters
from topicweave.systems.weave.selection import LowerSelection, ShortcutSelection

COVER, SHORTCUT = "cover", "shortcut"
MOST_REMEMBERED = 1024
"""Of those who sent this node on, and of those that it sent on."""
MOST_PREPARED = 1024
"""Topics at a time."""
AT_EASE = 0.7
"""Up to this share of the most links that it may have, a hub takes whoever comes."""
SENT_ON = 3
"""For how many quarantines a node takes who comes again."""


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
        # Until when those who were sent on are taken, should they come again; and until when those who sent
        # this node on are left alone.
        self._sent_on: dict[NodeId, float] = {}
        self._refused: dict[NodeId, float] = {}
        # Topics whose links downwards have changed since a tree was prepared.
        self._unprepared: dict[TopicId, None] = {}
        self._nearness = Nearness(world, parameters.near, self._look_for_better)
        self._cover = self._make_cover(node_id, view, parameters)
        selections = self._selections(node_id, view, parameters)
        super().__init__(world, node_id, subscriptions, view, parameters, selections)
        self._tree.spill(parameters.spill, view.audience)
        self.use(self._nearness)

    def start(self, contacts: Sequence[NodeId]) -> None:
        self._nearness.restart()
        super().start(contacts)

    def _make_cover(self, own: NodeId, view: InterestView, parameters: WeaveParameters) -> LowerSelection:
        nearness = self._nearness if parameters.near else None
        return LowerSelection(
            own, view, parameters.most_links, parameters.lean, self._refused.keys(), nearness
        )

    def _selections(
        self, own: NodeId, view: InterestView, parameters: WeaveParameters
    ) -> dict[str, Selection]:
        return {COVER: self._cover, SHORTCUT: ShortcutSelection(parameters.links, view, self._needed)}

    def known_peers(self) -> set[NodeId]:
        return (
            super()
            .known_peers()
            .union(self._sent_on, self._refused, self._cover.known_peers(), self._nearness.known_peers())
        )

    def _needed(self) -> Collection[NodeId] | None:
        """The neighbours of the tasks that come before shortcuts; None while they still ask for some."""
        if not self.tasks[COVER].content():
            return None
        return [peer for name, task in self.tasks.items() if name != SHORTCUT for peer in task.neighbours]

    def _suited(self, topic: TopicId) -> bool:
        """Only a lower id is of use, and none that was just asked in vain. The lowest subscriber of a topic
        goes on asking, ever more seldom: a lower one may come.
        """
        if self._cover.covers(topic):
            return True
        known = self.view.subscribers(topic)
        in_vain = self.tasks[COVER].in_vain
        return not all(in_vain(peer) for peer in known[known < self.id].tolist())

    def _maintain(self, key: TimerKey) -> None:
        super()._maintain(key)
        now = self.world.now
        for memory in (self._sent_on, self._refused):
            for peer in [peer for peer, until in memory.items() if until <= now]:
                del memory[peer]
        self._cover.forget_ways_back(now)

    def peer_lost(self, peer: NodeId) -> None:
        super().peer_lost(peer)
        self._refused.pop(peer, None)
        self._cover.lost(peer)
        self._nearness.forget(peer)

    def _better_neighbours(self) -> None:
        super()._better_neighbours()
        for peer in self._nearness.known_peers():
            if peer not in self._known_versions and not self.view.interest_of(peer):
                self._nearness.forget(peer)
        self._look_for_better()
        self.tasks[SHORTCUT].wake()

    def _beat(self, peers: Iterable[NodeId]) -> None:
        super()._beat(peers)
        # Until links that changed are prepared, events go over too many of them.
        if self.parameters.prepare and self.tasks[COVER].content():
            self._prepare_trees()

    def _prepare_trees(self) -> None:
        """In each topic the lowest neighbour is the parent: so all parents together are a tree."""
        bridged = self._bridged()
        choices = {}
        for topic in list(itertools.islice(self._unprepared, MOST_PREPARED)):
            del self._unprepared[topic]
            linked = self._links_of_topic(topic) if topic in self._interest else ()
            if lower := rules.parent_first(self.id, linked, bridged):
                choices[topic] = lower
        self._tree.prepare(choices)

    def _link_changed(self, peer: NodeId) -> None:
        before = self._interests.get(peer, NOTHING)
        super()._link_changed(peer)
        if peer < self.id:
            topics = before.symmetric_difference(self._interests.get(peer, NOTHING)) & self._interest
            self._unprepared.update(dict.fromkeys(sorted(topics)))

    def _took_up(self, topic: TopicId) -> None:
        super()._took_up(topic)
        self._unprepared[topic] = None

    def _look_for_better(self) -> None:
        cover = self.tasks[COVER]
        if (
            self.parameters.improve
            and cover.content()
            and self._cover.look_for_better([self.id, *cover.known_peers()])
        ):
            cover.wake()

    def _receive_connect_ok(self, sender: NodeId, message: ConnectOk) -> None:
        wished = message.task == COVER and self._cover.wishes_for(sender)
        super()._receive_connect_ok(sender, message)
        if wished:
            self._look_for_better()

    def _elsewhere(self, topic: TopicId, source: NodeId) -> tuple[NodeId, ...]:
        bridged = self._bridged()
        if source in bridged:
            return ()
        linked = [peer for peer in self._links_of_topic(topic) if peer not in bridged]
        return rules.get_it_from_lower(self.id, source, linked)

    def _bridged(self) -> Collection[NodeId]:
        """Who is linked by a bridge may be in another part of a topic."""
        task = self.tasks.get("bridge")
        return task.neighbours if task is not None else ()

    # Who is busy sends others on.

    def _receive_connect(self, sender: NodeId, message: Connect) -> None:
        if self.degree < self._busy(self.id) or sender in self._known_versions:
            super()._receive_connect(sender, message)
        elif message.task == SHORTCUT:
            self.world.send(sender, Leave(SHORTCUT))
        elif message.task != COVER or self._comes_again(sender):
            super()._receive_connect(sender, message)
        else:
            self._sent_on[sender] = self.world.now + SENT_ON * self.parameters.quarantine
            other = self._stand_in(sender, message)
            self.world.send(sender, Leave(COVER) if other is None else Redirect(COVER, other))

    def _comes_again(self, sender: NodeId) -> bool:
        """Whether it was sent on a moment ago. There are too many of those to remember more: then as well."""
        return self._sent_on.pop(sender, None) is not None or len(self._sent_on) >= MOST_REMEMBERED

    def _busy(self, peer: NodeId) -> int:
        """From how many links on a node sends others on, to neighbours that have fewer. Hubs keep room for those
        who come again, because a topic may have nobody else to link to.
        """
        parameters = self.parameters
        hub = rules.is_hub(peer, parameters.hubs)
        return max(parameters.busy, int(AT_EASE * parameters.most_links)) if hub else parameters.busy

    def _stand_in(self, sender: NodeId, message: Connect) -> NodeId | None:
        known = self.tasks[COVER].neighbours
        neighbours = {peer: (neighbour.degree, neighbour.interest) for peer, neighbour in known.items()}
        peer = rules.stand_in(sender, message.interest & self._interest, neighbours, self._busy)
        if peer is not None:
            # Until it says itself how many links it has, or all who come would be sent to the same one.
            known[peer].degree += 1
        return peer

    def _receive_redirect(self, sender: NodeId, message: Redirect) -> None:
        if message.task != COVER or not self.tasks[COVER].awaits(sender):
            super()._receive_redirect(sender, message)
        elif self._cover.wishes_for(sender) or not self._cover.is_below(message.peer):
            # A node that only looks for better neighbours takes no worse one, and a peer with a higher id
            # would be of no use.
            self._turned_down(sender)
        else:
            self._sent_on_by(sender, message)

    def _sent_on_by(self, sender: NodeId, message: Redirect) -> None:
        """Ask the peer that was named. If neither that one nor others are of help, go back to the sender: it
        takes this node then.
        """
        again = self._cover.sent_on(sender, self.world.now + SENT_ON * self.parameters.quarantine)
        self._remember_refusal(sender)
        if not self._cover.is_of_no_help(message.peer):
            super()._receive_redirect(sender, message)
        cover = self.tasks[COVER]
        cover.refused(sender, ask_again=again)
        cover.wake()

    def _receive_leave(self, sender: NodeId, message: Leave) -> None:
        if not message.gone and message.task == COVER and self.tasks[COVER].awaits(sender):
            self._turned_down(sender)
        super()._receive_leave(sender, message)

    def _turned_down(self, sender: NodeId) -> None:
        """Ask others first. A peer that is asked a second time takes this node."""
        cover = self.tasks[COVER]
        cover.refused(sender, ask_again=sender not in self._refused)
        self._remember_refusal(sender)
        self._cover.give_up(sender)
        cover.wake()

    def _remember_refusal(self, peer: NodeId) -> None:
        if len(self._refused) < MOST_REMEMBERED:
            self._refused[peer] = self.world.now + REFUSED * self.parameters.quarantine
