"""Measures over a folder that nodes keep adding telemetry to: Structured Streaming, checkpointed.

FOLDER is one that live nodes write (`FOLDER/deliveries.parquet/NODE-000001.parquet`, …), or one that holds finished
recordings, each in a folder of its own (`FOLDER/RUN/deliveries.parquet`); more may come at any time.

Time is cut into windows of one length. A window is measured when nothing for it can come any more: when the
slowest of its run's living nodes is `lateness` beyond the window's end and the `wait` that its events are
given to arrive. It is measured as `topicweave measure` would, over the rows of the window: the events
published in it, their receptions up to `wait` before and after it (clocks differ), its control traffic, its
last snapshot of the overlay. A row that comes when its window has been measured is late; one of a time that
most nodes' clocks are far from is of the future; both, and rows that lack a cell or a time, go to
`OUT/set_aside.parquet` with the reason. Each run has a watermark of its own, because it has clocks of its
own. Who wants what is told by a workload's folder, or by the nodes themselves (`FOLDER/interests.parquet`).

What becomes of a micro-batch of new files:

1. its rows are counted, landed in `OUT/landed/batch=N/` by table, run and window, and counted there again;
2. windows that are due are measured from what has landed, into `OUT/windows.parquet/part-N.parquet`;
3. `OUT/progress/N.json` says how far it has come: from then on the batch is done;
4. what is needed no more is deleted.

Spark's checkpoint remembers which files make up batch N. Killed anywhere, the batch is done again: before
step 3 it writes the same files over the old ones, after step 3 there is nothing left to do. So no row is
lost, and none counts twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from operator import and_
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from topicweave.data.places import Place
from topicweave.errors import BadInput, TopicweaveError
from topicweave.model.committed import ABOUT
from topicweave.pipeline.packing import code_mark
from topicweave.pipeline.parts import look_at_all, write_numbered, write_part
from topicweave.pipeline.staging import made_now, mark_of, only_one
from topicweave.pipeline.stream_landing import Group, Landing
from topicweave.pipeline.stream_progress import LISTS, Progress, Span, Windows
from topicweave.pipeline.stream_windows import WorkloadTables, measured_all
from topicweave.runs.store import whole
from topicweave.telemetry.schema import RECORDED, file_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

MEASURED = pa.schema(
    [
        ("run", pa.string()),
        ("start", pa.float64()),
        ("end", pa.float64()),
        ("measure", pa.string()),
        ("value", pa.float64()),
    ]
)
_TYPES = {pa.int64(): "long", pa.int32(): "int", pa.float64(): "double", pa.bool_(): "boolean"}
_KEPT = 3
"""Notes of progress that are kept; one would do."""

Told = Callable[[Span, dict[str, float]], None]


class Stream:
    """Batches of new rows, one after the other."""

    def __init__(
        self,
        spark: SparkSession,
        out: Path,
        windows: Windows,
        workload: WorkloadTables | None,
        told: Told | None = None,
    ) -> None:
        self._spark = spark
        self._out = out
        self._windows = windows
        self._workload = workload
        self._told = told or (lambda _span, _measures: None)
        self.landing = Landing(Place(out))

    def batch(self, rows: DataFrame, number: int) -> None:
        """Take up the rows of a batch, and measure what is due then."""
        if self._note(number).exists():  # killed between step 3 and the checkpoint's own note
            self._tidy(self.progress(number))
            return
        before = self.progress(number - 1)
        # One per run, node and window.
        counted = self._windows.counted(rows).toArrow().to_pylist()
        after = before.with_rows(counted, self._windows)
        self._land(rows, number, after, counted)
        if aside := after.left_out() - before.left_out():
            self._set_aside(rows, number, after, aside)
        self._measure(number, f"part-{number:08d}.parquet", after, after.first_waiting(self._windows))

    def finish(self) -> None:
        """Nothing more will come: measure the windows that are still waiting."""
        last = self.last()
        if last is not None:
            progress = self.progress(last)
            self._measure(last, f"part-{last:08d}.rest.parquet", progress, progress.none_waiting())

    def last(self) -> int | None:
        """The last batch that was done."""
        return max((int(file.stem) for file in (self._out / "progress").glob("*.json")), default=None)

    def progress(self, number: int) -> Progress:
        """How far it had come after a batch."""
        if number < 0:
            return Progress()
        try:
            return Progress.decoded(self._note(number).read_bytes())
        except (OSError, ValueError) as error:
            raise BadInput(
                f"{self._note(number)}: cannot be read ({error}); begin anew in another --out"
            ) from None

    def _note(self, number: int) -> Path:
        return self._out / "progress" / f"{number:08d}.json"

    def _placed(self, rows: DataFrame, progress: Progress) -> DataFrame:
        """With `place`, and the run's `number` and windows that may take rows."""
        from pyspark.sql import functions as sf

        runs = progress.runs
        numbered = self._spark.createDataFrame(
            pa.table(
                {
                    "run": pa.array(list(runs), pa.string()),
                    "number": pa.array([run.number for run in runs.values()], pa.int32()),
                    "first_waiting": pa.array([run.first_waiting for run in runs.values()], pa.int64()),
                    "last_possible": pa.array([run.last_possible for run in runs.values()], pa.int64()),
                }
            )
        )
        placed = rows.select("*", self._windows.place().alias("place"))
        return placed.join(sf.broadcast(numbered), "run", "left")

    def _land(self, rows: DataFrame, number: int, progress: Progress, counted: list[dict[str, Any]]) -> None:
        expected: dict[Group, tuple[int, int]] = {}
        for row in counted:
            if row["place"] is None or row["place"] > (run := progress.runs[row["run"]]).last_possible:
                continue
            group = Group(run.number, row["place"])
            many, lists = expected.get(group, (0, 0))
            in_time = row["place"] >= run.first_waiting
            expected[group] = (many + (row["rows"] if in_time else 0), lists + row["lists"])
        fitting = self._placed(rows, progress).where(
            f"place <= last_possible and (place >= first_waiting or table = '{LISTS}')"
        )
        landing = {group: count for group, count in expected.items() if any(count)}
        self.landing.land(fitting.drop("first_waiting", "last_possible", "whole"), number, landing)

    def _set_aside(self, rows: DataFrame, number: int, progress: Progress, expected: int) -> None:
        """Keep the rows that no window takes, with the reason, for whoever wants to know."""
        reason = (
            f"case when place is null then 'lacks a cell or a time' when place < first_waiting and table != '{LISTS}' "
            "then 'late' when place > last_possible then 'of the future' end as reason"
        )
        kept = self._placed(rows, progress).selectExpr(f"{number} as part", "*", reason)
        kept = kept.where("reason is not null").repartition(1).sortWithinPartitions("table", "file", "order")
        target = self.landing.target(Place(self._out / "set_aside.parquet"))
        kept = kept.drop("place", "number", "first_waiting", "last_possible", "whole")
        parts = write_numbered(kept, target)
        look_at_all(target, parts)
        if (found := sum(part.rows for part in parts)) != expected:
            raise TopicweaveError(
                f"batch {number}: {expected:,} rows were counted that no window takes, {found:,} are set aside; "
                "a file changed meanwhile, run the same command again"
            )

    def _measure(self, number: int, part: str, progress: Progress, until: dict[str, int]) -> None:
        spans = progress.due(until, self._windows)
        found = measured_all(self._spark, self.landing, spans, self._windows, self._workload)
        rows = [
            {"run": span.run, "start": span.start, "end": span.end, "measure": name, "value": float(value)}
            for span, measures in zip(spans, found, strict=True)
            for name, value in measures.items()
        ]
        if rows:
            table = pa.Table.from_pylist(rows, schema=MEASURED)
            write_part(self._out / "windows.parquet" / part, MEASURED, [table])
        done = progress.moved_on(until, self._windows)
        whole(self._note(number), lambda partial: partial.write_bytes(done.encoded()))
        for span, measures in zip(spans, found, strict=True):
            self._told(span, measures)
        self._tidy(done)

    def _tidy(self, progress: Progress) -> None:
        """Delete what no window to come needs."""
        runs = progress.runs.values()
        self.landing.tidy(
            {run.number: run.first_waiting - self._windows.reach for run in runs},
            {run.number for run in runs if run.is_over},
        )
        for note in sorted((self._out / "progress").glob("*.json"))[:-_KEPT]:
            note.unlink()


