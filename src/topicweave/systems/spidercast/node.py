"""A SpiderCast node (§2): maintenance tasks over an interest view, events over the links they keep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from topicweave.blocks.broadcast_tree import BroadcastTree
from topicweave.blocks.broadcast_tree.node import TreeNode
from topicweave.blocks.failure_detector import FailureDetector
from topicweave.blocks.interest_news import InterestNews
from topicweave.blocks.topic_beacons import TopicBeacons
from topicweave.blocks.topic_directory import Parts
from topicweave.blocks.views import InterestView
from topicweave.model.ids import Interest, NodeId, TopicId
from topicweave.port import Link, Node, Receivers, TimerKey, Timers, World
from topicweave.systems.spidercast import rules
from topicweave.systems.spidercast.messages import (
    Connect,
    ConnectOk,
    Disconnect,
    DisconnectNo,
    DisconnectOk,
    Heartbeat,
    InterestQuery,
    InterestUpdate,
    Leave,
    Redirect,
    TaskState,
)
from topicweave.systems.spidercast.parameters import LinkParameters, SpiderCastParameters
from topicweave.systems.spidercast.selection import (
    BridgeSelection,
    CoverageSelection,
    Selection,
    first_overlapping,
)
from topicweave.systems.spidercast.task import MaintenanceTask

NOTHING: Interest = frozenset()
EXCHANGE_EVERY = 4
"""Heartbeats between two looks for better neighbours, for those who want the best."""


class OverlayNode(TreeNode):
    """A node that keeps the neighbours its tasks ask for, and spreads events over them.

    SpiderCast and its rivals of §3.9 are this class with different selections.
    """

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        subscriptions: Iterable[TopicId],
        view: InterestView,
        parameters: LinkParameters,
        selections: Mapping[str, Selection],
    ) -> None:
        # Topics that the node publishes on without wanting them are part of its interest, too (§2.1).
        super().__init__(world, node_id, subscriptions, view, parameters.publisher_interest)
        self.parameters = parameters
        self._topic_links: dict[TopicId, list[NodeId]] = {}  # until a link changes
        self._known_versions: dict[NodeId, int] = {}
        self._interests: dict[NodeId, Interest] = {}  # what neighbours want
        self._beats = 0
        self._bridges = BridgeSelection(parameters.bridges, parameters.margin, self._is_needless)
        if parameters.bridges:
            selections = {**selections, "bridge": self._bridges}
        self.tasks = {
            name: MaintenanceTask(
                world,
                node_id,
                name,
                selection,
                parameters,
                self._own_interest,
                self._link_changed,
                self._unanswered,
            )
            for name, selection in selections.items()
        }
        for task in self.tasks.values():
            task.selection.reset(self._interest)
        self._detector = FailureDetector(
            world,
            parameters.heartbeat_period,
            parameters.suspect_after,
            self._beat,
            self.peer_lost,
            ask=self._ask,
        )
        self._news = InterestNews(
            *(world, self._own_interest, self._interest_of, self._note_interest),
            *(InterestUpdate, InterestQuery()),
        )
        self._tree = BroadcastTree(
            *(world, self._links_of_topic, self._takes_part_in, self._hand_over, parameters.tree),
            elsewhere=self._elsewhere,
        )
        self._beacons = TopicBeacons(
            *(world, node_id, self._topics, view.lowest, self._bridge_to, parameters.beacons),
            told_every=parameters.heartbeat_period,
        )
        if parameters.bridges:
            view.serve(
                Parts(
                    self._beacons.lifetime,
                    self._beacons.leader,
                    self._beacons.leading,
                    self._introduced,
                    self._suited,
                    self._named,
                )
            )
        for block in (self._detector, self._news, self._tree, self._beacons, self):
            self.use(block)

    def receivers(self) -> Receivers:
        return {
            Connect: self._receive_connect,
            ConnectOk: self._receive_connect_ok,
            Redirect: self._receive_redirect,
            Disconnect: self._receive_disconnect,
            DisconnectOk: self._receive_disconnect_ok,
            DisconnectNo: self._receive_disconnect_no,
            Leave: self._receive_leave,
            Heartbeat: self._receive_heartbeat,
            InterestQuery: self._receive_interest_query,
            InterestUpdate: self._receive_interest_update,
        }

    def timers(self) -> Timers:
        return {"maintain": self._maintain}

    # What the node is told.

    def start(self, contacts: Sequence[NodeId]) -> None:
        super().start(contacts)
        self._tree.restart()
        for task in self.tasks.values():
            task.start()
        self._detector.start()
        if self.parameters.bridges:
            self._beacons.start()

    def peer_lost(self, peer: NodeId) -> None:
        for task in self.tasks.values():
            task.forget(peer)
        self._unanswered(peer)

    def leave(self) -> None:
        for peer in self._known_versions:
            self.world.send(peer, Leave(gone=True))
        self.view.leave()

    def links(self) -> Iterator[Link]:
        for task in self.tasks.values():
            for peer in task.neighbours:
                yield Link(peer, task.name)

    def known_peers(self) -> set[NodeId]:
        tasks = (task.known_peers() for task in self.tasks.values())
        blocks = (block.known_peers() for block in (self.view, self._news, self._tree, self._beacons))
        return set(self._known_versions).union(self._detector.watched, *blocks, *tasks)

    @property
    def degree(self) -> int:
        return len(self._known_versions)

    # Links, as the tasks make and break them.

    def _link_changed(self, peer: NodeId) -> None:
        self._topic_links.clear()
        ends = (task.neighbours.get(peer) for task in self.tasks.values())
        interest = next((neighbour.interest for neighbour in ends if neighbour), None)
        if interest is None:
            del self._known_versions[peer], self._interests[peer]
            self._detector.unwatch(peer)
            self._news.heard_all(peer)
            self._tree.link_down(peer)
        else:
            if peer not in self._known_versions:
                self._known_versions[peer] = -1
                self._detector.watch(peer)
            self._interests[peer] = interest
            self._tree.link_up(peer, interest)

    def _links_of_topic(self, topic: TopicId) -> list[NodeId]:
        known = self._topic_links.get(topic)
        if known is None:
            # dict: in order, each peer once.
            peers = {
                peer: None
                for task in self.tasks.values()
                for peer, neighbour in task.neighbours.items()
                if topic in neighbour.interest
            }
            known = self._topic_links[topic] = list(peers)
        return known

    def _maintain(self, key: TimerKey) -> None:
        self.tasks[key[1]].step()

    # Mending topics that came apart.

    def _elsewhere(self, topic: TopicId, source: NodeId) -> tuple[NodeId, ...]:
        """Neighbours that surely get a topic's event from others if it came from this one."""
        return ()

    def _bridge_to(self, peer: NodeId) -> None:
        self._bridges.want(peer)
        self.tasks["bridge"].wake()

    def _is_needless(self, peer: NodeId) -> bool:
        """Whether there is another way to all topics of a bridge."""
        return self._beacons.ways.needless(peer)

    def _make_room_for_bridges(self) -> None:
        for peer in self._bridges.take_leaving():
            self.tasks["bridge"].part(peer)

    def _introduced(self, topic: TopicId, peer: NodeId, label: NodeId | None) -> None:
        """A topic's home knows of another part of it. Coverage would see no need for the link, and the parts would
        part again: a bridge stays until there is another way.
        """
        if topic in self._interest and self._beacons.leader(topic) != label:
            self._bridge_to(peer)

    def _suited(self, topic: TopicId) -> bool:
        """Whether the node knows subscribers of a topic that it can make use of: here, whoever it is."""
        return True

    def _named(self) -> None:
        for task in self.tasks.values():
            task.look_again()

    def _unanswered(self, peer: NodeId) -> None:
        self.view.lost(peer)
        self._bridges.give_up(peer)

    # Interest.

    def _interest_changed(self, before: Interest) -> None:
        super()._interest_changed(before)
        came, went = self._interest - before, before - self._interest
        for topic in sorted(went):
            self._tree.topic_down(topic)
        for topic in sorted(came):
            self._took_up(topic)
        for task in self.tasks.values():
            task.interest_changed((came, went))
        self._news.tell(self._known_versions, before)

    def _took_up(self, topic: TopicId) -> None:
        """It takes part in a topic from now on."""
        self._tree.topic_up(topic)

    def _receive_interest_query(self, sender: NodeId, _message: InterestQuery) -> None:
        if sender in self._known_versions:
            self._news.tell_all(sender)

    def _receive_interest_update(self, sender: NodeId, message: InterestUpdate) -> None:
        self._news.heard_all(sender)
        self._note_interest(sender, message.version, message.interest)

    # Messages of the tasks.

    def _task(self, name: str) -> MaintenanceTask | None:
        """The task a message is for; None if a peer names one that this node does not run."""
        return self.tasks.get(name)

    def _receive_connect(self, sender: NodeId, message: Connect) -> None:
        if (task := self._task(message.task)) and sender != self.id:
            task.receive_connect(sender, message)
            self._note_interest(sender, message.version, message.interest)
            self._make_room_for_bridges()

    def _receive_connect_ok(self, sender: NodeId, message: ConnectOk) -> None:
        if (task := self._task(message.task)) and sender != self.id:
            task.receive_connect_ok(sender, message)
            self._note_interest(sender, message.version, message.interest)
            self._make_room_for_bridges()

    def _interest_of(self, peer: NodeId) -> tuple[int, Interest] | None:
        """What a neighbour wants, and in which version."""
        version = self._known_versions.get(peer)
        return None if version is None else (version, self._interests[peer])

    def _note_interest(self, peer: NodeId, version: int, interest: Interest) -> None:
        """A peer told what it wants: all tasks that count it as a neighbour go by that."""
        if peer in self._known_versions:
            self._detector.heard(peer)
            if self._known_versions[peer] != version:
                self._known_versions[peer] = version
                self.view.said(peer, interest)
                for task in self.tasks.values():
                    task.neighbour_changed(peer, interest)

    def _receive_redirect(self, sender: NodeId, message: Redirect) -> None:
        if task := self._task(message.task):
            task.receive_redirect(sender, message)

    def _receive_disconnect(self, sender: NodeId, message: Disconnect) -> None:
        if task := self._task(message.task):
            task.receive_disconnect(sender)

    def _receive_disconnect_ok(self, sender: NodeId, message: DisconnectOk) -> None:
        if task := self._task(message.task):
            task.remove(sender)

    def _receive_disconnect_no(self, sender: NodeId, message: DisconnectNo) -> None:
        if task := self._task(message.task):
            task.receive_disconnect_no(sender)

    def _receive_leave(self, sender: NodeId, message: Leave) -> None:
        if message.gone:
            self.peer_lost(sender)
        elif task := self._task(message.task):
            task.receive_leave(sender)

    # Heartbeats.

    def _beat(self, peers: Iterable[NodeId]) -> None:
        if bridge := self.tasks.get("bridge"):
            self._beacons.watch({peer: neighbour.shared for peer, neighbour in bridge.neighbours.items()})
        self._beat_to(peers)
        self._beats += 1
        if self._beats % EXCHANGE_EVERY == 0:
            self._better_neighbours()

    def _better_neighbours(self) -> None:
        for task in self.tasks.values():
            task.exchange()

    def _beat_to(self, peers: Iterable[NodeId]) -> None:
        # Neighbours of the same state and interest get the same message: it is made (and encoded) once.
        made: dict[Interest, Heartbeat] = {}
        for peer in peers:
            states, interest = self._states_for(peer), self._interests.get(peer, NOTHING)
            beat = made.get(interest)
            if beat is None or beat.states != states:
                labels = self._beacons.tell(interest) if self.parameters.bridges else None
                beat = made[interest] = Heartbeat(self._interest_version, states, labels)
            self.world.send(peer, beat)
            self.view.spoke(peer)

    def _ask(self, peers: Iterable[NodeId]) -> None:
        for peer in peers:
            self.world.send(peer, Heartbeat(self._interest_version, self._states_for(peer), asks=True))

    def _states_for(self, peer: NodeId) -> tuple[TaskState, ...]:
        return tuple([task.state(peer) for task in self.tasks.values() if peer in task.neighbours])

    def _receive_heartbeat(self, sender: NodeId, message: Heartbeat) -> None:
        self._detector.heard(sender)
        self.view.heard(sender)
        # Nobody has more to say than one state per task: the rest of a longer list is made up.
        for state in message.states[: len(self.tasks)]:
            if task := self._task(state.task):
                task.receive_state(sender, state)
        version = self._known_versions.get(sender)
        if version is None:
            return
        if message.asks:
            self._beat_to((sender,))
        interest = self._interests.get(sender)
        if self.parameters.bridges and message.labels is not None and interest is not None:
            self._beacons.hear(interest, message.labels, sender)
        if version != message.version:
            self.world.send(sender, InterestQuery())


