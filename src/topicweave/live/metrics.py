"""A node's figures in Prometheus' format. No label holds a topic or a peer, so their number is fixed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from topicweave.live.counters import MEANINGS

if TYPE_CHECKING:
    from topicweave.live.node import LiveNode


class NodeCollector(Collector):
    def __init__(self, node: LiveNode) -> None:
        self._node = node

    def collect(self) -> Iterator[Metric]:
        node = self._node
        for name, value in node.counters.as_dict().items():
            yield CounterMetricFamily(f"topicweave_{name}", MEANINGS[name], value=value)
        gauges = {
            "connections": (node.transport.connections, "open connections"),
            "degree": (node.node.degree, "distinct peers that links of the overlay lead to"),
            "membership_contacts": (
                len(node.world.contacts()),
                "peers that membership itself keeps in touch with",
            ),
            "subscriptions": (len(node.node.subscriptions), "topics wanted"),
            "known_peers": (sum(1 for _ in node.node.known_peers()), "peers that some state is kept for"),
            "waiting_bytes": (node.transport.waiting_bytes, "bytes waiting to be sent"),
            "cached_events": (len(node.world.log), "events kept for those who missed them"),
            "cached_bytes": (node.world.log.bytes, "bytes of these"),
            "patterns": (len(node.patterns.wanted), "patterns wanted"),
            "pattern_topics": (node.patterns.topics, "topics that these have found"),
            "patterns_lacking": (len(node.patterns.lacking()), "places where topics of these are missing"),
            "names_announced": (node.patterns.announced, "names of topics announced for others' patterns"),
            "pending_timers": (len(node.world.pending_timers), "timers set"),
        }
        for name, (figure, what) in gauges.items():
            yield GaugeMetricFamily(f"topicweave_{name}", what, value=figure)
        latency = node.world.gate.latency
        yield HistogramMetricFamily(
            "topicweave_latency_seconds",
            "from publish at another node to the application here, of one event per publisher and second",
            buckets=latency.buckets,
            sum_value=latency.sum,
        )
        links = GaugeMetricFamily("topicweave_links", "links of the overlay by kind", labels=["kind"])
        kinds: dict[str, int] = {}
        for link in node.node.links():
            kinds[link.kind] = kinds.get(link.kind, 0) + 1
        for kind, count in sorted(kinds.items()):
            links.add_metric([kind], count)
        yield links


def exposition(node: LiveNode) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(NodeCollector(node))
    return generate_latest(registry)