@contextmanager
def streaming(
    spark: SparkSession,
    folder: Path,
    workload: Path | None,
    out: Path,
    *,
    window: float = 60.0,
    wait: float = 60.0,
    lateness: float = 120.0,
    grace: float = 0.0,
    until_idle: bool = False,
    told: Told | None = None,
) -> Iterator[tuple[StreamingQuery, Stream]]:
    """A running query over `folder`; it is stopped when the block ends. With `until_idle` it ends when all is read.

    Without a `workload`, who wants what is what the nodes have recorded.
    """
    windows = Windows(window, wait, lateness, grace)
    windows.check()
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder; give the one that nodes write telemetry to")
    if sign := re.search(r"[\\*?\[\]{}]", str(folder.absolute())):
        raise BadInput(f"{folder}: its path holds {sign[0]!r}, which Spark takes for a pattern; rename it")
    wanted = None if workload is None else WorkloadTables.of(workload)
    out = out.absolute()
    try:
        (out / "progress").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{out}: cannot make this folder ({error.strerror}); choose another --out") from None
    with only_one(out):
        lists = None if workload is None else str(workload.absolute())
        plan = {"folder": str(folder.absolute()), "workload": lists, **windows._asdict(), "code": code_mark()}
        _same_plan(out, plan)
        parents = {} if workload is None else {str(workload): mark_of(workload)}
        about = {"command": "stream", "plan": plan, "made": made_now(parents)}
        (Place(out) / ABOUT).put((json.dumps(about, indent=2) + "\n").encode())
        stream = Stream(spark, out, windows, wanted, told)
        if stream.last() is not None and not (out / "checkpoint").is_dir():
            raise BadInput(f"{out}: its checkpoint is gone; begin anew in another --out")
        writer = (
            _new_rows(spark, folder.absolute())
            .writeStream.queryName(f"topicweave stream {folder.name}")
            .option("checkpointLocation", str(out / "checkpoint"))
            .foreachBatch(stream.batch)
        )
        trigger: dict[str, Any] = {"availableNow": True} if until_idle else {"processingTime": "2 seconds"}
        query = writer.trigger(**trigger).start()
        try:
            yield query, stream
        finally:
            query.stop()


