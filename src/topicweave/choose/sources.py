"""Whatever holds subscriptions becomes a workload: files, folders, tables, lists."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from topicweave.choose.channel import Note
from topicweave.errors import BadInput
from topicweave.model.workload import Workload


class ArrowTable(Protocol):
    """A table of pandas, Polars, PyArrow, DuckDB, …"""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


Source = str | Path | Workload | Mapping[str, Iterable[str]] | ArrowTable

IN_MEMORY = "subscriptions"

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


class Named(NamedTuple):
    """A workload, what to call it, and where it comes from."""

    workload: Workload
    name: str
    source: str


def read_workload(source: Source, *, note: Note | None = None) -> Workload:
    """The workload that a file, a folder, a table or lists hold.

    source  a workload's folder; a CSV, TSV or Parquet file of (node, topic); a trace that `topicweave workload import` reads
            (`.txt` as SNAP edges, a folder of OPML files); a pandas or Arrow table; {node: [topics]}; or a `Workload`
    note    called with each sentence about what was left out

    >>> read_workload({"ann": ["news", "go"], "bob": ["news"]})
    Workload(nodes=2, topics=2, subscriptions=3, changes=0, hosts=False)
    """
    return _read(source, None, note or _ignore)


def named_workload(source: Source, out: Path, note: Note) -> Named:
    """The same for a comparison in the folder `out`, where what has no file of its own is kept."""
    workload = _read(source, out / "imported", note)
    if isinstance(source, str | Path):
        return Named(workload, Path(source).name or str(source), str(source))
    kept = out / IN_MEMORY
    if not (kept / "subscriptions.parquet").exists() or Workload.load(kept) != workload:
        workload.save(kept, overwrite=True)
    return Named(workload, IN_MEMORY, str(kept))


def _ignore(_text: str) -> None:
    pass


def _read(source: Source, imported: Path | None, note: Note) -> Workload:
    if isinstance(source, Workload):
        return source
    if isinstance(source, str | Path):
        return _read_path(Path(source), imported, note)
    if hasattr(source, "__arrow_c_stream__"):
        return _from_table("subscriptions", pa.table(source), note)
    if isinstance(source, Mapping):
        return Workload.from_lists(source)
    raise BadInput(
        f"subscriptions: {type(source).__name__} is none of a path, a Workload, a table of (node, topic), {{node: [topics]}}"
    )


def _read_path(path: Path, imported: Path | None, note: Note) -> Workload:
    if not path.exists():
        raise BadInput(
            f"{path}: no such file or folder; give a CSV or Parquet file of subscriptions, or a workload's folder"
        )
    if path.is_dir():
        if any(path.glob("*.opml")):
            return _imported("opml", path, imported, note)
        return Workload.load(path)
    if path.suffix == ".parquet":
        return _from_table(path, _read_parquet(path), note)
    if path.suffix in _DELIMITERS:
        return _from_table(path, _read_csv(path, note), note)
    if path.name.removesuffix(".gz").removesuffix(".xz").endswith(".txt"):
        return _imported("edges", path, imported, note)
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


def _read_csv(path: Path, note: Note) -> pa.Table:
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
        note(f"{path}: {len(wrong):,} lines with a wrong number of columns left out")
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


def _from_table(path: str | Path, table: pa.Table, note: Note) -> Workload:
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
        note(f"{path}: {pairs.num_rows - distinct.num_rows:,} rows say again what others said")
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


def _imported(kind: str, path: Path, folder: Path | None, note: Note) -> Workload:
    """By Spark; into the folder, where a later call finds what was imported from the same file."""
    from topicweave.data.formats import Options
    from topicweave.pipeline.importing import import_trace
    from topicweave.pipeline.session import spark_session

    stamp = path.stat()
    name = f"{path.name}-{stamp.st_size}-{stamp.st_mtime_ns}"
    with nullcontext(str(folder)) if folder else tempfile.TemporaryDirectory() as place:
        made = Path(place) / name
        if not (made / "subscriptions.parquet").exists():
            note(f"importing {path} as {kind} (other kinds: topicweave workload import)")
            with spark_session("local[*]", app="topicweave import") as spark:
                import_trace(spark, kind, path, made, Options(), overwrite=True)
        return Workload.load(made)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
