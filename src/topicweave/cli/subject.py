"""What the user wants to know about: a workload, from whatever holds the subscriptions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import typer

from topicweave.errors import BadInput
from topicweave.model.workload import Workload

LARGEST_FILE = 512 * 1024 * 1024
"""Bytes of a table that is read at once; a larger one is a case for `topicweave workload import`."""

_NODE_NAMES = (
    "node",
    "user",
    "reader",
    "subscriber",
    "follower",
    "member",
    "client",
    "consumer",
    "from",
    "source",
)
_TOPIC_NAMES = (
    "topic",
    "feed",
    "channel",
    "followed",
    "group",
    "page",
    "repo",
    "repository",
    "to",
    "target",
    "subject",
)
_DELIMITERS = {".tsv": "\t", ".csv": ","}


def load_subject(path: Path, out: Path) -> Workload:
    """A workload's folder, a CSV or Parquet file of (node, topic), or a trace that `workload import` reads (`.txt` as SNAP
    edges, a folder of OPML files), which is imported once into `out`/imported.
    """
    if not path.exists():
        raise BadInput(
            f"{path}: no such file or folder; give a CSV or Parquet file of subscriptions, or a workload's folder"
        )
    if path.is_dir():
        if any(path.glob("*.opml")):
            return _imported("opml", path, out)
        return Workload.load(path)
    if path.suffix == ".parquet":
        return _from_table(path, _read_parquet(path))
    if path.suffix in _DELIMITERS:
        return _from_table(path, _read_csv(path))
    if path.name.removesuffix(".gz").removesuffix(".xz").endswith(".txt"):
        return _imported("edges", path, out)
    raise BadInput(
        f"{path}: what kind of file is this? Name it .csv, .tsv, .parquet or .txt (SNAP), or make a workload of it: "
        "topicweave workload import --help"
    )


def _read_parquet(path: Path) -> pa.Table:
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise BadInput(f"{path}: not a Parquet file ({_first_line(error)})") from None


def _read_csv(path: Path) -> pa.Table:
    """Every column as text, as it stands: `007` is a name like any other. Fields may be quoted."""
    from pyarrow import csv

    if path.stat().st_size > LARGEST_FILE:
        raise BadInput(
            f"{path}: too large to be read at once; make a workload of it on Spark: topicweave workload import pairs {path} …"
        )
    names = _heading(path)
    width = len(names or _fields(path))
    columns = names or [f"column {number}" for number in range(1, width + 1)]
    if width < 2:
        raise BadInput(
            f"{path}, line 1: one column; need a node and a topic with a {_delimiter_word(path)} between them"
        )
    wrong: list[tuple[int | None, int]] = []

    def skip(row: Any) -> str:
        wrong.append((row.number, row.actual_columns))
        return "skip"

    try:
        table = csv.read_csv(
            path,
            csv.ReadOptions(column_names=columns, skip_rows=1 if names else 0, use_threads=False),
            csv.ParseOptions(delimiter=_DELIMITERS[path.suffix], invalid_row_handler=skip),
            csv.ConvertOptions(
                column_types={name: pa.string() for name in columns}, strings_can_be_null=False
            ),
        )
    except (OSError, pa.ArrowException) as error:
        raise BadInput(f"{path}: {_first_line(error)}") from None
    if len(wrong) > 0.01 * (table.num_rows + len(wrong)):
        number, found = wrong[0]
        raise BadInput(
            f"{path}, line {number}: {found} columns, not {width}; {len(wrong):,} lines are wrong, more than 1 %"
        )
    if wrong:
        typer.echo(f"note: {path}: {len(wrong):,} lines with a wrong number of columns left out", err=True)
    return table


def _fields(path: Path) -> list[str]:
    import csv

    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return next(csv.reader(file, delimiter=_DELIMITERS[path.suffix]), [])
    except (UnicodeDecodeError, csv.Error):
        raise BadInput(f"{path}: not a text file in UTF-8") from None
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None


def _heading(path: Path) -> list[str] | None:
    """The names in the first line, if one of them is a name that columns have."""
    fields = [field.strip() for field in _fields(path)]
    if not fields:
        raise BadInput(f"{path}: empty; need a line for each subscription: node,topic")
    known = {field.lower() for field in fields}
    return fields if known & {*_NODE_NAMES, *_TOPIC_NAMES} else None


def _delimiter_word(path: Path) -> str:
    return "tab" if path.suffix == ".tsv" else "comma"


def _from_table(path: Path, table: pa.Table) -> Workload:
    """Which columns hold what is told by their names; without such names, the first two do."""
    import pyarrow.compute as pc

    if table.num_columns < 2:
        raise BadInput(f"{path}: one column; need a node and a topic")
    node, topic = _columns(table)
    try:
        pairs = pa.table({"node": table[node].cast(pa.string()), "topic": table[topic].cast(pa.string())})
    except pa.ArrowException as error:
        raise BadInput(
            f"{path}: columns {node!r} and {topic!r} must hold names ({_first_line(error)})"
        ) from None
    # Spaces around a name are nobody's intention; a node without a topic is one that wants nothing.
    pairs = pa.table(
        {name: pc.utf8_trim_whitespace(pc.fill_null(pairs[name], "")) for name in ("node", "topic")}
    )
    nameless = pc.sum(pc.equal(pairs["node"], "")).as_py() or 0
    if nameless:
        raise BadInput(f"{path}: {nameless:,} rows have no {node}")
    nodes = pc.unique(pairs["node"])
    pairs = pairs.filter(pc.not_equal(pairs["topic"], ""))
    distinct = pairs.group_by(["node", "topic"], use_threads=False).aggregate([])
    if distinct.num_rows < pairs.num_rows:
        typer.echo(
            f"note: {path}: {pairs.num_rows - distinct.num_rows:,} rows say again what others said", err=True
        )
    if not distinct.num_rows:
        raise BadInput(f"{path}: nobody wants anything; need at least one row with a node and a topic")
    return Workload.from_tables(distinct, hosts=pa.table({"node": nodes}))


def _columns(table: pa.Table) -> tuple[str, str]:
    """Those of the node and of the topic; if only one has a name that tells, the other is the first of the rest."""
    node, topic = _column(table, _NODE_NAMES), _column(table, _TOPIC_NAMES)
    rest = [name for name in table.column_names if name not in (node, topic)]
    if node is None:
        node = rest.pop(0)
    return node, topic if topic is not None else rest[0]


def _column(table: pa.Table, names: tuple[str, ...]) -> str | None:
    by_name = {name.strip().lower(): name for name in table.column_names}
    return next((by_name[name] for name in names if name in by_name), None)


def _imported(kind: str, path: Path, out: Path) -> Workload:
    """By Spark, once: what an earlier run imported from the same file is taken as it is."""
    from topicweave.cli.spark import LOCAL, spark_for
    from topicweave.pipeline.importing import Options, import_trace

    stamp = path.stat()
    folder = out / "imported" / f"{path.name}-{stamp.st_size}-{stamp.st_mtime_ns}"
    if not (folder / "subscriptions.parquet").exists():
        typer.echo(f"importing {path} as {kind} (other kinds: topicweave workload import)", err=True)
        with spark_for("import", LOCAL, None, False) as spark:
            import_trace(spark, kind, path, folder, Options(), overwrite=True)
    return Workload.load(folder)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
