"""One pass over the deliveries of all runs of a folder, the largest table there is: what of them measures need.

1. Names become 64-bit hashes where they are read, so that rows are few bytes wide when they move.
2. Every reception finds its event's topic, and goes with it (and with the event itself) to the task of that topic; a
   topic with very many receptions has several tasks, each with some of its events.
3. A task takes its rows as arrays: it finds the first receptions, and counts. What it hands on is small beside the
   rows: counts by topic and node, and the latencies as one sorted array per run.

Nothing is sorted on the way but in a task's arrays, and nothing is read twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topicweave.model.arrays import IntArray

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


ROWS_PER_TASK = 1_500_000
"""What a task holds as arrays: about half a GiB."""

PAIR, NODE, RUN, HIT = 0, 1, 2, 3
"""What a row that is handed on tells of: a topic and node; a node; a run; a reception in time (where nodes come and go)."""

COUNTS = ("receptions", "unwanted", "firsts", "relayed", "in_time", "hops", "hops_max")
HANDED_ON = pa.schema(
    [
        ("kind", pa.int8()),
        ("run", pa.int64()),
        ("topic", pa.int64()),
        ("node", pa.int64()),
        *((name, pa.int64()) for name in COUNTS),
        ("time", pa.float64()),
        ("latencies", pa.binary()),
    ]
)
_EVENT = 1  # the lowest bit of `flags`
_WANTED = 2
_KNOWN = 4
_HOPS = 8


class Passed(NamedTuple):
    """What the pass found; `handed_on` is kept until it is let go."""

    events: DataFrame
    """run, event, topic, node, time: every event that counts, once."""
    handed_on: DataFrame


def hashed(name: str) -> Column:
    """A name as 64 bits. Among a million names the chance that any two share them is 3e-8."""
    from pyspark.sql import functions as sf

    return sf.xxhash64(sf.col(name).cast("string")).alias(name)


def events_of(publishes: DataFrame, start: float, end: float | None) -> DataFrame:
    """Every event published in time, once, by its first row; names as hashes."""
    from pyspark.sql import functions as sf

    counted = publishes.where(sf.col("time") >= start)
    if end is not None:
        counted = counted.where(sf.col("time") <= end)
    firsts = (sf.min_by(name, "order").alias(name) for name in ("topic", "node", "time"))
    named = counted.select(hashed("run"), "event", hashed("topic"), hashed("node"), "time", "order")
    return named.groupBy("run", "event").agg(*firsts)


def one_pass(
    publishes: DataFrame,
    deliveries: DataFrame,
    start: float,
    end: float | None,
    window: float = math.inf,
    hits: bool = False,
) -> Passed:
    """See above. Both tables have a column `order`, the place of the row. With `hits` a row for each reception in time."""
    from pyspark import StorageLevel
    from pyspark.sql import functions as sf

    events = events_of(publishes, start, end).persist(StorageLevel.MEMORY_AND_DISK)
    rows, many = deliveries.count(), events.count()
    tasks = max(1, -(-(rows + many) // ROWS_PER_TASK))
    per_task = max(1, math.floor(ROWS_PER_TASK * max(many, 1) / max(rows, 1)))  # events
    sizes = events.groupBy("run", "topic").agg(sf.count("*").alias("events"))
    salt = sf.pmod(sf.xxhash64("event"), sf.ceil(sf.col("events") / per_task).cast("long"))
    task = sf.pmod(sf.xxhash64("run", "topic", salt), sf.lit(tasks)).cast("int").alias("task")
    placed = events.join(sf.broadcast(sizes) if many < 10_000_000 else sizes, ["run", "topic"])
    placed = placed.select("run", "event", "topic", "node", "time", task)
    where = placed.select("run", "event", "task")
    flags = sf.col("hops").cast("long") * _HOPS + sf.when(sf.col("wanted"), _WANTED).otherwise(0)
    received = deliveries.select(
        hashed("run"), "event", hashed("node"), hashed("sender"), "time", flags.alias("flags"), "order"
    ).join(sf.broadcast(where) if many < 5_000_000 else where, ["run", "event"], "left")
    known = sf.col("task").isNotNull()
    alone = sf.pmod(sf.xxhash64("run", "event"), sf.lit(tasks)).cast("int")
    received = received.select(
        "run",
        "event",
        "node",
        "sender",
        "time",
        (sf.col("flags") + sf.when(known, _KNOWN).otherwise(0)).alias("flags"),
        "order",
        sf.coalesce("task", alone).alias("task"),
    )
    published = placed.select(
        "run",
        "event",
        "node",
        sf.col("topic").alias("sender"),
        "time",
        sf.lit(_EVENT).cast("long").alias("flags"),
        sf.lit(0).cast("long").alias("order"),
        "task",
    )
    every = received.unionByName(published)
    moved = (
        every.repartitionById(tasks, "task")
        if hasattr(every, "repartitionById")
        else every.repartition(tasks, "task")
    )
    found = moved.drop("task").mapInArrow(_counter(window, hits), _spark_schema())
    return Passed(events, found.persist(StorageLevel.MEMORY_AND_DISK))


def _spark_schema() -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(HANDED_ON)


def _counter(window: float, hits: bool) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pieces = [batch for batch in batches if batch.num_rows]
        if not pieces:
            return
        table = pa.Table.from_batches(pieces)
        del pieces
        columns = {name: table[name].to_numpy() for name in table.column_names}
        for run in np.unique(columns["run"]):
            mine = columns["run"] == run
            chosen = columns if mine.all() else {name: column[mine] for name, column in columns.items()}
            for part in _of_run(int(run), chosen, window, hits):
                yield from part.to_batches(max_chunksize=1 << 16)

    return count


def _of_run(run: int, rows: dict[str, Any], window: float, hits: bool) -> Iterator[pa.Table]:
    """What a task hands on of one run's rows."""
    import pandas as pd

    published = (rows["flags"] & _EVENT) > 0
    received = {name: column[~published] for name, column in rows.items()}
    node_code, nodes = pd.factorize(np.concatenate([received["node"], received["sender"]]))
    receivers, senders = np.split(node_code, 2)
    counted = (received["flags"] & _KNOWN) > 0
    seen = np.zeros(len(nodes), np.int64)
    seen[receivers] = 1  # it has rows of its own
    sent = np.bincount(senders[counted], minlength=len(nodes))
    yield _table(NODE, run, node=nodes, receptions=sent, firsts=seen)

    events = {name: column[published] for name, column in rows.items()}
    event = pd.Index(events["event"]).get_indexer(received["event"][counted])
    node, time, flags = receivers[counted], received["time"][counted], received["flags"][counted]
    first = _first(event * max(len(nodes), 1) + node, time, received["order"][counted])
    first &= received["node"][counted] != events["node"][event]
    wanted, hops = (flags & _WANTED) > 0, flags // _HOPS
    published_at = events["time"][event]
    in_time = first & (time <= published_at + window)
    topic_code, topics = pd.factorize(events["sender"])
    if len(event):
        yield _pairs(run, topic_code[event], node, topics, nodes, first, wanted, in_time, hops)
    delivered = first & wanted
    latencies = np.sort(time[delivered] - published_at[delivered])
    blob = pa.array([latencies.tobytes()], pa.binary())
    yield _table(RUN, run, time=np.array([rows["time"].max()]), latencies=blob)
    if hits:
        here = np.flatnonzero(in_time)
        own = topics[topic_code[event[here]]] if len(here) else np.empty(0, np.int64)
        yield _table(HIT, run, topic=own, node=received["node"][counted][here], time=published_at[here])


