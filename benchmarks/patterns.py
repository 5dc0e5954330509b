"""Are topics found by patterns, after how long, and what does it take? docs/patterns.md.

Nodes that do nothing but take part in the name directory, over a ring of their own; `Patterned` says what
happens. Each node publishes on three names such as `zone/7/device/t123/temperature`. 20 nodes watch two
patterns each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from benchmarks.measuring import measured
from benchmarks.sheet import Column, Sheet
from topicweave.blocks.topic_names import NamesParameters
from topicweave.blocks.views import InterestView
from topicweave.model.event import Event
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import Link, Node, Published, World
from topicweave.runs.patterned import Patterned
from topicweave.runs.run import Result
from topicweave.runs.sources import ModelWorkload
from topicweave.systems.system import System

NAMES_EACH = 3
SIZES = ((300, 1024), (300, 128), (1000, 1024), (1000, 128))
"""Nodes, and names below a prefix from which on it is split."""


class NoSettings(msgspec.Struct, frozen=True):
    """There are none."""


class IdleNode(Node):
    """Knows its seeds."""

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        subscriptions: Iterable[TopicId],
        _view: InterestView,
        _settings: NoSettings,
    ) -> None:
        super().__init__(world, node_id, subscriptions)
        self._seeds: Sequence[NodeId] = ()

    def start(self, contacts: Sequence[NodeId]) -> None:
        self._seeds = contacts

    def subscribe(self, topic: TopicId) -> None:
        self.subscriptions.add(topic)

    def unsubscribe(self, topic: TopicId) -> None:
        self.subscriptions.discard(topic)

    def publish(self, topic: TopicId, payload: bytes = b"") -> Published:
        return Published(Event(self.id, topic, 0, 0, payload), 0)

    def peer_lost(self, peer: NodeId) -> None:
        pass

    def leave(self) -> None:
        pass

    def links(self) -> Iterable[Link]:
        return ()

    def known_peers(self) -> Iterable[NodeId]:
        return self._seeds


IDLE = System(
    name="names alone",
    summary="nothing but names",
    source="benchmarks",
    parameters=NoSettings,
    build=IdleNode,
    connects_topics=False,
    needs="nothing",
)


def patterned(nodes: int, split_at: int, watchers: int = 20) -> Result:
    own = {"nodes": nodes, "popular_topics": 0, "popular": 0, "rare": NAMES_EACH, "audience": 1}
    plan = Patterned(
        system=IDLE.name,
        workload=ModelWorkload("rare", own),
        membership="gossip",
        watchers=watchers,
        names=NamesParameters(split_at=split_at),
    )
    workload = plan.workload.load()
    return plan.measured(workload, IDLE, IDLE.settings(), plan.telemetry(workload))


def run(quick: bool) -> list[Sheet]:
    found = Sheet(
        "patterns",
        "Names found by patterns: seconds from the announcement, preset as in a live node",
        2,
        Column("nodes", ",d"),
        Column("split at", ",d"),
        Column("names", ",d"),
        Column("share found", ".4f", "more"),
        Column("wrong", ",d", "less"),
        Column("new after: median", ".1f", "less"),
        Column("p95", ".1f", "less"),
        Column("ended after: median", ".1f", "less"),
        Column("p95", ".1f", "less"),
        Column("CPU s", ".0f", "less"),
    )
    crashed = Sheet(
        "patterns-crash",
        "The same from 30 s after a tenth of the nodes crashed",
        2,
        Column("nodes", ",d"),
        Column("split at", ",d"),
        Column("share found", ".4f", "more"),
        Column("new after: p95", ".1f", "less"),
        Column("names of the crashed gone after", ".0f", "less"),
        Column("found in the end", ".4f", "more"),
        Column("wrong in the end", ",d", "less"),
    )
    costs = Sheet(
        "patterns-costs",
        "What it takes per node and second",
        2,
        Column("nodes", ",d"),
        Column("split at", ",d"),
        Column("messages: ring", ".1f", "less"),
        Column("with names", ".1f", "less"),
        Column("bytes: ring", ",.0f", "less"),
        Column("with names", ",.0f", "less"),
    )
    for nodes, split_at in ((60, 64),) if quick else SIZES:
        outcome = measured(patterned, nodes, split_at)
        got = outcome.value
        words = ("names", "found", "odd", "found_p50", "found_p95", "gone_p50", "gone_p95")
        found.add(nodes, split_at, *(got[word] for word in words), outcome.cpu)
        after = ("found_after_crash", "crash_found_p95", "crash_gone_max", "found_end", "odd_end")
        crashed.add(nodes, split_at, *(got[word] for word in after))
        taken = ("ring_messages", "all_messages", "ring_bytes", "all_bytes")
        costs.add(nodes, split_at, *(got[word] for word in taken))
    return [found, crashed, costs]
