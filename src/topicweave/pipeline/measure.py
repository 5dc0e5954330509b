"""Every measure of runs from telemetry tables of any size: `topicweave.measures.measure_run`, on Spark.

Names, definitions and options are those of the in-memory function; the tests hold the two to each other. The deliveries of all
runs are read once (`measure_pass`); everything else is small beside them. What fits in memory is measured there, without Spark.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from topicweave.errors import BadInput
from topicweave.measures.columns import ratio
from topicweave.measures.summary import measure_run
from topicweave.model.committed import counted_parts
from topicweave.pipeline import measure_deliveries, measure_overlay
from topicweave.pipeline.measure_pass import Passed, hashed, one_pass
from topicweave.pipeline.parts import add_part, finish, read_files
from topicweave.pipeline.session import changed
from topicweave.pipeline.staging import staged, table_files, write_about
from topicweave.pipeline.uptimes import covers, intervals, node_seconds
from topicweave.pipeline.workers import cores, described
from topicweave.telemetry.schema import SCHEMAS, file_name
from topicweave.telemetry.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLES = ("links", "publishes", "deliveries", "control")
IN_MEMORY = 2_000_000
"""Rows, those of the workload included, up to which nothing is gained by Spark."""
_ROWS_PER_PARTITION = 500_000
MEASURED = pa.schema([("run", pa.string()), ("measure", pa.string()), ("value", pa.float64())])


def read_tables(spark: SparkSession, folder: Path) -> dict[str, DataFrame]:
    """The telemetry tables of a folder, each row with its `order` in the table."""
    return {name: _read(spark, folder / file_name(name), name) for name in TABLES}


def _read(spark: SparkSession, path: Path, name: str) -> DataFrame:
    from pyspark.sql import functions as sf

    if not path.exists():
        raise BadInput(f"{path}: no such telemetry table; the run did not finish, or this is not its folder")
    counted = counted_parts(path)
    files = sorted(_parts_in(path) if counted is None else counted)
    rows = spark.read.parquet(*(str(file.absolute()) for file in files))
    missing = [field.name for field in SCHEMAS[name] if field.name not in rows.columns]
    if missing:
        raise BadInput(f"{path}: needs one column {missing[0]!r}, has {', '.join(rows.columns)}")
    columns = [rows[column] for column in SCHEMAS[name].names]
    if path.is_file():
        return rows.select(*columns, sf.col("_metadata.row_index").cast("long").alias("order"))
    # Part files count in the order of their names, as every reader of ours takes them.
    names = [part.name for part in files]
    places = spark.createDataFrame(
        pa.table({"file": names, "place": pa.array([at << 40 for at in range(len(names))], pa.int64())})
    )
    placed = rows.select(
        *columns, sf.col("_metadata.file_name").alias("file"), sf.col("_metadata.row_index").alias("index")
    )
    order = (sf.col("place") + sf.col("index")).cast("long").alias("order")
    return placed.join(sf.broadcast(places), "file").select(*SCHEMAS[name].names, order)


def _parts_in(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return [part for part in path.iterdir() if not part.name.startswith(("_", "."))]


def runs_in(tables: dict[str, DataFrame]) -> list[str]:
    """The names of all runs, sorted: a name each, however many rows."""
    every = reduce(
        lambda one, other: one.union(other), (table.select("run").distinct() for table in tables.values())
    )
    return [row["run"] for row in every.distinct().orderBy("run").collect()]


class MeasureOptions(NamedTuple):
    """What `measure_run` takes besides tables; see there."""

    start: float = 0.0
    end: float | None = None
    grace: float = 0.0
    window: float = math.inf
    snapshot_time: float | None = None
    snapshot_within: float = 0.0
    link_kinds: Collection[str] | None = None
    coverage_k: int = 1


def measure_on_spark(
    tables: Mapping[str, DataFrame],
    subscriptions: DataFrame,
    *,
    run: str | None = None,
    nodes: DataFrame | None = None,
    churn: DataFrame | None = None,
    **options: Any,
) -> dict[str, float]:
    """All measures of one run; see `topicweave.measures.summary.measure_run` for the options."""
    mine = _one_run(dict(tables), run)
    with prepared(mine, subscriptions, nodes, churn, MeasureOptions(**options)) as ready:
        return ready.measures(None)


def measure_all(
    tables: Mapping[str, DataFrame],
    subscriptions: DataFrame,
    *,
    churn: DataFrame | None = None,
    **options: Any,
) -> dict[str, dict[str, float]]:
    """All measures of every run, after one pass over the deliveries of all of them."""
    runs = runs_in(dict(tables))
    with prepared(tables, subscriptions, None, churn, MeasureOptions(**options)) as ready:
        return {run: ready.measures(run) for run in runs}


class Prepared(NamedTuple):
    """Tables with hashes for names, and what a pass over the deliveries found; of all runs."""

    links: DataFrame
    publishes: DataFrame
    control: DataFrame
    wishes: DataFrame
    nodes: DataFrame | None
    churn: DataFrame | None
    passed: Passed
    options: MeasureOptions
    partitions: int
    """Enough for what there is besides the deliveries: with many more, most of the time is spent on empty tasks."""

    def measures(self, run: str | None) -> dict[str, float]:
        """Of one run; None if there is but one."""
        from pyspark.sql import functions as sf

        number = self._number(run)
        one = sf.col("run") == number
        links, control, publishes = (table.where(one) for table in (self.links, self.control, self.publishes))
        received = measure_deliveries.received(self.passed, number)
        spark = links.sparkSession
        options, wishes = self.options, self.wishes
        kept: list[DataFrame] = []

        def keep(frame: DataFrame) -> DataFrame:
            kept.append(frame.persist())
            return frame

        try:
            with (
                described(spark, f"measure {run or 'a run'}"),
                changed(spark, {"spark.sql.shuffle.partitions": str(self.partitions)}),
            ):
                end = options.end
                if end is None:
                    end = _last_time((links, publishes, control), received.last, options.start)
                everyone = self.nodes
                if everyone is None:
                    seen = received.nodes.where("seen > 0")
                    everyone = _distinct_nodes(wishes, links, publishes, control, seen)
                everyone = keep(everyone)
                up = intervals(everyone, self.churn)
                overlay, moment = measure_overlay.snapshot(
                    links, options.snapshot_time, options.snapshot_within
                )
                at = options.snapshot_time
                at = (end if moment is None else moment) if at is None else at
                settled = up.where(
                    covers(sf.col("begin"), sf.col("end"), sf.lit(at - options.grace), sf.lit(at))
                )
                present = keep(settled.select("node").distinct())
                edges = keep(measure_overlay.edges_of(overlay, present, options.link_kinds))
                handlers = _distinct_nodes(everyone, received.events, received.nodes)
                known = keep(wishes.join(everyone, "node", "left_semi"))
                received = received._replace(pairs=keep(received.pairs))
                churned = None if self.churn is None else up
                return {
                    **measure_overlay.degree_measures(edges, present),
                    **measure_overlay.links_by_kind(overlay, present),
                    **measure_overlay.topic_measures(edges, present, wishes, options.coverage_k),
                    "hit_ratio": measure_deliveries.hit_ratio(
                        received, known, churned, options.grace, options.window
                    ),
                    **measure_deliveries.delivery_measures(received),
                    "fairness": measure_deliveries.fairness(received, known, handlers),
                    **_control(control, node_seconds(up, options.start, end), options.start, end),
                }
        finally:
            for frame in kept:
                frame.unpersist()

    def _number(self, run: str | None) -> int:
        if run is not None:
            row = (
                self.links.sparkSession.createDataFrame([(run,)], "run string").select(hashed("run")).first()
            )
            assert row is not None
            return int(row[0])
        sources = (self.links, self.publishes, self.control, self.passed.handed_on)
        found = (table.select("run").first() for table in sources)
        return next((int(row[0]) for row in found if row is not None), 0)


@contextmanager
def prepared(
    tables: Mapping[str, DataFrame],
    subscriptions: DataFrame,
    nodes: DataFrame | None,
    churn: DataFrame | None,
    options: MeasureOptions,
) -> Iterator[Prepared]:
    """The pass over the deliveries of all runs of some tables; what it found is kept while the block lasts."""
    wishes = subscriptions.select(hashed("node"), hashed("topic")).distinct().persist()
    with described(subscriptions.sparkSession, "one pass over the deliveries"):
        passed = one_pass(
            tables["publishes"],
            tables["deliveries"],
            options.start,
            options.end,
            options.window,
            hits=churn is not None,
        )
    try:
        yield Prepared(
            tables["links"].select(hashed("run"), "time", hashed("node"), hashed("peer"), "kind"),
            tables["publishes"].select(hashed("run"), "time", hashed("node")),
            tables["control"].select(hashed("run"), "time", hashed("node"), "kind", "messages", "bytes"),
            wishes,
            None if nodes is None else nodes.select(hashed("node")).distinct(),
            None if churn is None else churn.select("time", hashed("node"), "change"),
            passed,
            options,
            _partitions(passed.handed_on, wishes, tables["links"]),
        )
    finally:
        for frame in (wishes, *passed):
            frame.unpersist()


def _partitions(*frames: DataFrame) -> int:
    spark = frames[0].sparkSession
    most = int(spark.conf.get("spark.sql.shuffle.partitions") or 200)
    rows = sum(frame.count() for frame in frames)
    return min(most, max(cores(spark), -(-rows // _ROWS_PER_PARTITION)))


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


def _last_time(tables: Collection[DataFrame], received: float | None, default: float) -> float:
    last = [table.selectExpr("max(time)").first() for table in tables]
    found = [float(row[0]) for row in last if row and row[0] is not None]
    return max([*found, *([] if received is None else [received])], default=default)


def _distinct_nodes(*tables: DataFrame) -> DataFrame:
    names = (table.select("node").distinct() for table in tables)
    return reduce(lambda one, other: one.union(other), names).distinct()


def measure_folder(
    telemetry: Path,
    workload: Path | None,
    session: Callable[[], AbstractContextManager[SparkSession]],
    *,
    run: str | None = None,
    in_memory: bool = True,
    **options: Any,
) -> dict[str, dict[str, float]]:
    """Measures by run of a folder of telemetry: in memory where that is enough (unless told otherwise), else on Spark.

    Without a workload's folder, who wants what is what the nodes have recorded.
    """
    for name in TABLES:
        if not (telemetry / file_name(name)).exists():
            raise BadInput(
                f"{telemetry / file_name(name)}: no such telemetry table; "
                "the run did not finish, or this is not its folder"
            )
    if workload is None:
        from topicweave.pipeline.measure_recorded import measure_recorded

        return measure_recorded(telemetry, session, run=run, in_memory=in_memory, **options)
    wishes, changes = (table_files(workload, name) for name in ("subscriptions", "churn"))
    if not wishes:
        raise BadInput(f"{workload}: no subscriptions.parquet; give the folder of the workload that was run")
    paths = [*(str(telemetry / file_name(name)) for name in TABLES), *map(str, wishes), *map(str, changes)]
    if in_memory and rows_in(paths) <= IN_MEMORY:
        tables = Tables.load(telemetry)
        names = [run] if run is not None else tables.runs()
        churn = pq.read_table([str(file) for file in changes]) if changes else None
        options |= {"churn": churn}
        lists = pq.read_table([str(file) for file in wishes])
        return {name: measure_run(tables, lists, run=name, **options) for name in names}
    with session() as spark:
        frames, lists = read_tables(spark, telemetry), read_files(spark, wishes)
        options |= {"churn": read_files(spark, changes) if changes else None}
        if run is not None:
            return {run: measure_on_spark(frames, lists, run=run, **options)}
        return measure_all(frames, lists, **options)


def write_measures(
    measures: Mapping[str, Mapping[str, float]], out: Path, plan: Mapping[str, Any], overwrite: bool
) -> None:
    """A folder with one table: run, measure, value."""
    rows = [
        {"run": run, "measure": name, "value": float(value)}
        for run, found in sorted(measures.items())
        for name, value in found.items()
    ]
    table = pa.Table.from_pylist(rows, schema=MEASURED)
    with staged(out, plan, overwrite) as staging:
        target = staging.table("measures")
        finish(target, [add_part(target, 0, MEASURED, [table])])
        write_about(staging, plan)


def rows_in(paths: Collection[str]) -> int:
    """From the files' footers."""
    import pyarrow.dataset as ds

    try:
        return sum(ds.dataset(path, format="parquet").count_rows() for path in paths)
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"a table cannot be read ({str(error).splitlines()[0]}); make it anew") from None


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
