"""Raw traces into tables: parsed on Spark, wrong lines set aside, everything checked before anything has a name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from topicweave.data.files import fingerprint, source_files
from topicweave.data.formats import Format, LineOptions, find_format
from topicweave.data.lines import Wrong
from topicweave.data.places import Place
from topicweave.data.reading import refuse_too_many
from topicweave.errors import BadInput
from topicweave.pipeline import tables_of
from topicweave.pipeline.lines import COUNT, REJECT, ROW, UNREADABLE, parsed_lines
from topicweave.pipeline.opml import parsed_opml
from topicweave.pipeline.parquet_input import parsed_parquet
from topicweave.pipeline.parts import Target, read, spill, write_table
from topicweave.pipeline.staging import Staging, staged, write_about

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REJECTS = pa.schema(
    [("file", pa.string()), ("line", pa.int64()), ("reason", pa.string()), ("text", pa.string())]
)


TABLES: dict[str, Callable[[DataFrame, Staging, LineOptions], dict[str, int]]] = {
    "edges": tables_of.users,
    "adjacency": tables_of.users,
    "pairs": tables_of.pairs,
    "edits": tables_of.edits,
    "machine-events": tables_of.machine_events,
    "availability": tables_of.availability,
    "rtt": tables_of.rtt,
    "coordinates": tables_of.coordinates,
    "as-graph": tables_of.as_graph,
    "opml": tables_of.pairs,
}
"""Per format (the rows, where to write, options): writes the tables, gives what it counted."""


class Imported(dict[str, int]):
    """What was counted, by name; `lines` and `rejects` first."""


def import_trace(
    spark: SparkSession,
    format_name: str,
    path: Path,
    out: Path,
    options: LineOptions | None = None,
    *,
    overwrite: bool = False,
) -> Imported:
    """Read a trace into a folder of tables."""
    options = options or LineOptions()
    wanted = find_format(format_name)
    wanted.refuse_unused(options)
    if not 0 <= options.max_rejects <= 1:
        raise BadInput(f"share of rejects {options.max_rejects}: out of range; choose one from 0 to 1")
    files = source_files(path)
    # A hash: there may be a million of them.
    mark = hashlib.sha256(json.dumps(fingerprint(files)).encode()).hexdigest()
    plan = {
        "command": "workload import",
        "format": format_name,
        "options": asdict(options),
        "files": mark,
    }
    with staged(out, plan, overwrite, {str(path): mark}) as staging:
        parsed = _parsed(spark, wanted, files, path, options, staging)
        rows = parsed.where(f"kind = {ROW}")
        rejects = parsed.where(f"kind = {REJECT}").select(*REJECTS.names)
        counts = _counted(parsed, path)
        at_first = counts["rejects"]
        _refuse_too_many(rejects, counts, options.max_rejects, wanted, path)
        found = TABLES[wanted.name](rows, staging, options)
        rejects = _with_later(spark, rejects, staging.scratch("more_rejects"))
        counts["rejects"] = write_table(
            rejects, staging.table("rejects"), REJECTS, "file", ("file", "line"), counts["lines"] + at_first
        )
        if counts["rejects"] > at_first:
            # Lines found wrong only beside others were counted as good ones at first.
            counts["lines"] -= counts["rejects"] - at_first
            _refuse_too_many(rejects, counts, options.max_rejects, wanted, path)
        counts.update(found)
        write_about(
            staging,
            {
                "command": "workload import",
                "format": format_name,
                "files": [file.name for file in files[:20]],
                "options": asdict(options),
                "counts": dict(counts),
            },
        )
    return counts


def _parsed(
    spark: SparkSession,
    wanted: Format,
    files: list[Place],
    path: Path,
    options: LineOptions,
    staging: Staging,
) -> DataFrame:
    """Every line read once, and kept on disk between the stages."""
    scratch = staging.scratch("parsed")
    if scratch.exists():
        return read(spark, scratch)
    if wanted.name == "opml":
        lines = parsed_opml(spark, [Path(str(file)) for file in files], path.absolute())
    elif all(file.name.endswith(".parquet") for file in files):
        lines = parsed_parquet(spark, files, wanted, options)
    else:
        lines = parsed_lines(spark, files, wanted.parse(options, files[0]), wanted.columns)
    return spill(lines, scratch)


def _counted(parsed: DataFrame, path: Path) -> Imported:
    """Good lines and wrong ones, after one look at all that was read."""
    from pyspark.sql import functions as sf

    kind = sf.col("kind")
    row = parsed.agg(
        sf.min(sf.when(kind == UNREADABLE, sf.struct("file", "reason"))).alias("unreadable"),
        sf.sum(sf.when(kind == COUNT, sf.col("line"))).alias("lines"),
        sf.count_if(kind == REJECT).alias("rejects"),
    ).first()
    assert row is not None
    if row["unreadable"] is not None:
        raise BadInput(row["unreadable"]["reason"])
    counts = Imported(lines=row["lines"] or 0, rejects=row["rejects"])
    if not counts["lines"] + counts["rejects"]:
        raise BadInput(f"{path}: nothing in it but blank lines and comments; give a file with data")
    return counts


def _with_later(spark: SparkSession, rejects: DataFrame, later: Target) -> DataFrame:
    """Lines that are wrong only beside others: what a format's `tables` set aside."""
    if not later.exists():
        return rejects
    return rejects.unionByName(read(spark, later).select(*REJECTS.names))


def _refuse_too_many(rejects: DataFrame, counts: Imported, share: float, wanted: Format, path: Path) -> None:
    wrong, every = counts["rejects"], counts["lines"] + counts["rejects"]
    if wrong > share * every:
        first = rejects.orderBy("file", "line").select(*Wrong._fields).first()
        assert first is not None
        refuse_too_many(path, wanted, wrong, every, share, Wrong(*first))
