"""Graph algorithms from Python and for the command line: tables in, DataFrames with names out.

    with spark_session() as spark:
        tables = of_frames({"links": links, "subscriptions": subscriptions})      # or tables_in(spark, …) for folders
        named_components(spark, tables).show()

Links are a DataFrame (node, peer), subscriptions (node, topic), churn (time, node, change). With
subscriptions the graph is cut by topics, without them it is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from topicweave.data.places import Place
from topicweave.errors import BadInput
from topicweave.pipeline.graphs.components import components
from topicweave.pipeline.graphs.cooccurrence import communities, cooccurrence
from topicweave.pipeline.graphs.diameters import REGISTERS, distances
from topicweave.pipeline.graphs.links import scan_links
from topicweave.pipeline.graphs.similar import scan_subscriptions, similar
from topicweave.pipeline.graphs.survival import Survival, scan_churn, survival
from topicweave.pipeline.measuring.scan import names_of
from topicweave.pipeline.measuring.sources import Scan, chunks_of
from topicweave.pipeline.measuring.spark import TableSource, of_chunks
from topicweave.pipeline.measuring.spark import of_frames as _of_frames
from topicweave.pipeline.rounds import Letter, LoopOnSpark, batches_by_bytes, here, unpacked
from topicweave.pipeline.workers import cores

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "named_communities",
    "named_components",
    "named_cooccurrence",
    "named_distances",
    "named_similar",
    "of_frames",
    "sessions_survival",
    "tables_in",
]

ROWS_PER_TASK = 2_000_000
_COLUMNS: dict[str, tuple[str, ...]] = {
    "links": ("node", "peer"),
    "subscriptions": ("node", "topic"),
    "churn": ("time", "node", "change"),
}

TABLES: dict[str, pa.Schema] = {
    "components": pa.schema([("topic", pa.string()), ("node", pa.string()), ("component", pa.int64())]),
    "distances": pa.schema(
        [
            ("topic", pa.string()),
            ("vertices", pa.int64()),
            ("diameter", pa.int64()),
            ("effective", pa.float64()),
            ("mean", pa.float64()),
        ]
    ),
    "similar": pa.schema([("node", pa.string()), ("other", pa.string()), ("similarity", pa.float64())]),
    "cooccurrence": pa.schema([("topic", pa.string()), ("other", pa.string()), ("nodes", pa.int64())]),
    "communities": pa.schema([("topic", pa.string()), ("community", pa.string())]),
}
"""What is found, as tables."""


def tables_in(spark: SparkSession, files: Mapping[str, Sequence[Place]]) -> TableSource:
    """Of Parquet files by table: links, subscriptions, churn."""
    return of_chunks(spark, chunks_of(files, columns=_COLUMNS))


def of_frames(frames: Mapping[str, DataFrame]) -> TableSource:
    """Of DataFrames by table; they are counted, so that large ones go to many tasks."""
    return _of_frames(frames, counted=tuple(frames))


def last_moment(spark: SparkSession, source: TableSource, run: str | None) -> tuple[str, float]:
    """Of links as nodes record them, with run and time: the run (the only one, if not given) and its last moment."""

    def look(_source: str, rows: pa.Table, _rank: int) -> Iterator[Letter]:
        grouped = rows.select(["run", "time"]).group_by("run").aggregate([("time", "max")])
        columns = {"run": grouped["run"].cast(pa.string()), "time": grouped["time_max"].to_numpy()}
        yield Letter(0, 0, "moments", columns)

    with batches_by_bytes(spark):
        found = list(here(source.scanned(look, {"links": ("run", "time")})))
    last: dict[str, float] = {}
    for letter in found:
        for name, time in zip(
            letter.columns["run"].to_pylist(), letter.columns["time"].tolist(), strict=True
        ):
            last[name] = max(last.get(name, -np.inf), time)
    held = ", ".join(sorted(last)[:5]) or "none"
    if run is None and len(last) != 1:
        raise BadInput(f"the links are of {len(last)} runs ({held}); say which to look at")
    name = next(iter(last)) if run is None else run
    if name not in last:
        raise BadInput(f"the links hold no run {name!r}; they hold {held}")
    return name, last[name]


def at_moment(source: TableSource, run: str, time: float) -> TableSource:
    """The links of one moment of a run."""

    def scanned(scan: Scan, only: Mapping[str, Sequence[str]] | None) -> DataFrame:
        def of_moment(name: str, rows: pa.Table, rank: int) -> Iterator[Letter]:
            if name == "links":
                here_ = pc.and_(pc.equal(rows["run"].cast(pa.string()), run), pc.equal(rows["time"], time))
                rows = rows.filter(here_).select(["node", "peer"])
            return scan(name, rows, rank)

        columns = dict(only or _COLUMNS)
        if "links" in columns:
            columns["links"] = ("node", "peer", "run", "time")
        return source.scanned(of_moment, columns)

    return TableSource(scanned, source.rows)


def _tasks(spark: SparkSession, source: TableSource) -> int:
    return max(1, min(cores(spark), 8), -(-sum(source.rows.values()) // ROWS_PER_TASK))


def _columns(source: TableSource, *tables: str) -> dict[str, tuple[str, ...]]:
    for name in tables:
        if name not in source.rows:
            raise BadInput(f"no table {name!r}; it needs the columns {', '.join(_COLUMNS[name])}")
    return {name: _COLUMNS[name] for name in tables}


def _graph_loop(spark: SparkSession, source: TableSource) -> LoopOnSpark:
    by_topic = "subscriptions" in source.rows
    tables = ("links", "subscriptions") if by_topic else ("links",)
    tasks = _tasks(spark, source)
    return LoopOnSpark(source.scanned(scan_links(tasks, by_topic), _columns(source, *tables)), tasks)


def _list_loop(spark: SparkSession, source: TableSource) -> LoopOnSpark:
    tasks = _tasks(spark, source)
    return LoopOnSpark(source.scanned(scan_subscriptions(tasks), _columns(source, "subscriptions")), tasks)


def _names(source: TableSource, tables: Mapping[str, Sequence[str]]) -> DataFrame:
    """(hash, name) of all names in some columns."""

    def scan(_source: str, rows: pa.Table, _rank: int) -> Iterator[Letter]:
        for column in rows.column_names:
            yield names_of("names", rows[column])

    def open_(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for letter in unpacked(batches):
            columns = {"hash": pa.array(letter.columns["hash"]), "name": letter.columns["name"]}
            yield from pa.table(columns).to_batches(1 << 16)

    found = source.scanned(scan, tables).mapInArrow(open_, "hash long, name string")
    return found.dropDuplicates(["hash"])


def _named(rows: DataFrame, names: DataFrame, *columns: str) -> DataFrame:
    for column in columns:
        of_column = names.select(names["hash"].alias(column), names["name"].alias(f"{column}_name"))
        rows = rows.join(of_column, column, "left").drop(column).withColumnRenamed(f"{column}_name", column)
    return rows


def named_components(spark: SparkSession, source: TableSource) -> DataFrame:
    """(topic, node, component): components are numbers, the same for nodes that a topic's links connect.

    Without subscriptions there is no topic: null.
    """
    rows = components(_graph_loop(spark, source))
    tables = {"links": ("node", "peer")}
    if "subscriptions" in source.rows:
        tables["subscriptions"] = ("node", "topic")
    return _named(rows, _names(source, tables), "topic", "node").select("topic", "node", "component")


def named_distances(
    spark: SparkSession, source: TableSource, registers: int = REGISTERS, seed: int = 0
) -> DataFrame:
    """(topic, vertices, diameter, effective, mean), a row for each topic."""
    if registers % 8 or not 16 <= registers <= 65536:
        raise BadInput(f"registers: {registers}; a multiple of 8, at least 16")
    made: DataFrame = distances(_graph_loop(spark, source), registers, seed)
    if "subscriptions" not in source.rows:
        return made.selectExpr("cast(null as string) topic", "vertices", "diameter", "effective", "mean")
    names = _names(source, {"subscriptions": ("topic",)})
    return _named(made, names, "topic").select("topic", "vertices", "diameter", "effective", "mean")


def named_similar(
    spark: SparkSession, source: TableSource, threshold: float = 0.5, seed: int = 0
) -> tuple[DataFrame, int]:
    """(node, other, similarity), and in how many bands too many nodes agreed to compare all of them."""
    rows, crowded = similar(_list_loop(spark, source), threshold, seed=seed)
    names = _names(source, {"subscriptions": ("node",)})
    return _named(rows, names, "node", "other").select("node", "other", "similarity"), crowded


def named_cooccurrence(spark: SparkSession, source: TableSource, least: int = 1) -> tuple[DataFrame, int]:
    """(topic, other, nodes): how many nodes want both; and how many nodes were left out, having too many topics."""
    rows, left_out = cooccurrence(_list_loop(spark, source), least)
    names = _names(source, {"subscriptions": ("topic",)})
    return _named(rows, names, "topic", "other").select("topic", "other", "nodes"), left_out


def named_communities(spark: SparkSession, source: TableSource, least: int = 1) -> tuple[DataFrame, int]:
    """(topic, community): communities are named by one of their topics; and how many nodes were left out."""
    rows, left_out, _ = communities(_list_loop(spark, source), least)
    names = _names(source, {"subscriptions": ("topic",)})
    return _named(rows, names, "topic", "community").select("topic", "community"), left_out


def sessions_survival(
    spark: SparkSession, source: TableSource, resolution: float = 1.0, end: float | None = None
) -> Survival:
    tasks = _tasks(spark, source)
    loop = LoopOnSpark(source.scanned(scan_churn(tasks), _columns(source, "churn")), tasks)
    return survival(loop, resolution, end)
