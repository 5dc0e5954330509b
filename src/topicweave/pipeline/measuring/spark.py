"""Every measure of runs from telemetry tables of any size, on Spark: two jobs and a short third.

The first finds which runs and events there are. The second reads every table once and goes through the rounds
of `plan`, all runs together: names become hashes where rows are read, rows move as arrays, and tasks group,
join and count them with NumPy. The third takes a second look at the latencies. What comes to the driver is
the events' hashes (up to five million of them), and amounts: a few for each run and task.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from topicweave.errors import BadInput
from topicweave.measures.summary import Scope
from topicweave.model.arrays import IntArray
from topicweave.pipeline.measuring import nodes as node_rounds
from topicweave.pipeline.measuring import receptions, topics
from topicweave.pipeline.measuring.latencies import (
    LatencyMarks,
    WantedQuantiles,
    quantiles,
    second_look,
    wanted,
)
from topicweave.pipeline.measuring.plan import (
    LATER,
    RECEPTIONS,
    MeasuredRun,
    MeasuringPlan,
    PlanHere,
    SharedPlan,
    added_up,
)
from topicweave.pipeline.measuring.scan import SURVEYED, scanner, survey
from topicweave.pipeline.measuring.sources import Chunk, Scan, from_chunks, from_frames
from topicweave.pipeline.measuring.summary import measures
from topicweave.pipeline.rounds import (
    MESSAGES,
    Letter,
    Work,
    batches_by_bytes,
    hashes,
    here,
    mixed,
    packed,
    rounds,
    unpacked,
)
from topicweave.pipeline.workers import cores, described, through_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS_PER_TASK = 4_000_000
"""Receptions, of 28 bytes each: about 100 MB that move to a task."""
EVENTS_TOLD = 5_000_000
"""Up to so many, tasks are told where each event goes, and the receptions of a topic meet in one place."""
SHARES = (0.5, 0.95, 1.0)


class TableSource(NamedTuple):
    """Tables to scan, in files or as DataFrames."""

    scanned: Callable[[Scan, Mapping[str, Sequence[str]] | None], DataFrame]
    rows: Mapping[str, int]
    """Of each table."""


def of_chunks(spark: SparkSession, chunks: Sequence[Chunk]) -> TableSource:
    rows: defaultdict[str, int] = defaultdict(int)
    for chunk in chunks:
        rows[chunk.source] += chunk.rows
    return TableSource(lambda scan, only: from_chunks(spark, chunks, scan, only), rows)


def of_frames(
    frames: Mapping[str, DataFrame], counted: Sequence[str] = ("publishes", "deliveries")
) -> TableSource:
    """`counted` are the tables by whose rows the number of tasks is chosen."""
    rows = {name: frame.count() if name in counted else 0 for name, frame in frames.items()}
    return TableSource(lambda scan, only: from_frames(frames, scan, only), rows)


def together(*sources: TableSource) -> TableSource:
    """Some tables from here, some from there."""

    def scanned(scan: Scan, only: Mapping[str, Sequence[str]] | None) -> DataFrame:
        asked = [one for one in sources if only is None or set(only) & set(one.rows)]
        return reduce(lambda one, other: one.unionByName(other), (one.scanned(scan, only) for one in asked))

    return TableSource(scanned, {name: rows for one in sources for name, rows in one.rows.items()})


def last_published(spark: SparkSession, source: TableSource) -> dict[str, float]:
    """The time of each run's last event, -inf if it has none."""
    with batches_by_bytes(spark):
        found = list(here(source.scanned(survey(-math.inf, None, with_events=False), SURVEYED)))
    last = _last_rows(found)["publishes"]
    return {name: last.get(number, -math.inf) for number, name in names(found, "runs").items()}


def measured(
    spark: SparkSession, source: TableSource, run: str | None, scope: Scope
) -> dict[str, dict[str, float]]:
    """All measures by run, or those of one."""
    with batches_by_bytes(spark):
        plan = _planned(spark, source, run, scope)
        if through_connect(spark):
            return _measured(source, PlanHere(plan))  # it goes along with every task
        shared = spark.sparkContext.broadcast(plan)
        try:
            return _measured(source, shared)
        finally:
            shared.destroy()


def _measured(source: TableSource, shared: SharedPlan) -> dict[str, dict[str, float]]:
    from pyspark import StorageLevel
    from pyspark.sql import functions as sf

    plan = shared.value
    first, *others = works(shared)
    met = rounds(source.scanned(scanner(shared), None), [first], plan.tasks)
    met = met.persist(StorageLevel.DISK_ONLY)  # the latencies; all else in it is small
    spark = met.sparkSession
    try:
        with described(spark, "one pass over the deliveries"):
            rest = met.where(sf.col("round") != LATER)
            messages = list(here(rounds(rest, others, plan.tasks, RECEPTIONS + 1)))
        asked = asked_of(messages)
        with described(spark, "quantiles of latencies"):
            later = met.where(sf.col("round") == LATER)
            looks = list(here(later.mapInArrow(_look(asked), MESSAGES))) if asked else []
    finally:
        met.unpersist()
    return summed_up(plan, messages, asked, looks)


def summed_up(
    plan: MeasuringPlan,
    messages: Sequence[Letter],
    asked: Mapping[int, WantedQuantiles],
    looks: Sequence[Letter],
) -> dict[str, dict[str, float]]:
    told, kinds = added_up(messages), names(messages, "kinds")
    found = {}
    for number, run in sorted(plan.runs.items(), key=lambda item: item[1].name):
        latency = quantiles(asked[number], looks, number) if number in asked else [math.nan] * len(SHARES)
        found[run.name] = measures(told.get(number, defaultdict(int)), kinds, latency)
    return found


