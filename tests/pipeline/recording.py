"""A small simulated run, recorded."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from topicweave.runs.overlay import SettledOverlay
from topicweave.runs.sources import ModelWorkload
from topicweave.telemetry.schema import INTERESTS, SCHEMAS


def recorded_run(folder: Path) -> None:
    """Its tables in `telemetry`, who wants what among them, and its workload in `workload`."""
    spec = ModelWorkload("spidercast", {"nodes": 20, "topics": 10, "min_size": 3, "max_size": 3}, 1)
    workload = spec.load()
    workload.save(folder / "workload")
    simulation, telemetry = SettledOverlay(system="random", workload=spec, settle=3.0).simulate(workload)
    simulation.run(3.0)
    simulation.snapshot()
    simulation.publish(0, int(workload.interests(0)[0]))
    simulation.run(5.0)
    simulation.flush_control()
    tables = telemetry.tables()
    (folder / "telemetry").mkdir()
    for name in SCHEMAS:
        pq.write_table(getattr(tables, name), folder / "telemetry" / f"{name}.parquet")
    run = tables.runs()[0]
    pairs = workload.tables()["subscriptions"].select(["node", "topic"]).to_pylist()
    wishes = [{"run": run, "time": 0.0, "wanted": True, **pair} for pair in pairs]
    rows = pa.Table.from_pylist(wishes, schema=INTERESTS)
    pq.write_table(rows, folder / "telemetry" / "interests.parquet")
