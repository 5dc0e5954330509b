"""Labels of components, spread on demand inside the topics that a churn event affects.

Rules kept
----------
1. A source starts with its own name as the label of its component in every affected topic it wants. A node
   that hears a lower label for a topic it wants takes it over, and tells its neighbours on that topic. So every
   component comes to be named by its lowest source.
2. Labels heard within a short delay are passed on together.
3. Everything about one spreading is forgotten after `keep` seconds, and at most `MOST` are kept at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import msgspec

from topicweave.model.ids import NodeId, TopicId
from topicweave.port import Receivers, TimerKey, Timers, World
from topicweave.systems.omen.messages import Label, TopicLabel

MOST = 64
DELAY = 0.05

Spreading = tuple[NodeId, NodeId]
"""(coordinator, churned node)"""


class _State(msgspec.Struct):
    labels: dict[TopicId, NodeId] = msgspec.field(default_factory=dict)
    untold: dict[TopicId, NodeId] = msgspec.field(default_factory=dict)
    """What is yet to be passed on, and to whom it need not go back."""


class LabelSpreading:
    """One node's part. `neighbours(topic)` yields the links that serve a topic, `wants(topic)` whether this
    node takes part in it.
    """

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        neighbours: Callable[[TopicId], Iterable[NodeId]],
        wants: Callable[[TopicId], bool],
        keep: float,
    ) -> None:
        self._world = world
        self._id = node_id
        self._neighbours = neighbours
        self._wants = wants
        self._keep = keep
        self._states: dict[Spreading, _State] = {}

    def receivers(self) -> Receivers:
        return {Label: self._receive}

    def timers(self) -> Timers:
        return {"omen-labels": self._tell, "omen-labels-end": self._end}

    def begin(self, spreading: Spreading, topics: Collection[TopicId]) -> None:
        """Be a source."""
        self._hear(spreading, [(topic, self._id) for topic in sorted(topics)], self._id)

    def labels(self, spreading: Spreading, topics: Collection[TopicId]) -> tuple[TopicLabel, ...]:
        """This node's components in those topics that a label has reached it for."""
        state = self._states.get(spreading)
        heard = state.labels if state else {}
        return tuple((topic, heard[topic]) for topic in sorted(topics) if topic in heard)

    def restart(self) -> None:
        """Timers were lost with the last life: forget what waited for them."""
        self._states.clear()

    def known_peers(self) -> set[NodeId]:
        return {
            peer
            for spreading, state in self._states.items()
            for peer in (*spreading, *state.labels.values(), *state.untold.values())
        } - {self._id}

    def _receive(self, sender: NodeId, message: Label) -> None:
        self._hear((message.coordinator, message.churned), message.labels, sender)

    def _hear(self, spreading: Spreading, labels: Iterable[TopicLabel], sender: NodeId) -> None:
        state = self._states.get(spreading)
        if state is None:
            if len(self._states) >= MOST:
                self._end(("", *next(iter(self._states))))
            state = self._states[spreading] = _State()
            self._world.set_timer(("omen-labels-end", *spreading), self._keep)
        waiting = bool(state.untold)
        for topic, label in labels:
            if self._wants(topic) and (topic not in state.labels or label < state.labels[topic]):
                state.labels[topic] = label
                state.untold[topic] = sender
        if state.untold and not waiting:
            self._world.set_timer(("omen-labels", *spreading), DELAY)

    def _tell(self, key: TimerKey) -> None:
        spreading = (key[1], key[2])
        state = self._states.get(spreading)
        if state is None:
            return
        untold, state.untold = state.untold, {}
        by_peer: dict[NodeId, list[TopicLabel]] = {}
        for topic, source in untold.items():
            for peer in self._neighbours(topic):
                if peer != source:
                    by_peer.setdefault(peer, []).append((topic, state.labels[topic]))
        for peer, labels in by_peer.items():
            self._world.send(peer, Label(*spreading, tuple(labels)))

    def _end(self, key: TimerKey) -> None:
        spreading = (key[1], key[2])
        self._states.pop(spreading, None)
        self._world.cancel_timer(("omen-labels", *spreading))
        self._world.cancel_timer(("omen-labels-end", *spreading))
