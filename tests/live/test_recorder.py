"""Live telemetry: the simulator's tables, measured by the same measures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from tests.live.together import eventually, linked, local, run, taken
from topicweave.live.node import LiveNode
from topicweave.live.swarm import run_swarm
from topicweave.measures.summary import measure_run
from topicweave.runs import live_run
from topicweave.runs.live_run import LiveRun
from topicweave.runs.overlay import SettledOverlay
from topicweave.runs.run import recording
from topicweave.runs.sources import GeneratedWorkload
from topicweave.telemetry.tables import Tables


def test_a_live_run_is_measured_like_a_simulated_one(tmp_path: Path) -> None:
    interests = [["a", "b"], ["a"], ["a", "b"], ["b"], ["a"]]
    names = [f"node-{number}" for number in range(5)]

    async def test() -> None:
        settings = msgspec.structs.replace(local(), telemetry=str(tmp_path))
        async with run_swarm(interests, settings, names=names) as nodes:
            await eventually(lambda: linked(*nodes))
            moment = nodes[0].clock.now + 100.0
            for node in nodes:
                assert node.recorder is not None
                node.recorder.snapshot(moment)
                for topic in node.subscriptions:
                    await node.publish(topic, b"x")
            await eventually(lambda: [len(taken(node)) for node in nodes] == [7, 4, 7, 3, 4])
            for node in nodes:
                assert node.recorder is not None
                node.recorder.rotate()

    run(test)
    tables = Tables.load(tmp_path)
    assert tables.runs() == ["topicweave"], "the swarm's name"
    assert tables.publishes.num_rows == 7
    rows = [(name, topic) for name, topics in zip(names, interests, strict=True) for topic in topics]
    subscriptions = pa.table({"node": [node for node, _ in rows], "topic": [topic for _, topic in rows]})
    measures = measure_run(tables, subscriptions, nodes=names, window=60.0)
    assert measures["hit_ratio"] == 1.0
    assert measures["noise"] == 0.0
    assert measures["degree_mean"] >= 1.0
    assert measures["hops_mean"] >= 1.0
    assert measures["control_messages"] > 0
    assert not list(tmp_path.glob(".*.partial")), "nothing half-written is left"
    assert len(list((tmp_path / "links.parquet").iterdir())) >= 10, (
        "two parts per node, or more if it took minutes"
    )
    assert pytest.approx(0.0, abs=600.0) == measures["latency_max"]


@pytest.mark.live
def test_a_live_run_may_be_spread_over_processes() -> None:
    workload = GeneratedWorkload(nodes=9, topics=1, min_size=1, max_size=1, seed=0)
    result = LiveRun(system="spidercast", workload=workload, settle=8.0, events=30, processes=3).run()
    assert (result["nodes"], result["node_errors"], result["hit_ratio"]) == (9, 0, 1.0)
    assert result["degree_mean"] >= 2.0, "one snapshot of all"


def test_live_nodes_start_one_by_one_over_the_window_as_in_the_simulator() -> None:
    workload = GeneratedWorkload(nodes=4, topics=1, min_size=1, max_size=1, seed=0)
    alike: dict[str, Any] = {"system": "spidercast", "workload": workload, "settle": 1.0, "start_window": 2.0}
    for one in (LiveRun(**alike), SettledOverlay(**alike)):
        with recording("starts") as kept:
            one.run()
        (telemetry,) = kept
        times = sorted(
            time for batch in telemetry.batches()["interests"] for time in batch["time"].to_pylist()
        )
        assert len(times) == 4
        assert times[-1] - times[0] > 0.3, "a live one may be late, never early"


def test_a_live_run_delays_and_writes_down_what_nodes_say_from_their_first_message_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[bool, int, int]] = []

    def observe(node: LiveNode, *rest: Any) -> None:
        real(node, *rest)
        assert node.transport.receiver.delay is not None
        seen.append((node.joined, node.node.degree, node.counters.messages_received))

    real = live_run._observe
    monkeypatch.setattr(live_run, "_observe", observe)
    workload = GeneratedWorkload(nodes=4, topics=1, min_size=1, max_size=1, seed=0)
    LiveRun(system="spidercast", workload=workload, settle=0.5).run()
    assert seen == [(False, 0, 0)] * 4, "nobody has heard anything yet"
