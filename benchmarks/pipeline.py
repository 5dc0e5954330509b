"""What the pipeline takes at size, and the same job on the same file in DuckDB: what Spark costs us on one machine.

Each step runs in processes of its own (Spark's Java and Python workers are children), and its peak memory is that of
all of them together, looked at ten times a second. Spark has 4 GiB of driver memory, which in local mode is all of it.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
import pyarrow as pa

from benchmarks.sheet import Column, Sheet
from topicweave.pipeline.parts import write_part
from topicweave.telemetry.schema import SCHEMAS
from topicweave.workloads.counter_random import uniforms

MEMORY = {"spark.driver.memory": "4g"}
FEW_ROWS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
}
"""For the quick run: planning anew and compiling each query takes longer than running it on a handful of rows."""
FOLDER = os.environ.get("TOPICWEAVE_BENCH")
"""Where tables go; a temporary folder if not set."""


Settings = dict[str, str]


class Step(NamedTuple):
    name: str
    engine: str
    rows: int
    seconds: float
    cpu: float
    """Processor seconds of all its processes: what a busy machine changes least."""
    peak_mib: float


def run(quick: bool) -> list[Sheet]:
    sizes = (5000,) if quick else (20_000, 100_000, 200_000, 1_000_000)
    receptions = (100_000,) if quick else (1_000_000, 10_000_000, 100_000_000)
    sheet = Sheet(
        "pipeline",
        "The pipeline on one machine, 4 GiB for Spark",
        3,
        Column("step"),
        Column("engine"),
        Column("rows", ",d"),
        Column("seconds", ".1f", "less"),
        Column("CPU s", ".1f", "less"),
        Column("rows per s", ",.0f", "more"),
        Column("peak MiB", ",.0f", "less"),
    )
    settings = MEMORY | FEW_ROWS if quick else MEMORY
    with tempfile.TemporaryDirectory(dir=FOLDER) as name:
        folder = Path(name)
        steps = [
            *_generated(folder, sizes, settings),
            *([] if quick else _imported(folder, settings)),
            *(step for rows in receptions for step in _measured(folder, rows, settings)),
        ]
    for step in steps:
        sheet.add(
            step.name, step.engine, step.rows, step.seconds, step.cpu, step.rows / step.seconds, step.peak_mib
        )
    return [sheet]


def _generated(folder: Path, sizes: tuple[int, ...], settings: Settings) -> list[Step]:
    steps = []
    for nodes in sizes:
        out = folder / f"generated-{nodes}"
        label = f"generate vitis-low, {nodes:,} nodes x 50"
        steps.append(step_of(label, "Spark", generate_on_spark, settings, nodes, str(out)))
        steps.append(step_of("… read and write the same table", "DuckDB", copy_in_duckdb, str(out)))
    largest = str(folder / f"generated-{sizes[-1]}")
    steps.append(
        step_of("list sizes and popularity of the last", "Spark", histograms_on_spark, settings, largest)
    )
    steps.append(step_of("list sizes and popularity of the last", "DuckDB", histograms_in_duckdb, largest))
    return steps


def _imported(folder: Path, settings: Settings) -> list[Step]:
    """All of the real traces, where TOPICWEAVE_DATASETS says they are."""
    data = os.environ.get("TOPICWEAVE_DATASETS")
    if not data:
        return []
    return [
        step_of("import all real traces", "Spark", import_on_spark, settings, data, str(folder / "imported")),
        step_of("describe all of them", "Spark", describe_on_spark, settings, str(folder / "imported")),
    ]


def _measured(folder: Path, rows: int, settings: Settings) -> list[Step]:
    telemetry = folder / f"telemetry-{rows}"
    make_telemetry(telemetry, rows)
    label = f"all measures of {rows:,} deliveries"
    steps = [
        step_of(label, "Spark", measure_on_spark, settings, str(telemetry), rows),
        step_of(label, "DuckDB", measure_in_duckdb, str(telemetry), rows),
    ]
    shutil.rmtree(telemetry)
    return steps


def generate_on_spark(settings: Settings, nodes: int, out: str) -> int:
    from topicweave.pipeline.generate import generate
    from topicweave.pipeline.session import LIGHT, spark_session

    with spark_session(**settings, **{LIGHT: "yes"}) as spark:
        return generate("vitis-low", {"nodes": nodes}, 0, Path(out), spark=spark).subscriptions


def copy_in_duckdb(source: str) -> int:
    import duckdb

    target = f"{source}-copy.parquet"
    query = f"copy (select * from '{source}/subscriptions.parquet/*.parquet') to '{target}' (codec zstd)"
    count: int = duckdb.execute(
        f"select count(*) from '{source}/subscriptions.parquet/*.parquet'"
    ).fetchall()[0][0]
    duckdb.execute(query)
    Path(target).unlink()
    return count


def histograms_on_spark(settings: Settings, source: str) -> int:
    from topicweave.pipeline.describe import _histogram
    from topicweave.pipeline.session import spark_session

    with spark_session(**settings) as spark:
        wishes = spark.read.parquet(f"{source}/subscriptions.parquet")
        sizes, times = _histogram(wishes.groupBy("node").count())
        _histogram(wishes.groupBy("topic").count())
        return int((sizes * times).sum())


def histograms_in_duckdb(source: str) -> int:
    import duckdb

    count = 0
    for column in ("topic", "node"):
        rows = duckdb.execute(
            f"select n, count(*) from (select count(*) n from '{source}/subscriptions.parquet/*.parquet' "
            f"group by {column}) group by n"
        ).fetchall()
        count = sum(value * times for value, times in rows)
    return count


def import_on_spark(settings: Settings, data: str, out: str) -> int:
    from topicweave.data.formats import REAL
    from topicweave.pipeline.importing import import_trace
    from topicweave.pipeline.session import spark_session

    lines = 0
    with spark_session(**settings) as spark:
        for name, real in REAL.items():
            made = import_trace(spark, real.format, Path(data, real.file), Path(out) / name, real.options)
            lines += made["lines"]
    return lines


def describe_on_spark(settings: Settings, folder: str) -> int:
    from topicweave.pipeline.describe import describe
    from topicweave.pipeline.session import spark_session

    rows = 0
    with spark_session(**settings) as spark:
        for one in sorted(Path(folder).iterdir()):
            rows += describe(spark, one).get("subscriptions", 0)
    return rows


def make_telemetry(folder: Path, rows: int) -> None:
    """Deliveries of events with a thousand receptions each, at ten thousand nodes; one in ten is a repetition.

    Of a thousand topics each reaches nine hundred nodes, a fifth of which did not ask for it.
    """
    step, events = min(rows, 1_000_000), rows // 1000
    names = pa.array([f"n{number}" for number in range(10_000)])
    for number, start in enumerate(range(0, rows, step)):
        at = np.arange(start, start + step)
        event = at // 1000
        topic = event % 1000
        node = ((uniforms(1, 1, topic) * 10_000).astype(np.int64) + at % 900) % 10_000
        table = pa.table(
            {
                "run": pa.DictionaryArray.from_arrays(np.zeros(step, np.int32), ["bench"]),
                "event": event,
                "node": pa.DictionaryArray.from_arrays(node.astype(np.int32), names),
                "time": event * 0.01 + uniforms(1, 2, at),
                "hops": (1 + uniforms(1, 3, at) * 8).astype(np.int32),
                "sender": pa.DictionaryArray.from_arrays(((node + 1) % 10_000).astype(np.int32), names),
                "wanted": uniforms(1, 4, topic * 10_000 + node) < 0.8,
            }
        )
        path = folder / "deliveries.parquet" / f"part-{number:05d}.parquet"
        write_part(path, SCHEMAS["deliveries"], [table.cast(SCHEMAS["deliveries"])])
    numbers = np.arange(events)
    published = pa.table(
        {
            "run": pa.DictionaryArray.from_arrays(np.zeros(events, np.int32), ["bench"]),
            "event": numbers,
            "topic": pa.array([f"t{number % 1000}" for number in range(events)]).dictionary_encode(),
            "node": pa.array(["outside"] * events).dictionary_encode(),
            "time": numbers * 0.01,
        }
    )
    write_part(
        folder / "publishes.parquet" / "part-00000.parquet",
        SCHEMAS["publishes"],
        [published.cast(SCHEMAS["publishes"])],
    )
    _make_surroundings(folder)


def _make_surroundings(folder: Path) -> None:
    """An overlay of ten links a node, control traffic, and who wants what: a snapshot's size, whatever the
    deliveries'.
    """
    names = np.array([f"n{number}" for number in range(10_000)])
    node = np.repeat(np.arange(10_000), 10)
    peer = (node + 1 + (uniforms(1, 5, np.arange(len(node))) * 50).astype(np.int64)) % 10_000
    rows = len(node)
    tables = {
        "links": {
            "time": np.full(rows, 1.0),
            "node": names[node],
            "peer": names[peer],
            "kind": ["near"] * rows,
        },
        "control": {
            "time": np.full(rows, 1.0),
            "node": names[node],
            "kind": ["gossip"] * rows,
            "messages": np.full(rows, 3),
            "bytes": np.full(rows, 300),
        },
    }
    for name, columns in tables.items():
        table = pa.table({"run": ["bench"] * rows, **columns}).cast(SCHEMAS[name])
        write_part(folder / f"{name}.parquet" / "part-00000.parquet", SCHEMAS[name], [table])
    topic, place = np.divmod(np.arange(900_000), 900)
    wishes = ((uniforms(1, 1, topic) * 10_000).astype(np.int64) + place) % 10_000
    kept = uniforms(1, 4, topic * 10_000 + wishes) < 0.8
    pairs = pa.table(
        {
            "node": names[wishes[kept]],
            "topic": np.array([f"t{number}" for number in range(1000)])[topic[kept]],
        }
    )
    write_part(folder / "subscriptions.parquet" / "part-00000.parquet", pairs.schema, [pairs])


def measure_on_spark(settings: Settings, folder: str, rows: int) -> int:
    from topicweave.pipeline.measuring.api import measure_folder
    from topicweave.pipeline.session import LIGHT, spark_session

    light = {**settings, LIGHT: "yes"}
    measure_folder(Path(folder), Path(folder), lambda: spark_session(**light), in_memory=False)
    return rows


def measure_in_duckdb(folder: str, rows: int) -> int:
    import duckdb

    duckdb.execute("set memory_limit = '4GB'")
    duckdb.execute(f"set temp_directory = '{folder}/spill'")
    duckdb.execute(
        f"""
        create temp table received as
        select d.event, d.node, any_value(p.time) published, any_value(p.topic) topic,
               min(d.time) time, arg_min(d.hops, d.time) hops, arg_min(d.wanted, d.time) wanted,
               count(*) receptions, count(*) filter (not d.wanted) unwanted
        from '{folder}/deliveries.parquet/*.parquet' d join '{folder}/publishes.parquet/*.parquet' p using (event)
        group by d.event, d.node
        """
    )
    duckdb.execute(
        """
        select avg((not wanted)::int), sum(unwanted) / sum(receptions), avg(hops) filter (wanted),
               quantile_cont(time - published, [0.5, 0.95, 1.0]) filter (wanted)
        from received
        """
    ).fetchall()
    duckdb.execute(
        "select avg(noise) from (select avg((not wanted)::int) noise from received group by node)"
    ).fetchall()
    duckdb.execute(
        "select count(*) from (select distinct topic, node from received where not wanted)"
    ).fetchall()
    duckdb.execute(
        f"""
        create temp table pairs as select topic, node, sum(receptions) receptions, count(*) firsts from received group by all;
        create temp table sent as
        select sender node, count(*) traffic from '{folder}/deliveries.parquet/*.parquet' group by sender;
        create temp table wishes as select * from '{folder}/subscriptions.parquet/*.parquet'
        """
    )
    duckdb.execute(
        """
        select sum(firsts) / (select count(*) from wishes join (select distinct topic, event from received) using (topic))
        from pairs semi join wishes using (topic, node)
        """
    ).fetchall()
    duckdb.execute(
        """
        with demand as (
            select node, sum(events) demand
            from wishes join (select topic, count(distinct event) events from received group by topic) using (topic)
            group by node
        ), handled as (
            select node, sum(traffic) traffic
            from (select node, receptions traffic from pairs union all select * from sent) group by node
        )
        select corr(traffic, coalesce(demand, 0)) from handled left join demand using (node)
        """
    ).fetchall()
    return rows


def step_of(name: str, engine: str, function: Callable[..., int], *arguments: Any) -> Step:
    """A fresh process for each, and an eye on what it and its children take."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        root = pool.submit(os.getpid).result()
        stop, peak, cpu = threading.Event(), [0.0], [0.0]

        def watch() -> None:
            while not stop.wait(0.1):
                mib, seconds = _tree(root)
                peak[0], cpu[0] = max(peak[0], mib), max(cpu[0], seconds)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        start = time.perf_counter()
        rows = pool.submit(function, *arguments).result()
        seconds = time.perf_counter() - start
        stop.set()
        watcher.join()
    return Step(name, engine, rows, seconds, cpu[0], peak[0])


def _tree(root: int) -> tuple[float, float]:
    """The resident memory (MiB) and processor seconds of a process and all below it; shared pages count once
    for each.
    """
    memory = cpu = 0.0
    process = psutil.Process(root)
    for one in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # it has ended
            memory += one.memory_info().rss
            cpu += sum(one.cpu_times()[:4])  # its own, and that of those below it that have ended
    return memory / 2**20, cpu