class SpiderCastNode(OverlayNode):
    """(K_g, K_r)-coverage: a greedy and a random task side by side."""

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        subscriptions: Iterable[TopicId],
        view: InterestView,
        parameters: SpiderCastParameters,
    ) -> None:
        self._adaptive = parameters.adaptive
        pick = rules.most_overlapping if parameters.ties == "random" else first_overlapping
        self._greedy = CoverageSelection(parameters.k_greedy, view, pick)
        self._random = CoverageSelection(parameters.k_random, view, rules.any_overlapping)
        super().__init__(
            world,
            node_id,
            subscriptions,
            view,
            parameters,
            {"greedy": self._greedy, "random": self._random},
        )

    def _maintain(self, key: TimerKey) -> None:
        super()._maintain(key)
        if self._adaptive and key[1] == "greedy":
            self._adapt()

    def gauges(self) -> dict[str, float]:
        return {"k_random": self._random.k, "random_coverage_share": float(self._random.k > 0)}

    def _adapt(self) -> None:
        k_random = rules.adapted_k_random(
            self._greedy.k,
            self._random.k,
            degree=self.degree,
            interests=len(self._interest),
            greedy_covered=not self._greedy.lacking(),
            random_covered=not self._random.lacking(),
        )
        if k_random != self._random.k:
            self._random.set_k(k_random)
            self.tasks["random"].interest_changed()


def degree_limit(node: Node) -> int:
    """L^max + margin of all tasks together; a node whose interest shrank takes a moment to get there."""
    assert isinstance(node, OverlayNode)
    return sum(task.selection.limit() + node.parameters.margin for task in node.tasks.values())
