"""Raw traces into tables: parsed on Spark, wrong lines set aside, everything checked before anything has a name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from topicweave.errors import BadInput, UnknownName
from topicweave.pipeline import formats, tables_of
from topicweave.pipeline.formats import WHITESPACE
from topicweave.pipeline.lines import (
    COUNT,
    REJECT,
    ROW,
    UNREADABLE,
    Parse,
    fingerprint,
    first_line,
    parsed_lines,
    source_files,
)
from topicweave.pipeline.opml import parsed_opml
from topicweave.pipeline.parts import write_table
from topicweave.pipeline.staging import Staging, staged, write_about

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Direction = Literal["follows", "followed", "both"]

REJECTS = pa.schema(
    [("file", pa.string()), ("line", pa.int64()), ("reason", pa.string()), ("text", pa.string())]
)


@dataclass(frozen=True)
class Options:
    """How to read the lines; what is None is the format's own."""

    delimiter: str | None = None
    header: bool = False
    columns: tuple[str, ...] = ()
    """Names of the columns of a file without a header."""
    node: str | None = None
    topic: str | None = None
    time: str | None = None
    direction: Direction = "follows"
    """Of a graph of users: the first of a line follows the second, is followed by it, or both."""
    max_rejects: float = 0.01
    """The share of wrong lines above which nothing is imported."""


@dataclass(frozen=True)
class Format:
    """One way in which files are written."""

    name: str
    summary: str
    delimiter: str
    columns: pa.Schema
    parse: Callable[[Options, str, Path], Parse]
    """(options, delimiter, a first file): what reads the lines."""
    tables: Callable[[DataFrame, Staging, Options], dict[str, int]]
    """(the rows, where to write, options): writes the tables, gives what it counted."""


class Imported(dict[str, int]):
    """What was counted, by name; `lines` and `rejects` first."""


def import_trace(
    spark: SparkSession,
    format_name: str,
    path: Path,
    out: Path,
    options: Options | None = None,
    *,
    overwrite: bool = False,
) -> Imported:
    """Read a trace into a folder of tables."""
    options = options or Options()
    wanted = find_format(format_name)
    if not 0 <= options.max_rejects <= 1:
        raise BadInput(f"share of rejects {options.max_rejects}: out of range; choose one from 0 to 1")
    files = source_files(path)
    plan = {
        "command": "workload import",
        "format": format_name,
        "options": asdict(options),
        "files": fingerprint(files),
    }
    with staged(out, plan, overwrite) as staging:
        parsed = _parsed(spark, wanted, files, path, options, staging)
        rows = parsed.where(f"kind = {ROW}")
        rejects = parsed.where(f"kind = {REJECT}").select(*REJECTS.names)
        counts = _counted(parsed, path)
        at_first = counts["rejects"]
        _refuse_too_many(rejects, counts, options.max_rejects, wanted, path)
        found = wanted.tables(rows, staging, options)
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
    spark: SparkSession, wanted: Format, files: list[Path], path: Path, options: Options, staging: Staging
) -> DataFrame:
    """Every line read once, and kept on disk between the stages."""
    scratch = staging.scratch("parsed")
    if not (scratch / "_SUCCESS").exists():
        if wanted.name == "opml":
            lines = parsed_opml(spark, [file.absolute() for file in files], path.absolute())
        else:
            delimiter = _delimiter(options.delimiter or wanted.delimiter)
            lines = parsed_lines(spark, files, wanted.parse(options, delimiter, files[0]), wanted.columns)
        lines.write.mode("overwrite").parquet(str(scratch))
    return spark.read.parquet(str(scratch))


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


def _with_later(spark: SparkSession, rejects: DataFrame, later: Path) -> DataFrame:
    """Lines that are wrong only beside others: what a format's `tables` set aside."""
    if not later.exists():
        return rejects
    return rejects.unionByName(spark.read.parquet(str(later)).select(*REJECTS.names))


def _refuse_too_many(rejects: DataFrame, counts: Imported, share: float, wanted: Format, path: Path) -> None:
    wrong = counts["rejects"]
    every = counts["lines"] + wrong
    if wrong <= share * every:
        return
    first = rejects.orderBy("file", "line").first()
    assert first is not None
    what = "files" if wanted.name == "opml" else "lines"
    raise BadInput(
        f"{path}: {wrong:,} of {every:,} {what} do not fit the format {wanted.name!r}, "
        f"more than the {share:.1%} allowed; the first is line {first['line']} of {first['file']}, "
        f"{first['text']!r}: {first['reason']}; choose another format or --delimiter, mend the file, "
        "or allow more with --max-rejects"
    )


def _delimiter(text: str) -> str:
    words = {
        "space": " ",
        "tab": "\t",
        "comma": ",",
        "colon": ":",
        "semicolon": ";",
        "pipe": "|",
        "\\t": "\t",
    }
    return words.get(text, text)


