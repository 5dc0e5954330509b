"""Every measure of a run from telemetry tables of any size: `topicweave.measures.measure_run`, on Spark.

Names, definitions and options are those of the in-memory function; the tests hold the two to each other.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from topicweave.errors import BadInput
from topicweave.measures.columns import ratio
from topicweave.pipeline import measure_deliveries, measure_overlay
from topicweave.pipeline.uptimes import covers, intervals, node_seconds
from topicweave.telemetry.schema import SCHEMAS, file_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLES = ("links", "publishes", "deliveries", "control")


def read_tables(spark: SparkSession, folder: Path) -> dict[str, DataFrame]:
    """The telemetry tables of a folder, each row with its `order` in the table."""
    return {name: _read(spark, folder / file_name(name), name) for name in TABLES}


def _read(spark: SparkSession, path: Path, name: str) -> DataFrame:
    from pyspark.sql import functions as sf

    if not path.exists():
        raise BadInput(f"{path}: no such telemetry table; the run did not finish, or this is not its folder")
    rows = spark.read.parquet(str(path.absolute()))
    missing = [field.name for field in SCHEMAS[name] if field.name not in rows.columns]
    if missing:
        raise BadInput(f"{path}: needs one column {missing[0]!r}, has {', '.join(rows.columns)}")
    if path.is_file():
        order = sf.col("_metadata.row_index")
    else:
        # Part files count in the order of their names, as every reader of ours takes them.
        names = sorted(part.name for part in path.iterdir() if not part.name.startswith(("_", ".")))
        place = sf.create_map(*[sf.lit(item) for at, part in enumerate(names) for item in (part, at << 40)])
        order = place[sf.col("_metadata.file_name")] + sf.col("_metadata.row_index")
    return rows.select(*SCHEMAS[name].names, order.cast("long").alias("order"))


def runs_in(tables: dict[str, DataFrame]) -> list[str]:
    """The names of all runs, sorted: a name each, however many rows."""
    every = reduce(
        lambda one, other: one.union(other), (table.select("run").distinct() for table in tables.values())
    )
    return [row["run"] for row in every.distinct().orderBy("run").collect()]


def measure_on_spark(
    tables: dict[str, DataFrame],
    subscriptions: DataFrame,
    *,
    run: str | None = None,
    nodes: DataFrame | None = None,
    churn: DataFrame | None = None,
    start: float = 0.0,
    end: float | None = None,
    grace: float = 0.0,
    window: float = math.inf,
    snapshot_time: float | None = None,
    snapshot_within: float = 0.0,
    link_kinds: Collection[str] | None = None,
    coverage_k: int = 1,
) -> dict[str, float]:
    """All measures of one run; see `topicweave.measures.summary.measure_run` for the options."""
    from pyspark.sql import functions as sf

    tables = _one_run(tables, run)
    wishes = subscriptions.selectExpr("cast(node as string) node", "cast(topic as string) topic").distinct()
    wishes = wishes.persist()
    # Who received from whom: what there is to know of the largest table without its events, after one pass over it.
    contacts = tables["deliveries"].groupBy("node", "sender").agg(sf.max("time").alias("time")).persist()
    thin = {**tables, "deliveries": contacts}
    if end is None:
        end = _last_time(thin, start)
    everyone = (_everyone(thin, wishes) if nodes is None else nodes.select("node").distinct()).persist()
    up = intervals(everyone, churn)

    links, moment = measure_overlay.snapshot(tables["links"], snapshot_time, snapshot_within)
    at = snapshot_time if snapshot_time is not None else (end if moment is None else moment)
    settled = up.where(covers(sf.col("begin"), sf.col("end"), sf.lit(at - grace), sf.lit(at)))
    present = settled.select("node").distinct().persist()
    edges = measure_overlay.edges_of(links, present, link_kinds).persist()

    counted = tables["publishes"].where((sf.col("time") >= start) & (sf.col("time") <= end))
    events = measure_deliveries.published(counted).persist()
    handlers = everyone.union(_handlers(thin)).distinct()
    known = wishes.join(everyone, "node", "left_semi")
    try:
        with measure_deliveries.received(events, tables["deliveries"], window) as received:
            return {
                **measure_overlay.degree_measures(edges, present),
                **measure_overlay.links_by_kind(links, present),
                **measure_overlay.topic_measures(edges, present, wishes, coverage_k),
                "hit_ratio": measure_deliveries.hit_ratio(
                    events, received, known, None if churn is None else up, grace, window
                ),
                **measure_deliveries.delivery_measures(events, received),
                "fairness": measure_deliveries.fairness(events, received, known, handlers),
                **_control(tables["control"], node_seconds(up, start, end), start, end),
            }
    finally:
        for frame in (wishes, contacts, everyone, present, edges, events):
            frame.unpersist()


def _one_run(tables: dict[str, DataFrame], run: str | None) -> dict[str, DataFrame]:
    """Events of different runs may have equal keys, so runs are never measured together."""
    from pyspark.sql import functions as sf

    if run is not None:
        chosen = {name: table.where(sf.col("run") == run) for name, table in tables.items()}
        if any(not table.isEmpty() for table in chosen.values()):
            return chosen
    runs = runs_in(tables)
    held = ", ".join([*runs[:5], "…"] if len(runs) > 5 else runs) or "none"
    if run is None:
        if len(runs) > 1:
            raise BadInput(f"the tables hold {len(runs)} runs ({held}); say which to measure")
        return tables
    raise BadInput(f"the tables hold no run {run!r}; they hold {held}")


def _last_time(tables: dict[str, DataFrame], default: float) -> float:
    last = [table.selectExpr("max(time)").first() for table in tables.values()]
    return max((float(row[0]) for row in last if row and row[0] is not None), default=default)


def _everyone(tables: dict[str, DataFrame], wishes: DataFrame) -> DataFrame:
    every = [wishes.select("node"), *(table.select("node") for table in tables.values())]
    return reduce(lambda one, other: one.union(other), (names.distinct() for names in every)).distinct()


def _handlers(tables: dict[str, DataFrame]) -> DataFrame:
    """Whoever published, received or sent an event, also of events that are not counted."""
    from pyspark.sql import functions as sf

    deliveries = tables["deliveries"]
    return (
        tables["publishes"]
        .select("node")
        .union(deliveries.select("node").distinct())
        .union(deliveries.select(sf.col("sender").alias("node")).distinct())
    )


def _control(control: DataFrame, seconds: float, start: float, end: float) -> dict[str, float]:
    """Messages and bytes per node and second, in all and by kind; kinds outside the interval count 0."""
    from pyspark.sql import functions as sf

    within = (sf.col("time") > start) & (sf.col("time") <= end)
    sums = control.groupBy("kind").agg(
        sf.sum(sf.when(within, sf.col("messages")).otherwise(0)).alias("messages"),
        sf.sum(sf.when(within, sf.col("bytes")).otherwise(0)).alias("bytes"),
    )
    rows = sums.orderBy("kind").collect()  # few kinds
    measures: dict[str, float] = {}
    for what in ("messages", "bytes"):
        measures[f"control_{what}"] = ratio(float(sum(row[what] for row in rows)), seconds)
        measures |= {f"control_{what}.{row['kind']}": ratio(float(row[what]), seconds) for row in rows}
    return measures
