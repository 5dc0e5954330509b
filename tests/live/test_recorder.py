"""Live telemetry: the simulator's tables, measured by the same measures."""

from __future__ import annotations

import asyncio
import logging
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

import topicweave
from tests.live.test_http import asked
from tests.live.together import eventually, linked, local, run, taken
from tests.telemetry.recordings import NODES, TOPICS, record_much
from topicweave.live import health, recorder
from topicweave.live.application import Received
from topicweave.live.counters import Counters
from topicweave.live.node import LiveNode
from topicweave.live.swarm import run_swarm
from topicweave.measures.summary import measure_run
from topicweave.runs import live_run
from topicweave.runs.live_run import LiveRun
from topicweave.runs.overlay import SettledOverlay
from topicweave.runs.run import recording
from topicweave.runs.sources import GeneratedWorkload
from topicweave.telemetry.schema import RECORDED, file_name
from topicweave.telemetry.tables import Tables
from topicweave.telemetry.writer import BATCH_ROWS


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


def test_each_moment_has_one_snapshot(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Timers of the event loop may be a little early."""
    monkeypatch.setattr(recorder, "SNAPSHOT_EVERY", 0.05)

    async def test() -> None:
        async with run_swarm([["a"], ["a"]], local(telemetry=str(tmp_path))) as nodes:
            await eventually(lambda: linked(*nodes))
            begun = nodes[0].clock.now
            await eventually(lambda: nodes[0].clock.now > begun + 2.0)

    run(test)
    links = Tables.load(tmp_path).links.to_pylist()
    rows = [(row["time"], row["node"], row["peer"], row["kind"]) for row in links]
    assert len(rows) > 20
    assert len(rows) == len(set(rows))


def make_unwritable(folder: Path) -> None:
    for table in RECORDED:
        shutil.rmtree(folder / file_name(table))
        (folder / file_name(table)).touch()


def make_writable(folder: Path) -> None:
    for table in RECORDED:
        (folder / file_name(table)).unlink()
        (folder / file_name(table)).mkdir()


def test_a_folder_that_takes_nothing_is_reported_and_costs_no_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(recorder, "SNAPSHOT_EVERY", 0.05)
    monkeypatch.setattr(recorder, "ROTATE_EVERY", 0.05)
    telemetry = tmp_path / "telemetry"

    async def test() -> None:
        async with topicweave.connect(local(subscribe=("a",))) as other:
            settings = local(
                subscribe=("a",),
                join=(str(other.address),),
                telemetry=str(telemetry),
                data=str(tmp_path),
                http="127.0.0.1:0",
            )
            node = LiveNode(settings)
            await node.start()
            await eventually(lambda: linked(node, other))
            make_unwritable(telemetry)
            await node.publish("a", b"mine")
            await eventually(lambda: health.health(node)["status"] == "failing")
            assert "cannot write telemetry" in health.health(node)["reasons"][0]
            assert [(await asked(node, path))[0] for path in ("/health", "/ready")] == [503, 200]
            await other.publish("a", b"theirs", wait_for=1)
            await eventually(lambda: {b"mine", b"theirs"} <= {payload for _, payload in taken(node)})
            make_writable(telemetry)
            await eventually(lambda: health.health(node)["status"] == "ok")
            make_unwritable(telemetry)
            await node.publish("a", b"last")
            reading = asyncio.create_task(everything(node))
            await node.stop()
            assert b"last" in {event.payload for event in await reading}, "a reader comes to its end"
            assert (node.counters.node_errors, node.counters.telemetry_lost > 0) == (0, True)
            await LiveNode(settings).stop()

    with caplog.at_level(logging.WARNING, "topicweave.live"):
        run(test)
    said = [record.getMessage() for record in caplog.records if "telemetry" in record.getMessage()]
    assert "cannot write telemetry" in said[0]
    assert "written again" in said[1]
    assert len(said) <= 4, "not a line for each attempt"
    assert not any(record.exc_info for record in caplog.records)


async def everything(node: LiveNode) -> list[Received]:
    return [event async for event in node.events()]


def test_what_waits_for_a_folder_is_bounded_and_the_rest_is_counted(tmp_path: Path) -> None:
    counters = Counters()
    parts = recorder.PatientParts(tmp_path, "run", (NODES, TOPICS), "writer", counters)
    make_unwritable(tmp_path)
    record_much(parts, BATCH_ROWS + 1)
    parts.rotate()
    assert sorted(parts.problems) == sorted(RECORDED)
    assert counters.telemetry_lost == len(RECORDED) * BATCH_ROWS // 2
    make_writable(tmp_path)
    parts.rotate()
    assert parts.problems == {}
    parts.close()
    assert Tables.load(tmp_path).publishes.num_rows == BATCH_ROWS // 2 + 1, "the newest rows are kept"


def test_an_observer_that_fails_keeps_no_event_from_the_node() -> None:
    async def test() -> None:
        def fail(*_: object) -> None:
            raise ZeroDivisionError

        async with run_swarm([["a"], ["a"]], local()) as (other, node):
            await eventually(lambda: linked(node, other))
            node.world.observers.append(fail)
            for _ in range(3):
                receipt = await other.publish("a", b"x", wait_for=1)
                assert receipt.accepted == 1
            await eventually(lambda: len(taken(node)) == 3)
            assert node.counters.node_errors >= 1
            assert linked(node, other), "its sender did nothing wrong"

    run(test)


def test_a_part_that_cannot_be_stopped_keeps_no_other_from_stopping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise ZeroDivisionError

    async def test() -> None:
        settings = local(subscribe=("a",), data=str(tmp_path / "data"), telemetry=str(tmp_path / "telemetry"))
        node = LiveNode(settings)
        await node.start()
        reading = asyncio.create_task(everything(node))
        monkeypatch.setattr(recorder.Recorder, "stop", fail)
        with pytest.raises(ZeroDivisionError):
            await node.stop()
        monkeypatch.undo()
        assert await reading == []
        await LiveNode(settings).stop()

    run(test)


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