def _header(options: Options, delimiter: str, file: Path) -> list[str]:
    if options.columns:
        return list(options.columns)
    line = first_line(file)
    return [name.strip() for name in (line.split() if delimiter == WHITESPACE else line.split(delimiter))]


def _place(names: list[str], name: str | None, default: int, file: Path) -> int:
    if name is None:
        if default >= len(names):
            raise BadInput(
                f"{file}: {len(names)} columns ({', '.join(names)[:80]}), too few; give the right --delimiter"
            )
        return default
    if name not in names:
        raise BadInput(f"{file}: no column {name!r}; it has {', '.join(names)[:200]}")
    return names.index(name)


def _edges(options: Options, delimiter: str, _file: Path) -> Parse:
    return formats.pair_lines(delimiter, 2, 0, 1, None, options.header)


def _adjacency(_options: Options, delimiter: str, _file: Path) -> Parse:
    return formats.adjacency_lines("\t" if delimiter == WHITESPACE else delimiter, ",")


def _pairs(options: Options, delimiter: str, file: Path) -> Parse:
    named = options.header or options.columns
    names = _header(options, delimiter, file) if named else ["node", "topic"]
    node, topic = _place(names, options.node, 0, file), _place(names, options.topic, 1, file)
    return formats.pair_lines(delimiter, len(names), node, topic, None, options.header)


def _edits(options: Options, delimiter: str, file: Path) -> Parse:
    named = options.header or options.columns
    names = _header(options, delimiter, file) if named else ["user", "page", "time"]
    places = [
        _place(names, name, place, file)
        for place, name in enumerate((options.node, options.topic, options.time))
    ]
    return formats.pair_lines(delimiter, len(names), places[0], places[1], places[2], options.header)


def _machine_events(_options: Options, delimiter: str, _file: Path) -> Parse:
    return formats.machine_event_lines(delimiter)


def _availability(_options: Options, delimiter: str, _file: Path) -> Parse:
    return formats.availability_lines(delimiter)


def _rtt(_options: Options, delimiter: str, file: Path) -> Parse:
    return formats.rtt_lines(delimiter, tables_of.matrix_size(file, delimiter))


def _coordinates(options: Options, delimiter: str, file: Path) -> Parse:
    names = _header(options, delimiter, file) if options.header or options.columns else ["node", "x", "y"]
    return formats.place_lines(
        delimiter,
        len(names),
        _place(names, options.node or "node", 0, file),
        _place(names, "x", 1, file),
        _place(names, "y", 2, file),
        options.header,
    )


def _as_graph(_options: Options, delimiter: str, file: Path) -> Parse:
    return formats.as_link_lines(delimiter, len(re.split(re.escape(delimiter), first_line(file))) > 2)


def _no_lines(_options: Options, _delimiter: str, _file: Path) -> Parse:
    raise AssertionError("OPML is read file by file")


FORMATS: dict[str, Format] = {
    one.name: one
    for one in (
        Format(
            "edges",
            "who follows whom, a pair per line (SNAP)",
            WHITESPACE,
            formats.PAIR,
            _edges,
            tables_of.users,
        ),
        Format(
            "adjacency",
            "a user, a tab, and all it follows, between commas",
            "\t",
            formats.PAIR,
            _adjacency,
            tables_of.users,
        ),
        Format("pairs", "user and topic in named columns", ",", formats.PAIR, _pairs, tables_of.pairs),
        Format(
            "edits",
            "user, page and seconds of each edit; rates from how often",
            WHITESPACE,
            formats.PAIR,
            _edits,
            tables_of.edits,
        ),
        Format(
            "machine-events",
            "Google ClusterData2011-2 machine_events: who comes and goes",
            ",",
            formats.CHANGE,
            _machine_events,
            tables_of.machine_events,
        ),
        Format(
            "availability",
            "a host, its number of sessions, their starts and ends in seconds",
            "\t",
            formats.CHANGE,
            _availability,
            tables_of.availability,
        ),
        Format(
            "rtt",
            "square matrices of round trips in ms; a .tar holds several in time",
            "\t",
            formats.RTT,
            _rtt,
            tables_of.rtt,
        ),
        Format(
            "coordinates",
            "hosts and their x, y (and Vivaldi height)",
            WHITESPACE,
            formats.PLACE,
            _coordinates,
            tables_of.coordinates,
        ),
        Format(
            "as-graph",
            "neighbouring ASes, with or without their relation",
            ",",
            formats.AS_LINK,
            _as_graph,
            tables_of.as_graph,
        ),
        Format(
            "opml", "a folder of OPML files, one per reader", "", formats.PAIR, _no_lines, tables_of.pairs
        ),
    )
}


def find_format(name: str) -> Format:
    try:
        return FORMATS[name]
    except KeyError:
        raise UnknownName("format", name, list(FORMATS)) from None