def _pairs(
    run: int,
    topic: IntArray,
    node: IntArray,
    topics: IntArray,
    nodes: IntArray,
    first: npt.NDArray[np.bool_],
    wanted: npt.NDArray[np.bool_],
    in_time: npt.NDArray[np.bool_],
    hops: IntArray,
) -> pa.Table:
    """Receptions by topic and node, counted."""
    import pandas as pd

    pair, pairs = pd.factorize(topic.astype(np.int64) * len(nodes) + node)
    # All that is to be counted at once: eight kinds of receptions.
    kind = first.astype(np.int64) + 2 * wanted + 4 * in_time
    counts = np.bincount(pair * 8 + kind, minlength=len(pairs) * 8).reshape(
        -1, 2, 2, 2
    )  # in time, wanted, first
    delivered = np.flatnonzero(first & wanted)
    most = np.full(len(pairs), -1, np.int64)
    np.maximum.at(most, pair[delivered], hops[delivered])
    return _table(
        PAIR,
        run,
        topic=topics[pairs // len(nodes)],
        node=nodes[pairs % len(nodes)],
        receptions=counts.sum((1, 2, 3)),
        unwanted=counts[:, :, 0].sum((1, 2)),
        firsts=counts[:, :, :, 1].sum((1, 2)),
        relayed=counts[:, :, 0, 1].sum(1),
        in_time=counts[:, 1].sum((1, 2)),
        hops=np.bincount(pair[delivered], hops[delivered], len(pairs)).astype(np.int64),
        hops_max=most,
    )


def _first(pair: IntArray, time: npt.NDArray[np.float64], order: IntArray) -> npt.NDArray[np.bool_]:
    """Which rows are the first of their pair: the earliest, and of simultaneous ones the earliest in the table."""
    by_pair = np.argsort(pair)
    ends = np.diff(pair[by_pair]) != 0
    starts = np.flatnonzero(np.concatenate([[True], ends])[: len(pair)])
    lengths = np.diff(np.append(starts, len(pair)))
    first = np.zeros(len(pair), np.bool_)
    first[by_pair[starts[lengths == 1]]] = True
    rows = by_pair[np.repeat(lengths > 1, lengths)]
    rows = rows[np.lexsort((order[rows], time[rows], pair[rows]))]
    first[rows[np.concatenate([[True], np.diff(pair[rows]) != 0])[: len(rows)]]] = True
    return first


def _table(kind: int, run: int, **columns: Any) -> pa.Table:
    length = len(next(iter(columns.values())))
    cells = {
        "kind": pa.array(np.full(length, kind, np.int8)),
        "run": pa.array(np.full(length, run, np.int64)),
        **{
            name: pa.array(column) if isinstance(column, np.ndarray) else column
            for name, column in columns.items()
        },
    }
    return pa.table(
        [cells.get(field.name, pa.nulls(length, field.type)) for field in HANDED_ON], names=HANDED_ON.names
    ).cast(HANDED_ON)