def _same_plan(out: Path, plan: dict[str, Any]) -> None:
    """What has been measured was measured in these windows by this code; others need another folder."""
    note = out / "plan.json"
    if not note.exists():
        whole(note, lambda partial: partial.write_text(json.dumps(plan, indent=2)))
        return
    try:
        found = json.loads(note.read_text())
    except ValueError:
        raise BadInput(f"{note}: cannot be read; begin anew in another --out") from None
    for name, value in plan.items():
        if found.get(name) != value:
            raise BadInput(
                f"{out}: was begun with {name} {found.get(name)!r}, not {value!r}; "
                "give the same again, or another --out"
            )


def _new_rows(spark: SparkSession, folder: Path) -> DataFrame:
    """The rows of all tables as they come: the columns of all, null where a table has none, and where they stood."""
    from pyspark.sql import functions as sf

    columns = {
        field.name: _TYPES.get(field.type, "string") for schema in RECORDED.values() for field in schema
    }
    frames = []
    for table, schema in RECORDED.items():
        mine = ", ".join(f"{field.name} {columns[field.name]}" for field in schema)
        source = spark.readStream.schema(mine).option("maxFilesPerTrigger", 10_000)
        # Nothing is read of hidden folders: whoever moves a recording into place shows it when it is whole.
        rows = source.parquet(f"{folder}/{{{file_name(table)},[^._]*/{file_name(table)}}}")
        cells = [
            (sf.col(name) if name in schema.names else sf.lit(None).cast(kind)).alias(name)
            for name, kind in columns.items()
        ]
        frames.append(
            rows.select(
                sf.lit(table).alias("table"),
                *cells,
                reduce(and_, (sf.col(name).isNotNull() for name in schema.names)).alias("whole"),
                sf.col("_metadata.file_path").alias("file"),
                sf.col("_metadata.row_index").alias("order"),
            )
        )
    return reduce(lambda one, other: one.unionByName(other), frames)
