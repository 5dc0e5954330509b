"""Latency from publish to the application, by samples, whatever the clocks say."""

from __future__ import annotations

import asyncio

from prometheus_client.parser import text_string_to_metric_families

from tests.live.together import eventually, linked, local, run
from topicweave.live.latency import BUCKETS, EVERY, LIFETIME, MOST, LatencySamples
from topicweave.live.metrics import exposition
from topicweave.live.node import LiveNode
from topicweave.live.swarm import run_swarm
from topicweave.model.event import Event, EventId


def test_times_add_up_from_node_to_node() -> None:
    now = [100.0]
    publisher, relay, reader = (LatencySamples(lambda: now[0]) for _ in range(3))
    event = Event(1, 2, 3, 4)
    assert publisher.due
    publisher.begins(event.id)
    assert not publisher.due, "one per second is enough"
    now[0] += 0.02  # it waits for the disk
    relay.told(event.id, publisher.age(event.id) or 0.0)
    now[0] += 0.3  # it waits in a queue
    assert relay.among([Event(1, 2, 3, number) for number in range(2, 6)]) == [event.id]
    assert relay.among([Event(1, 2, 3, 5), Event(1, 2, 3, 6)]) == []
    reader.told(event.id, relay.age(event.id) or 0.0)
    now[0] += 0.1
    reader.handed_over([Event(1, 2, 3, 3), event])
    assert abs(reader.sum - 0.42) < 1e-9
    assert dict(reader.buckets)["0.25"] == 0
    assert dict(reader.buckets)["0.5"] == dict(reader.buckets)["+Inf"] == 1
    reader.handed_over([event])
    assert reader.buckets[-1] == ("+Inf", 1), "once"
    now[0] += EVERY
    assert publisher.due


def test_what_is_told_and_never_comes_is_forgotten() -> None:
    now = [0.0]
    latency = LatencySamples(lambda: now[0])
    for number in range(3 * MOST):
        latency.told(EventId(1, 2, 3, number), 0.0)
    assert len(latency) == MOST
    now[0] = LIFETIME + 1.0
    latency.told(EventId(1, 2, 4, 0), 0.0)
    assert len(latency) == 1


def histogram(node: LiveNode) -> dict[str, float]:
    """The samples of the histogram, as a scraper reads them."""
    families = {one.name: one for one in text_string_to_metric_families(exposition(node).decode())}
    family = families["topicweave_latency_seconds"]
    assert family.type == "histogram"
    return {
        sample.labels.get("le", sample.name.rpartition("_")[2]): sample.value for sample in family.samples
    }


def test_a_sample_reaches_everybody_also_over_relays() -> None:
    """One event per second, be it published quickly or not, signed or not; the publisher itself counts none."""

    async def test() -> None:
        async with run_swarm([["a"]] * 8, local()) as nodes:
            await eventually(lambda: linked(*nodes))
            publisher = nodes[0]
            waited = 0
            while not all(node.world.gate.latency.buckets[-1][1] for node in nodes[1:]):
                waited += 1
                assert waited < 600
                await publisher.publish("a", b"x")
                await asyncio.sleep(0.05)
            told = histogram(nodes[1])
            assert told["+Inf"] == told["count"] > 0
            assert set(told) == {*map(str, BUCKETS), "+Inf", "count", "sum"}
            assert 0.0 < told["sum"] < 60.0 * told["count"]
            assert publisher.world.gate.latency.buckets[-1][1] == 0

    run(test)
