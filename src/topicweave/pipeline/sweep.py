"""A sweep: the runs of a grid, their results in one growing table, and means with confidence intervals.

results.parquet/part-RUN.parquet    run, study, system, workload, parameters, settings, seed, measure, value
failures.parquet/part-RUN.parquet   run, study, system, workload, parameters, settings, seed, error

The results themselves are in the store that all commands share; the tables are made of them. They hold the runs of the
grid, as today's code carries them out, and no others; about.json says which parts these are, and what made them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from topicweave.data.places import Place
from topicweave.errors import BadInput, UnknownName, without_secrets
from topicweave.measures.intervals import half_width_of
from topicweave.model.committed import ABOUT
from topicweave.pipeline.grid import Cell
from topicweave.pipeline.parts import read_files
from topicweave.pipeline.staging import made_now, table_files
from topicweave.runs.recorded import Recording, manifest
from topicweave.runs.run import Result
from topicweave.runs.runner import Executor, Progress, run_all
from topicweave.runs.sources import StoredWorkload

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
    dropped: int = 0
    """Runs of another grid or of other code that were in the tables; their results stay in the store."""


def sweep(
    cells: Sequence[Cell],
    out: Path,
    store: Path,
    executor: Executor,
    *,
    retry: bool = False,
    progress: Progress | None = None,
    telemetry: Path | None = None,
) -> Swept:
    """Carry out what has not been carried out yet; with `retry` also what failed before.

    `telemetry` is a folder where the runs leave their tables, under the names that they have in the results.
    """
    if telemetry is not None and Place(telemetry).local is None:
        raise BadInput(
            f"--telemetry {telemetry}: runs leave their tables in folders only; give one that all machines see"
        )
    place = Place(out)
    try:
        if place.local is not None:
            place.local.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{out}: cannot make this folder ({error.strerror}); choose another --out") from None
    for file in _FILES:
        (place / file).drop_begun()
    by_id = {cell.id: cell for cell in cells}
    dropped = _drop_others(place, by_id.keys())
    failed = _failed(place)
    if retry:
        for name in failed:
            _part(place, "failures", name).delete()
        failed = set()
    runs = {name: cell.run for name, cell in by_id.items() if name not in failed}
    there = _names(place, "results.parquet")

    def finished(name: str, outcome: Result | str) -> None:
        if name not in there:
            _write(place, by_id[name], outcome)

    record = None if telemetry is None else Recording(telemetry, lambda label, _mark: str(label))
    run_all(runs, store, executor, progress, {}, finished, record)
    parents = _parents(cells)
    _write_about(place, "sweep", parents, {file: _manifest(place / file) for file in _FILES})
    if telemetry is not None:
        write_about_recorded(telemetry, "sweep --telemetry", parents)
    return Swept(len(cells), len(_failed(place)), dropped)


_FILES = ("results.parquet", "failures.parquet")


def _names(out: Place, table: str) -> set[str]:
    """The runs that a table holds."""
    parts = (name for name in (out / table).names() if name.startswith("part-"))
    return {name.removeprefix("part-").removesuffix(".parquet") for name in parts}


def _drop_others(out: Place, names: Collection[str]) -> int:
    """Take out of the tables what is not of this grid and code: a run's name depends on both."""
    others = [(table, name) for table in _FILES for name in _names(out, table) - set(names)]
    for table, name in others:
        _part(out, table.removesuffix(".parquet"), name).delete()
    return len(others)


def _parents(cells: Sequence[Cell]) -> dict[str, str]:
    """The folders of workloads, with what names their contents."""
    sources = (getattr(cell.run, "workload", None) for cell in cells)
    return {source.folder: source.fingerprint for source in sources if isinstance(source, StoredWorkload)}


def _manifest(table: Place) -> dict[str, Any]:
    def part(name: str) -> dict[str, Any]:
        content = (table / name).read() or b""
        rows = pq.read_metadata(pa.BufferReader(content)).num_rows
        return {
            "name": name,
            "rows": rows,
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }

    with ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(part, (name for name in table.names() if name.startswith("part-"))))
    return {"rows": sum(one["rows"] for one in parts), "parts": parts}


def _write_about(folder: Place, command: str, parents: Mapping[str, str], tables: Mapping[str, Any]) -> None:
    about = {"command": command, "made": made_now(parents), "tables": tables}
    text = without_secrets(json.dumps(about, indent=2, ensure_ascii=False)) + "\n"
    (folder / ABOUT).put(text.encode())


def write_about_recorded(folder: Path, command: str, parents: Mapping[str, str]) -> None:
    """Say which parts of a folder of recorded runs count, and what made them."""
    _write_about(Place(folder), command, parents, manifest(folder))


def _failed(out: Place) -> set[str]:
    return _names(out, "failures.parquet")


def _part(out: Place, table: str, name: str) -> Place:
    return out / f"{table}.parquet" / f"part-{name}.parquet"


def _write(out: Place, cell: Cell, outcome: Result | str) -> None:
    """A run's rows, in a file that gets its name when it is whole."""
    who = dict(zip((name for name, _ in _WHO), cell[:-1], strict=True))
    if isinstance(outcome, str):
        rows, schema, path = [{**who, "error": outcome}], FAILURES, _part(out, "failures", cell.id)
    else:
        numbers = sorted(numbers_in(outcome).items())
        rows = [{**who, "measure": name, "value": value} for name, value in numbers]
        schema, path = RESULTS, _part(out, "results", cell.id)
    made = pa.Table.from_pylist(rows, schema=schema)
    with path.filling() as partial:
        pq.write_table(made, partial, compression="zstd", store_schema=False)


def numbers_in(result: Mapping[str, Any]) -> dict[str, float]:
    """The measures of a result: its numbers, without the lists that figures need."""
    return {
        name: float(value)
        for name, value in result.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def summary(
    spark: SparkSession,
    out: Path,
    cells: Sequence[Cell],
    measures: Sequence[str] = (),
    *,
    all_of_them: bool = True,
) -> list[dict[str, Any]]:
    """Mean and 95 % confidence interval over replications, for each point of the grid and measure.

    Raises `UnknownName` about a measure that no run has, unless `all_of_them` need not be there.
    The interval is Student's: half its width is t(0.975, n - 1) s / sqrt(n); nan for a single replication.
    """
    from pyspark.sql import functions as sf

    files = table_files(out, "results")
    if not files:
        return []
    mine = spark.createDataFrame(pa.table({"run": [cell.id for cell in cells]}))
    results = read_files(spark, files).join(mine, "run", "left_semi")
    if measures:
        there = {row["measure"] for row in results.select("measure").distinct().collect()}  # A few dozen.
        for measure in sorted({*measures} - there) if all_of_them else ():
            raise UnknownName("measure", measure, sorted(there))
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
    table = Place(out) / "failures.parquet"
    contents = [(table / name).read() or b"" for name in table.names()[:most]]
    return [row for content in contents for row in pq.read_table(pa.BufferReader(content)).to_pylist()]
