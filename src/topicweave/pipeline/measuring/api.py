"""Measuring from Python and for the command line: DataFrames or folders in, measures out.

Names, definitions and options are those of `topicweave.measures.measure_run`; the tests hold the two to each
other. What fits in memory is measured there, without Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from topicweave.data.places import Place
from topicweave.errors import BadInput
from topicweave.measures.summary import measure_run, scope_of
from topicweave.pipeline.parts import add_part, finish
from topicweave.pipeline.staging import staged, table_files, write_about
from topicweave.telemetry.schema import SCHEMAS, file_name
from topicweave.telemetry.tables import Tables, read_parts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

IN_MEMORY = 6_000_000
"""Rows, those of the workload included, up to which nothing is gained by Spark: a quarter of its processor
time, 300 bytes each.
"""
MEASURED = pa.schema([("run", pa.string()), ("measure", pa.string()), ("value", pa.float64())])


def measure(
    tables: Mapping[str, DataFrame],
    subscriptions: DataFrame,
    *,
    run: str | None = None,
    nodes: DataFrame | None = None,
    churn: DataFrame | None = None,
    **scope: Any,
) -> DataFrame:
    """DataFrames in, a DataFrame (run, measure, value) out: all measures of every run, or of one.

    tables          links, publishes, deliveries and control, with the columns of docs/tables.md. A column
                    `order`, if there is one, says which of two simultaneous rows comes first; else partitions
                    and their rows are in order.
    subscriptions   (node, topic)
    nodes, churn, scope
                    as in `topicweave.measures.measure_run`
    """
    found = measure_frames(tables, subscriptions, run=run, nodes=nodes, churn=churn, **scope)
    return subscriptions.sparkSession.createDataFrame(as_table(found))


def measure_frames(
    tables: Mapping[str, DataFrame],
    subscriptions: DataFrame,
    *,
    run: str | None = None,
    nodes: DataFrame | None = None,
    churn: DataFrame | None = None,
    **scope: Any,
) -> dict[str, dict[str, float]]:
    """The same by run, in Python."""
    from topicweave.pipeline.measuring.spark import measured, of_frames

    for name, schema in SCHEMAS.items():
        for column in schema.names:
            if column not in tables[name].columns:
                raise BadInput(f"{name}: needs one column {column!r}, has {', '.join(tables[name].columns)}")
    frames = {name: tables[name] for name in SCHEMAS} | {"subscriptions": subscriptions}
    frames |= {name: frame for name, frame in (("nodes", nodes), ("churn", churn)) if frame is not None}
    return measured(subscriptions.sparkSession, of_frames(frames), run, scope_of(**scope))


def measure_one(
    tables: Mapping[str, DataFrame], subscriptions: DataFrame, **options: Any
) -> dict[str, float]:
    """Of DataFrames that hold one run, or of the one that is named."""
    from topicweave.pipeline.measuring.spark import only_run

    return only_run(measure_frames(tables, subscriptions, **options))


def measure_folder(
    telemetry: Path,
    workload: Path | None,
    session: Callable[[], AbstractContextManager[SparkSession]],
    *,
    run: str | None = None,
    in_memory: bool = True,
    **scope: Any,
) -> dict[str, dict[str, float]]:
    """Measures by run of a folder of telemetry: in memory where that is enough (unless told otherwise), else on Spark.

    Without a workload's folder, who wants what is what the nodes have recorded.
    """
    files = {name: telemetry_files(telemetry, name) for name in SCHEMAS}
    if workload is None:
        from topicweave.pipeline.measuring.recorded import measure_recorded

        return measure_recorded(telemetry, files, session, run=run, in_memory=in_memory, **scope)
    files |= workload_files(workload)
    if in_memory and rows_in(files) <= IN_MEMORY:
        tables = loaded(telemetry, files)
        wishes, churn = (_together(files.get(name)) for name in ("subscriptions", "churn"))
        chosen = [run] if run is not None else tables.runs()
        return {name: measure_run(tables, wishes, run=name, churn=churn, **scope) for name in chosen}
    from topicweave.pipeline.measuring.sources import chunks_of
    from topicweave.pipeline.measuring.spark import measured, of_chunks

    with session() as spark:
        return measured(spark, of_chunks(spark, chunks_of(files)), run, scope_of(**scope))


def telemetry_files(telemetry: Path, name: str) -> list[Place]:
    """The files of a table, in the order of their names, as every reader of ours takes them."""
    path = Place(telemetry) / file_name(name)
    if not path.exists():
        raise BadInput(f"{path}: no such telemetry table; the run did not finish, or this is not its folder")
    return sorted(table_files(telemetry, name), key=str)


def loaded(telemetry: Path, files: Mapping[str, Sequence[Place]]) -> Tables:
    return Tables(**{name: read_one(telemetry, name, files[name], SCHEMAS[name]) for name in SCHEMAS})


def read_one(telemetry: Path, name: str, files: Sequence[Place], schema: pa.Schema) -> pa.Table:
    """A table of a folder of telemetry, wherever that is."""
    system = files[0].opened()[0] if files else None
    return read_parts([file.opened()[1] for file in files], schema, telemetry / file_name(name), system)


def workload_files(workload: Path) -> dict[str, list[Place]]:
    if workload.is_file():
        raise BadInput(f"{workload}: a file; give the folder of the workload that was run")
    found = {name: table_files(workload, name) for name in ("subscriptions", "churn")}
    if not found["subscriptions"]:
        raise BadInput(f"{workload}: no subscriptions.parquet; give the folder of the workload that was run")
    return {name: files for name, files in found.items() if files}


def _together(files: Sequence[Place] | None) -> pa.Table | None:
    if files is None:
        return None
    return pq.read_table([file.opened()[1] for file in files], filesystem=files[0].opened()[0])


def rows_in(files: Mapping[str, Sequence[Place]]) -> int:
    """From the files' footers."""
    total = 0
    for file in (file for of_table in files.values() for file in of_table):
        system, path = file.opened()
        try:
            total += pq.read_metadata(path, filesystem=system).num_rows
        except (pa.ArrowException, OSError) as error:
            raise BadInput(f"{file}: cannot be read ({str(error).splitlines()[0]}); make it anew") from None
        if total > IN_MEMORY:
            break
    return total


def as_table(measures: Mapping[str, Mapping[str, float]]) -> pa.Table:
    rows = [
        {"run": run, "measure": name, "value": float(value)}
        for run, found in sorted(measures.items())
        for name, value in found.items()
    ]
    return pa.Table.from_pylist(rows, schema=MEASURED)


def write_measures(
    measures: Mapping[str, Mapping[str, float]],
    out: Path,
    plan: Mapping[str, Any],
    overwrite: bool,
    sources: Mapping[str, str],
) -> None:
    """A folder with one table: run, measure, value. `sources` are the marks of the folders it was measured from."""
    with staged(out, plan, overwrite, sources) as staging:
        target = staging.table("measures")
        finish(target, [add_part(target, 0, MEASURED, [as_table(measures)])])
        write_about(staging, plan)
