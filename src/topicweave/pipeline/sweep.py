"""A sweep: the runs of a grid on Spark, their results in one growing table, and means with confidence intervals.

results.parquet/part-RUN.parquet    run, study, system, workload, parameters, seed, measure, value
failures.parquet/part-RUN.parquet   run, study, system, workload, parameters, seed, error
runs/RUN.done                       how long the run took; written last
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from topicweave.errors import BadInput, TopicweaveError
from topicweave.measures.intervals import half_width_of
from topicweave.pipeline.grid import Run
from topicweave.pipeline.runs import Keep, Progress, Task, carry_out, numbers_in, whole
from topicweave.runs.experiment import Experiment, Result
from topicweave.runs.runner import ResultStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WHO = [
    ("run", pa.string()),
    ("study", pa.string()),
    ("system", pa.string()),
    ("workload", pa.string()),
    ("parameters", pa.string()),
    ("seed", pa.int64()),
]
RESULTS = pa.schema([*_WHO, ("measure", pa.string()), ("value", pa.float64())])
FAILURES = pa.schema([*_WHO, ("error", pa.string())])


class Swept(NamedTuple):
    runs: int
    failures: int


def sweep(
    spark: SparkSession,
    runs: Sequence[Run],
    out: Path,
    *,
    retry: bool = False,
    progress: Progress | None = None,
) -> Swept:
    """Carry out what has not been carried out yet; with `retry` also what failed before."""
    out = out.absolute()
    try:
        (out / "runs").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{out}: cannot make this folder ({error.strerror}); choose another --out") from None
    failed = _failed(out)
    if retry:
        for name in failed:
            (out / "runs" / f"{name}.done").unlink(missing_ok=True)
            (out / "failures.parquet" / f"part-{name}.parquet").unlink(missing_ok=True)
    tasks = [
        Task(
            str(out / "runs" / f"{run.id}.done"),
            f"{run.system} on {run.workload}, seed {run.seed}",
            run.experiment,
        )
        for run in runs
    ]
    about = {run.id: run[:-1] for run in runs}
    carry_out(spark, tasks, _keeper(str(out), about), progress)
    return Swept(len(runs), len(_failed(out) & set(about)))


def _failed(out: Path) -> set[str]:
    return {file.stem.removeprefix("part-") for file in (out / "failures.parquet").glob("part-*.parquet")}


def _keeper(out: str, about: dict[str, tuple[Any, ...]]) -> Keep:
    def keep(path: Path, result: Result | None, error: str, seconds: float) -> None:
        who = dict(zip((name for name, _ in _WHO), about[path.stem], strict=True))
        if result is None:
            rows, schema, table = [{**who, "error": error}], FAILURES, "failures"
        else:
            rows = [
                {**who, "measure": name, "value": value} for name, value in sorted(numbers_in(result).items())
            ]
            schema, table = RESULTS, "results"
        made = pa.Table.from_pylist(rows, schema=schema)
        part = Path(out) / f"{table}.parquet" / f"part-{path.stem}.parquet"
        whole(part, lambda partial: pq.write_table(made, partial, compression="zstd", store_schema=False))
        whole(path, lambda partial: partial.write_text(json.dumps({"seconds": seconds, "error": error})))

    return keep


def summary(
    spark: SparkSession, out: Path, runs: Sequence[Run], measures: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Mean and 95 % confidence interval over replications, for each point of the grid and measure.

    The interval is Student's: half its width is t(0.975, n - 1) s / sqrt(n); nan for a single replication.
    """
    from pyspark.sql import functions as sf

    if not (out / "results.parquet").exists():
        return []
    mine = spark.createDataFrame(pa.table({"run": [run.id for run in runs]}))
    results = spark.read.parquet(str((out / "results.parquet").absolute())).join(mine, "run", "left_semi")
    if measures:
        results = results.where(sf.col("measure").isin(*measures))
    points = (
        results.where("not isnan(value)")
        .groupBy("system", "parameters", "workload", "measure")
        .agg(
            sf.count("value").alias("replications"),
            sf.avg("value").alias("mean"),
            sf.stddev_samp("value").alias("deviation"),
        )
        .orderBy("measure", "workload", "system", "parameters")
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


def run_all_on_spark(
    spark: SparkSession,
    experiments: dict[Any, Experiment],
    store_folder: Path,
    progress: Progress | None = None,
    failures: dict[Any, str] | None = None,
) -> dict[Any, Result]:
    """`topicweave.runs.run_all`, with one Spark task per experiment and the same store of results."""
    store = ResultStore(store_folder.absolute())
    tasks = {
        str(store.path(experiment)): Task(str(store.path(experiment)), experiment.system, experiment)
        for experiment in experiments.values()
    }

    encoded = {path: msgspec.json.encode(task.experiment) for path, task in tasks.items()}

    def keep(path: Path, result: Result | None, error: str, _seconds: float) -> None:
        if result is None:
            # Not under the result's own name: the next attempt runs it again.
            whole(path.with_suffix(".failed"), lambda partial: partial.write_text(error))
            return
        plain = {"experiment": msgspec.json.decode(encoded[str(path)]), "result": result}
        whole(path, lambda partial: partial.write_text(json.dumps(plain)))

    carry_out(spark, list(tasks.values()), keep, progress)
    results = {}
    for label, experiment in experiments.items():
        result = store.get(experiment)
        if result is None and failures is not None:
            failures[label] = _why(store.path(experiment))
            continue
        if result is None:
            raise TopicweaveError(
                f"{experiment.system}: {_why(store.path(experiment))}; run the same command again"
            )
        results[label] = result
    return results


def _why(path: Path) -> str:
    try:
        return f"a run failed with {path.with_suffix('.failed').read_text()}"
    except OSError:
        return "a run left no result"
