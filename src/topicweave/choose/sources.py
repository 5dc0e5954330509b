"""Whatever holds subscriptions becomes a workload: files, folders, tables, lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np
import pyarrow as pa

from topicweave.choose.channel import Note
from topicweave.choose.places import own_folder
from topicweave.choose.question import checked
from topicweave.data import reading
from topicweave.data.json_tables import column_of
from topicweave.data.tables import Understood, read_subscriptions, refuse_options, subscriptions_in, table_of
from topicweave.data.text_tables import TableOptions, TextRows
from topicweave.errors import BadInput
from topicweave.model.workload import Workload
from topicweave.runs.sources import fingerprint


class ArrowTable(Protocol):
    """A table of pandas, Polars, PyArrow, DuckDB, …"""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


SubscriptionSource = str | Path | Workload | Mapping[str, Iterable[str]] | ArrowTable

IN_MEMORY = "subscriptions"


class Named(NamedTuple):
    """A workload, what to call it, and where it comes from."""

    workload: Workload
    name: str
    source: str
    out: Path
    """Where answers about it go."""


def read_workload(
    source: SubscriptionSource,
    *,
    node: str | int | None = None,
    topic: str | int | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    lists: bool | None = None,
    note: Note | None = None,
) -> Workload:
    """The workload that a file, a folder, a table or lists hold.

    source      a file of subscriptions (text in columns or lists, Parquet, JSON; plain or packed); a workload's
                folder; a folder of OPML files; a pandas or Arrow table; {node: [topics]}; or a `Workload`
    node, topic which columns are meant, by name or by number from 1; found by their names if not given
    delimiter   what is between columns; found out if not given
    header      whether the first line names the columns; found out if not given
    lists       whether a line is a node and all its topics, or a row of columns; found out if not given
    note        called with what was understood, and each sentence about what was left out

    >>> read_workload({"ann": ["news", "go"], "bob": ["news"]})
    Workload(nodes=2, topics=2, subscriptions=3, changes=0, hosts=False)
    """
    given = {"node": node, "topic": topic, "delimiter": delimiter, "header": header, "lists": lists}
    return _read(source, TableOptions(**checked(given)), note or _ignore)


def named_workload(source: SubscriptionSource, out: Path | None, note: Note, options: TableOptions) -> Named:
    """The same for a comparison in the folder `out`, or in one of its own; what has no file of its own is
    kept there.
    """
    workload = _read(source, options, note)
    if isinstance(source, str | Path):
        folder = own_folder("compare", source) if out is None else out
        return Named(workload, Path(source).name or str(source), str(source), folder)
    if out is None:
        out = own_folder("compare", f"{IN_MEMORY}-{fingerprint(workload)[:8]}")
    kept = out / IN_MEMORY
    if not (kept / "subscriptions.parquet").exists() or Workload.load(kept) != workload:
        workload.save(kept, overwrite=True)
    return Named(workload, IN_MEMORY, str(kept), out)


def _ignore(_text: str) -> None:
    pass


def _read(source: SubscriptionSource, options: TableOptions, note: Note) -> Workload:
    given = msgspec.structs.asdict(options)
    if isinstance(source, Workload):
        refuse_options("subscriptions", "a Workload", **given)
        return source
    if isinstance(source, str | Path):
        return _read_path(Path(source), options, note)
    if hasattr(source, "__arrow_c_stream__"):
        refuse_options(
            "subscriptions", "a table", **{name: given[name] for name in ("delimiter", "header", "lists")}
        )
        return _told(subscriptions_in("subscriptions", table_of("subscriptions", source), options), note)
    if isinstance(source, Mapping):
        refuse_options("subscriptions", "lists in memory", **given)
        return _of_lists(source, note)
    raise BadInput(
        f"subscriptions: {type(source).__name__} is none of a path, a Workload, a table of (node, topic), {{node: [topics]}}"
    )


def _of_lists(lists: Mapping[str, Any], note: Note) -> Workload:
    """As the same lists in a JSON file are read: names trimmed, missing ones left out, repeated ones counted once."""
    kept = {node: _kept(topics) for node, topics in lists.items()}
    if not kept:
        raise BadInput("subscriptions: empty; need a node with its topics")
    if not all(_may_be_names([node]) and _may_be_names(topics) for node, topics in kept.items()):
        return Workload.from_lists(kept)  # It says which is none.
    pairs = [(node, topic) for node, topics in kept.items() for topic in topics or [None]]
    nodes, topics = (column_of(column) for column in zip(*pairs, strict=True))
    table = pa.table({"key": nodes, "values": topics})
    workload, understood = subscriptions_in("subscriptions", table, rows=TextRows("lists", table))
    for sentence in understood.notes:
        note(f"subscriptions: {sentence}")
    return workload


def _kept(topics: Any) -> Any:
    """Topics that may be gone through again."""
    several = isinstance(topics, Iterable) and not isinstance(topics, str | bytes | Mapping)
    return list(topics) if several else topics


def _may_be_names(names: Any) -> bool:
    kinds = (str, int, float, np.integer, type(None))
    return isinstance(names, list) and all(
        isinstance(name, kinds) and not isinstance(name, bool) for name in names
    )


def _read_path(path: Path, options: TableOptions, note: Note) -> Workload:
    if not path.is_dir():
        return _told(read_subscriptions(path, options), note)
    refuse_options(path, "a folder", **msgspec.structs.asdict(options))
    if any(path.rglob("*.opml")):
        return reading.read_workload("opml", path)
    return Workload.load(path)


def _told(found: tuple[Workload, Understood], note: Note) -> Workload:
    workload, understood = found
    note(str(understood))
    for sentence in understood.notes:
        note(f"{understood.file}: {sentence}")
    return workload
