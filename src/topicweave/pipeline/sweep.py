"""A sweep: the runs of a grid, their results in one growing table, and means with confidence intervals.

results.parquet/part-RUN.parquet    run, study, system, workload, parameters, settings, seed, measure, value
failures.parquet/part-RUN.parquet   run, study, system, workload, parameters, settings, seed, error

The results themselves are in the store that all commands share; the tables are made of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from topicweave.errors import BadInput
from topicweave.measures.intervals import half_width_of
from topicweave.pipeline.grid import Cell
from topicweave.runs.run import Result
from topicweave.runs.runner import Executor, Progress, run_all
from topicweave.runs.store import whole

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WHO = [
    ("run", pa.string()),
    ("study", pa.string()),
    ("system", pa.string()),
    ("workload", pa.string()),
    ("parameters", pa.string()),
    ("settings", pa.string()),
    ("seed", pa.int64()),
]
RESULTS = pa.schema([*_WHO, ("measure", pa.string()), ("value", pa.float64())])
FAILURES = pa.schema([*_WHO, ("error", pa.string())])


class Swept(NamedTuple):
    runs: int
    failures: int


def sweep(
    cells: Sequence[Cell],
    out: Path,
    store: Path,
    executor: Executor,
    *,
    retry: bool = False,
    progress: Progress | None = None,
) -> Swept:
    """Carry out what has not been carried out yet; with `retry` also what failed before."""
    out = out.absolute()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{out}: cannot make this folder ({error.strerror}); choose another --out") from None
    failed = _failed(out)
    if retry:
        for name in failed:
            _part(out, "failures", name).unlink(missing_ok=True)
        failed = set()
    by_id = {cell.id: cell for cell in cells}
    runs = {name: cell.run for name, cell in by_id.items() if name not in failed}

    def finished(name: str, outcome: Result | str) -> None:
        _write(out, by_id[name], outcome)

    run_all(runs, store, executor, progress, {}, finished)
    return Swept(len(cells), len(_failed(out) & by_id.keys()))


def _failed(out: Path) -> set[str]:
    return {file.stem.removeprefix("part-") for file in (out / "failures.parquet").glob("part-*.parquet")}


def _part(out: Path, table: str, name: str) -> Path:
    return out / f"{table}.parquet" / f"part-{name}.parquet"


def _write(out: Path, cell: Cell, outcome: Result | str) -> None:
    """A run's rows, in a file that gets its name when it is whole."""
    who = dict(zip((name for name, _ in _WHO), cell[:-1], strict=True))
    if isinstance(outcome, str):
        rows, schema, path = [{**who, "error": outcome}], FAILURES, _part(out, "failures", cell.id)
    else:
        numbers = sorted(numbers_in(outcome).items())
        rows = [{**who, "measure": name, "value": value} for name, value in numbers]
        schema, path = RESULTS, _part(out, "results", cell.id)
        if path.exists():
            return
    made = pa.Table.from_pylist(rows, schema=schema)
    whole(path, lambda partial: pq.write_table(made, partial, compression="zstd", store_schema=False))


def numbers_in(result: Mapping[str, Any]) -> dict[str, float]:
    """The measures of a result: its numbers, without the lists that figures need."""
    return {
        name: float(value)
        for name, value in result.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def summary(
    spark: SparkSession, out: Path, cells: Sequence[Cell], measures: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Mean and 95 % confidence interval over replications, for each point of the grid and measure.

    The interval is Student's: half its width is t(0.975, n - 1) s / sqrt(n); nan for a single replication.
    """
    from pyspark.sql import functions as sf

    if not (out / "results.parquet").exists():
        return []
    mine = spark.createDataFrame(pa.table({"run": [cell.id for cell in cells]}))
    results = spark.read.parquet(str((out / "results.parquet").absolute())).join(mine, "run", "left_semi")
    if measures:
        results = results.where(sf.col("measure").isin(*measures))
    points = (
        results.where("not isnan(value)")
        .groupBy("system", "parameters", "settings", "workload", "measure")
        .agg(
            sf.count("value").alias("replications"),
            sf.avg("value").alias("mean"),
            sf.stddev_samp("value").alias("deviation"),
        )
        .orderBy("measure", "workload", "system", "parameters", "settings")
    )
    rows: list[dict[str, Any]] = points.toArrow().to_pylist()  # points of the grid, not runs
    for row in rows:
        count, deviation = row["replications"], row.pop("deviation")
        known = deviation is not None and count > 1
        row["ci95"] = half_width_of(deviation, count) if known else float("nan")
    return rows


def failures(out: Path, most: int = 5) -> list[dict[str, Any]]:
    """The first few failed runs, with their errors."""
    files = sorted((out / "failures.parquet").glob("part-*.parquet"))[:most]
    return [row for file in files for row in pq.read_table(file).to_pylist()]
