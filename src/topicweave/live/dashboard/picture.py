"""One picture of what several nodes tell: who is there, who is linked to whom, what happened. No I/O, no
clock; bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Literal

from topicweave.live.dashboard.figures import Course, parts
from topicweave.live.dashboard.watch import key_of
from topicweave.live.dashboard.words import (
    REFUSALS,
    Figures,
    Frame,
    Hop,
    Line,
    NodeKey,
    NodeState,
    NodeTick,
    State,
    TopicKey,
)
from topicweave.model.ids import ring_id

KEPT_SECONDS = 600
KEPT_LINES = 500
MOST_NODES = 2000
MOST_HOPS_SHOWN = 400
"""In one frame."""
SILENT_AFTER = 2.0


class Picture:
    """Of a swarm, or of one node and those it is linked to.

    `whole_swarm`: every node tells of itself, so that parts of topics and hit ratios are known.
    """

    def __init__(self, title: str, orders: Sequence[str] = (), *, whole_swarm: bool = False) -> None:
        self._title = title
        self._orders = list(orders)
        self._whole_swarm = whole_swarm
        self._nodes: dict[NodeKey, NodeState] = {}
        self._heard: dict[NodeKey, float] = {}
        self._counts: dict[NodeKey, dict[str, int]] = {}
        self._names: dict[NodeKey, str] = {}
        self._topics: dict[TopicKey, str] = {}
        self._wanting: dict[TopicKey, set[NodeKey]] = {}
        self._course = Course()
        self.series: deque[Figures] = deque(maxlen=KEPT_SECONDS)
        self.log: deque[Line] = deque(maxlen=KEPT_LINES)
        self._last_second: float | None = None
        self._apart_since: float | None = None
        # What the next frame tells.
        self._changed: set[NodeKey] = set()
        self._new_topics: dict[TopicKey, str] = {}
        self._hops: list[Hop] = []
        self._left_out = 0
        self._lines: list[Line] = []

    # What comes in.

    def take(self, tick: NodeTick) -> None:
        known = self._nodes.get(tick.node)
        if known is None and len(self._nodes) >= MOST_NODES:
            return
        node = known or NodeState(tick.node, tick.name, "seen", [], [])
        self._nodes[tick.node] = node
        self._heard[tick.node] = tick.time
        node.name = tick.name
        if tick.topics is not None:
            self._want(node, tick.topics)
        if tick.links is not None:
            self._names.update(tick.names or {})
            node.links = tick.links
            self._changed.add(tick.node)
        if node.state != "up":
            back = {"stopped": "goes on", "silent": "is heard again", "killed": "is back"}
            self._say(tick.time, "join", f"{node.name} {back.get(node.state, 'joined')}")
            self.set_state(tick.node, "up")
        self._course.take(tick, self._wanting)
        self._take_counts(tick)
        room = MOST_HOPS_SHOWN - len(self._hops)
        self._hops += tick.hops[:room]
        self._left_out += tick.left_out + max(0, len(tick.hops) - room)

    def _want(self, node: NodeState, topics: list[str]) -> None:
        self._forget_wants(node)
        node.topics = topics
        for topic in topics:
            key = key_of(ring_id(topic))
            if key not in self._topics:
                self._topics[key] = self._new_topics[key] = topic
            self._wanting.setdefault(key, set()).add(node.id)
        self._changed.add(node.id)

    def _forget_wants(self, node: NodeState) -> None:
        for topic in node.topics or ():
            key = key_of(ring_id(topic))
            wanting = self._wanting.get(key)
            if wanting is not None:
                wanting.discard(node.id)
                if not wanting:
                    del self._wanting[key]
                    self._topics.pop(key, None)

    def _take_counts(self, tick: NodeTick) -> None:
        known = self._counts.get(tick.node)
        first, known = known is None, known or {}
        self._counts[tick.node] = known
        for name, count in tick.counts.items():
            more = count - known.get(name, 0)
            known[name] = count
            if first or more <= 0:
                continue
            if name == "links_lost":
                self._say(tick.time, "loss", f"{tick.name}: {more} connections lost")
            elif name in REFUSALS:
                self._say(tick.time, "refusal", f"{tick.name}: {more} {REFUSALS[name]}")

    def set_state(self, key: NodeKey, state: State) -> None:
        """What is known of a node otherwise than by its word."""
        node = self._nodes[key]
        node.state = state
        if state == "killed":
            self._counts.pop(key, None)
            node.links = []
        self._changed.add(key)

    def set_part(self, key: NodeKey, part: int) -> None:
        if key in self._nodes:
            self._nodes[key].part = part
            self._changed.add(key)

    def say(self, time: float, kind: Literal["loss", "order"], text: str) -> None:
        self._say(time, kind, text)

    def _say(
        self, time: float, kind: Literal["join", "loss", "repair", "refusal", "order"], text: str
    ) -> None:
        line = Line(time, kind, text)
        self.log.append(line)
        self._lines.append(line)
        del self._lines[:-KEPT_LINES]

    # What goes out.

    def whole(self, now: float) -> Frame:
        """Everything, for a page that has just come."""
        return Frame(
            now,
            True,
            self._title,
            self._orders,
            [*self._nodes.values(), *self._only_seen().values()],
            self._topics,
            figures=list(self.series),
            log=list(self.log),
        )

    def frame(self, now: float) -> Frame:
        """What is new since the last one; once a second with figures."""
        for key, node in self._nodes.items():
            if node.state == "up" and now - self._heard[key] > SILENT_AFTER:
                self._say(now, "loss", f"{node.name} is silent")
                self.set_state(key, "silent")
        figures = []
        if self._last_second is None:
            self._last_second = now
        elif now - self._last_second >= 1.0:
            figures = [self._second(now, now - self._last_second)]
            self.series.extend(figures)
            self._last_second = now
        seen = self._only_seen() if self._changed else {}
        frame = Frame(
            now,
            nodes=[self._nodes[key] for key in sorted(self._changed)] + list(seen.values()),
            topics=self._new_topics,
            hops=self._hops,
            left_out=self._left_out,
            figures=figures,
            log=self._lines,
        )
        self._changed, self._new_topics = set(), {}
        self._hops, self._left_out, self._lines = [], 0, []
        return frame

    def _only_seen(self) -> dict[NodeKey, NodeState]:
        """Peers that links lead to and that do not tell of themselves."""
        peers = {peer for node in self._nodes.values() for peer, _ in node.links or ()} - set(self._nodes)
        return {peer: NodeState(peer, self._names.get(peer, peer), "seen") for peer in sorted(peers)}

    def _second(self, now: float, seconds: float) -> Figures:
        up = {key for key, node in self._nodes.items() if node.state == "up"}
        figures = self._course.second(now, seconds, up)
        figures["time"] = now
        figures["nodes"] = float(len(up))
        links = {key: {peer for peer, _ in self._nodes[key].links or ()} for key in up}
        figures["degree"] = sum(map(len, links.values())) / len(up) if up else None
        if not self._whole_swarm:
            # One node does not know who else wanted what, nor when it was published.
            for name in ("hit_ratio", "latency_p50", "latency_p95"):
                figures[name] = None
            return figures
        apart = sum(1 for wanting in self._wanting.values() if parts(wanting & up, links) > 1)
        figures["parts"] = float(parts(up, links))
        figures["topics_apart"] = float(apart)
        if apart and self._apart_since is None:
            self._apart_since = now
            self._say(now, "loss", f"{apart} topics are apart: their subscribers are not all linked")
        elif not apart and self._apart_since is not None:
            self._say(
                now, "repair", f"all topics are in one part again after {now - self._apart_since:.0f} s"
            )
            self._apart_since = None
        return figures