def works(shared: SharedPlan) -> list[Work]:
    """One for each round."""
    return [
        receptions.meet(shared),
        node_rounds.settle(shared),
        node_rounds.take_offers(shared),
        node_rounds.take_edges(shared),
        topics.gather(shared),
        node_rounds.sum_up(shared),
    ]


def names(messages: Sequence[Letter], kind: str) -> dict[int, str]:
    """Names by their hashes."""
    return {
        number: name
        for message in messages
        if message.kind == kind
        for number, name in zip(
            message.columns["hash"].tolist(), message.columns["name"].to_pylist(), strict=True
        )
    }


def asked_of(messages: Sequence[Letter]) -> dict[int, WantedQuantiles]:
    marks: defaultdict[int, list[LatencyMarks]] = defaultdict(list)
    for message in messages:
        if message.kind == "marks":
            columns = message.columns
            one = LatencyMarks(int(columns["size"][0]), int(columns["stride"][0]), columns["value"])
            marks[int(columns["run"][0])].append(one)
    return {run: wanted(of_run, SHARES) for run, of_run in marks.items()}


def _look(asked: Mapping[int, WantedQuantiles]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for message in unpacked(batches):
            run = message.rank
            yield from packed(second_look(run, message.columns["value"], asked[run].spans))

    return look


def _planned(spark: SparkSession, source: TableSource, run: str | None, scope: Scope) -> MeasuringPlan:
    many = source.rows["publishes"]
    with described(spark, "which runs and events there are"):
        look = survey(scope.start, scope.end, with_events=many <= EVENTS_TOLD)
        found = list(here(source.scanned(look, SURVEYED)))
    tasks = max(1, min(cores(spark), 8), -(-source.rows["deliveries"] // ROWS_PER_TASK))
    return planned(found, source.rows, run, scope, tasks)


def planned(
    found: Sequence[Letter], rows: Mapping[str, int], run: str | None, scope: Scope, tasks: int
) -> MeasuringPlan:
    """What to do, from what the first look has found."""
    runs = _chosen(names(found, "runs"), run)
    last = _last_rows(found)
    about = {}
    for number, name in runs.items():
        latest = max(
            (of_table[number] for of_table in last.values() if number in of_table), default=scope.start
        )
        end = latest if scope.end is None else scope.end
        moment = last["links"].get(number, end) if scope.snapshot_time is None else scope.snapshot_time
        about[number] = MeasuredRun(name, end, moment)
    kinds = (
        None if scope.link_kinds is None else hashes(pa.array(list(scope.link_kinds), pa.string())).tolist()
    )
    keys, places = None, None
    if rows["publishes"] <= EVENTS_TOLD:
        keys, places = _places(found, rows["deliveries"], tasks)
    return MeasuringPlan(tasks, scope, about, "churn" in rows, "nodes" in rows, kinds, keys, places)


def _last_rows(found: Sequence[Letter]) -> dict[str, dict[int, float]]:
    """By table and run: the time of the last row."""
    last: dict[str, dict[int, float]] = {name: {} for name in SURVEYED}
    for message in found:
        if message.kind in last:
            of_table, columns = last[message.kind], message.columns
            for number, time in zip(columns["run"].tolist(), columns["last"].tolist(), strict=True):
                of_table[number] = max(of_table.get(number, -math.inf), time)
    return last


def _chosen(runs: dict[int, str], run: str | None) -> dict[int, str]:
    """Events of different runs may have equal keys, so runs are never measured together."""
    if run is None:
        return runs
    chosen = {number: name for number, name in runs.items() if name == run}
    if not chosen:
        raise BadInput(f"the tables hold no run {run!r}; they hold {_listed(runs)}")
    return chosen


def _listed(runs: Mapping[int, str]) -> str:
    held = sorted(runs.values())
    return ", ".join([*held[:5], "…"] if len(held) > 5 else held) or "none"


def only_run(measured_: dict[str, dict[str, float]]) -> dict[str, float]:
    """Of tables that hold one run, or none."""
    if len(measured_) > 1:
        listed = _listed(dict(enumerate(measured_)))
        raise BadInput(f"the tables hold {len(measured_)} runs ({listed}); say which to measure")
    return next(iter(measured_.values()), measures(defaultdict(int), {}, [math.nan] * len(SHARES)))


def _places(found: Sequence[Letter], deliveries: int, tasks: int) -> tuple[IntArray, IntArray]:
    """The task of each event: that of its topic, or one of several if the topic is too large for one."""
    events = [message.columns for message in found if message.kind == "events"]
    none = np.empty(0, np.int64)
    keys, run, topic = (
        np.concatenate([none, *(one[name] for one in events)]) for name in ("key", "run", "topic")
    )
    keys, rows = np.unique(keys, return_index=True)
    of_run = mixed(run[rows], topic[rows])
    _, number, sizes = np.unique(of_run, return_inverse=True, return_counts=True)
    per_task = max(1, ROWS_PER_TASK * len(keys) // max(deliveries, 1))  # events
    salts = -(-sizes // per_task)
    salt = (keys.view(np.uint64) % salts[number].astype(np.uint64)).view(np.int64) if len(keys) else none
    return keys, (mixed(salt, of_run).view(np.uint64) % np.uint64(tasks)).view(np.int64)
