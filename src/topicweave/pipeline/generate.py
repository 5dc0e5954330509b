"""Synthetic workloads as tables: each part drawn by one Spark task, or all of them one by one in this process.

A part is a fixed range of nodes (or topics), drawn by the model's own array function; nothing is shuffled. So the
tables are the same to the byte on any number of cores or executors, and without Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from topicweave.data.places import Place
from topicweave.pipeline.parts import ROWS_PER_PART, Part, Target, finish, part_once
from topicweave.pipeline.staging import staged, write_about
from topicweave.runs.runner import Progress
from topicweave.workloads import hierarchy
from topicweave.workloads.catalogue import Model, find_model, rates_of, topics_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NODES_PER_PART = 20_000
"""Subscriptions: a million rows a part at 50 topics a node."""

NAME = pa.dictionary(pa.int32(), pa.string())
SUBSCRIPTIONS = pa.schema([("node", NAME), ("topic", NAME)])
TOPICS = pa.schema([("topic", pa.string()), ("rate", pa.float64())])

_BINS = 1 << 16


class Draw(NamedTuple):
    """All that a part depends on, as plain values: sent to executors as it is."""

    model: str
    parameters: dict[str, Any]
    seed: int
    moment: float
    nodes_per_part: int


class Generated(NamedTuple):
    nodes: int
    topics: int
    subscriptions: int
    resumed: bool


def generate(
    model_name: str,
    parameters: dict[str, Any],
    seed: int,
    out: Path | Place,
    *,
    spark: SparkSession | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Generated:
    """Draw a workload into a folder; with `spark` on its executors, else here."""
    model = find_model(model_name)
    settings = model.settings(**parameters)
    model.check(settings)
    given: dict[str, Any] = msgspec.to_builtins(settings)
    plan = {"command": "workload generate", "model": model_name, "parameters": given, "seed": seed}
    with staged(out, plan, overwrite) as staging:
        draw, parts = drawn(spark, model_name, parameters, seed)
        work = [(table, number) for table, count in parts.items() for number in range(count)]
        tables = {table: staging.table(table) for table in parts}
        told = _make_all(spark, draw, tables, work, progress or (lambda _done, _of, _what: None))
        rows = {table: finish(target, sorted(told[table])) for table, target in tables.items()}
        made = Generated(settings.nodes, topics_of(settings), rows["subscriptions"], staging.resumed)
        counts = {"nodes": made.nodes, "topics": made.topics, "subscriptions": made.subscriptions}
        write_about(staging, {**plan, "source": model.source, **counts})
    return made


def drawn(
    spark: SparkSession | None, model_name: str, parameters: dict[str, Any], seed: int
) -> tuple[Draw, dict[str, int]]:
    """What is to be drawn, and in how many parts by table."""
    model = find_model(model_name)
    settings = model.settings(**parameters)
    model.check(settings)
    moment = 0.0
    if model.growth is not None:
        growth = model.growth(settings)
        moment = (
            hierarchy.stopping_time(growth, seed)
            if spark is None
            else _stopping_time_on_spark(spark, growth, seed)
        )
    parts = {
        "topics": -(-topics_of(settings) // ROWS_PER_PART),
        "hosts": -(-settings.nodes // ROWS_PER_PART),
        "subscriptions": -(-settings.nodes // NODES_PER_PART),
    }
    return Draw(model_name, msgspec.to_builtins(settings), seed, moment, NODES_PER_PART), parts


def make_part(draw: Draw, target: Target, table: str, number: int) -> Part:
    """Draw one part and write it, unless it is there."""

    def rows() -> tuple[pa.Schema, list[pa.Table]]:
        table_of_part = rows_of_part(draw, table, number)
        return table_of_part.schema, [table_of_part]

    return part_once(target, number, rows)


def rows_of_part(draw: Draw, table: str, number: int) -> pa.Table:
    """All rows of a part, as they are drawn."""
    model = find_model(draw.model)
    return _ROWS[table](model, model.settings(**draw.parameters), draw, number)


def _subscriptions(model: Model, settings: Any, draw: Draw, number: int) -> pa.Table:
    first = number * draw.nodes_per_part
    last = min(first + draw.nodes_per_part, settings.nodes)
    node, topic = model.lists(settings, draw.seed, first, last, draw.moment)
    return pa.table(
        [_names("n", node, np.arange(first, last)), _names("t", topic, np.unique(topic))],
        schema=SUBSCRIPTIONS,
    )


def _topics(_model: Model, settings: Any, _draw: Draw, number: int) -> pa.Table:
    first = number * ROWS_PER_PART
    last = min(first + ROWS_PER_PART, topics_of(settings))
    return pa.table([_numbered("t", np.arange(first, last)), rates_of(settings, first, last)], schema=TOPICS)


def _hosts(model: Model, settings: Any, draw: Draw, number: int) -> pa.Table:
    first = number * ROWS_PER_PART
    last = min(first + ROWS_PER_PART, settings.nodes)
    columns = {"node": _numbered("n", np.arange(first, last))}
    if model.places is not None:
        columns |= model.places(settings, draw.seed, first, last)._asdict()
    return pa.table(columns)


_ROWS: dict[str, Callable[[Model, Any, Draw, int], pa.Table]] = {
    "subscriptions": _subscriptions,
    "topics": _topics,
    "hosts": _hosts,
}


def _numbered(letter: str, numbers: npt.NDArray[np.int64]) -> pa.Array:
    return pc.binary_join_element_wise(letter, pa.array(numbers).cast(pa.string()), "")


def _names(letter: str, cells: npt.NDArray[np.int64], distinct: npt.NDArray[np.int64]) -> pa.Array:
    """Dictionary-encoded names; `distinct` are the numbers that occur, growing."""
    places = np.searchsorted(distinct, cells).astype(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(places), _numbered(letter, distinct))


def _make_all(
    spark: SparkSession | None,
    draw: Draw,
    tables: dict[str, Target],
    work: list[tuple[str, int]],
    progress: Progress,
) -> dict[str, list[Part]]:
    """Make every part, by table. The list has one short entry per million rows or so."""
    progress(0, len(work), "")
    made: dict[str, list[Part]] = {table: [] for table in tables}
    if spark is None:
        for done, (table, number) in enumerate(work, start=1):
            made[table].append(make_part(draw, tables[table], table, number))
            several = sum(name == table for name, _ in work) > 1
            progress(done, len(work), f"{table}, part {number + 1}" if several else table)
        return made

    from topicweave.pipeline.watching import watched
    from topicweave.pipeline.workers import described

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for table, number in zip(batch["table"].to_pylist(), batch["number"].to_pylist(), strict=True):
                part = make_part(draw, tables[table], table, number)
                yield pa.RecordBatch.from_pylist([{"table": table, **part._asdict()}])

    parts = spark.createDataFrame(
        pa.table({"table": [table for table, _ in work], "number": [number for _, number in work]})
    )
    # One task per part: a lost executor costs one part, and the cores stay busy to the end.
    one_each = parts.repartitionByRange(len(work), "table", "number")
    with (
        described(spark, f"draw {draw.model}"),
        watched(spark, lambda done, of: progress(min(done, len(work)), len(work), "part"), len(work)),
    ):
        schema = "table string, name string, rows long, bytes long, sha256 string"
        for row in one_each.mapInArrow(make, schema).toArrow().to_pylist():  # one per part
            made[row.pop("table")].append(Part(**row))
    return made


def _stopping_time_on_spark(spark: SparkSession, growth: hierarchy.Hierarchy, seed: int) -> float:
    """`hierarchy.stopping_time`, exactly, from counts: first of times in 65,536 bins, then within one bin."""
    horizon = hierarchy.likely_horizon(growth, seed)
    while True:
        counts = _time_counts(spark, growth, seed, horizon)
        if counts.sum() >= growth.target:
            break
        horizon *= 1.25
    before = np.cumsum(counts) - counts
    bin_number = int(np.searchsorted(np.cumsum(counts), growth.target))
    inside = np.sort(_times_in_bin(spark, growth, seed, horizon, bin_number))
    return float(inside[growth.target - int(before[bin_number]) - 1])


def _bins(times: npt.NDArray[np.float64], horizon: float) -> npt.NDArray[np.int64]:
    return np.minimum((times / horizon * _BINS).astype(np.int64), _BINS - 1)


def _time_counts(
    spark: SparkSession, growth: hierarchy.Hierarchy, seed: int, horizon: float
) -> npt.NDArray[np.int64]:
    from pyspark.sql import functions as sf

    nodes_per_part = NODES_PER_PART

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for times in _grown_times(batches, growth, seed, horizon, nodes_per_part):
            found, counts = np.unique(_bins(times, horizon), return_counts=True)
            yield pa.RecordBatch.from_pydict({"bin": found, "count": counts.astype(np.int64)})

    binned = _node_parts(spark, growth.nodes).mapInArrow(count, "bin long, count long")
    totals = binned.groupBy("bin").agg(sf.sum("count").alias("count")).toArrow()  # at most _BINS rows
    result = np.zeros(_BINS, np.int64)
    result[totals["bin"].to_numpy()] = totals["count"].to_numpy()
    return result


def _times_in_bin(
    spark: SparkSession, growth: hierarchy.Hierarchy, seed: int, horizon: float, number: int
) -> npt.NDArray[np.float64]:
    nodes_per_part = NODES_PER_PART

    def keep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for times in _grown_times(batches, growth, seed, horizon, nodes_per_part):
            yield pa.RecordBatch.from_pydict({"time": times[_bins(times, horizon) == number]})

    # A 65,536th of the rows, or, in the first bin, those there to begin with: a few bytes each.
    kept = _node_parts(spark, growth.nodes).mapInArrow(keep, "time double").toArrow()
    return np.asarray(kept["time"].to_numpy())


def _node_parts(spark: SparkSession, nodes: int) -> Any:
    """The first node of each part."""
    return spark.range(0, nodes, NODES_PER_PART, -(-nodes // NODES_PER_PART))


def _grown_times(
    batches: Iterator[pa.RecordBatch],
    growth: hierarchy.Hierarchy,
    seed: int,
    horizon: float,
    nodes_per_part: int,
) -> Iterator[npt.NDArray[np.float64]]:
    for batch in batches:
        for first in batch["id"].to_pylist():
            last = min(first + nodes_per_part, growth.nodes)
            yield hierarchy.grow(growth, first, last, horizon, seed).time
