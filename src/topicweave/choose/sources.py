"""Whatever holds subscriptions becomes a workload: files, folders, tables, lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from topicweave.choose.channel import Note
from topicweave.choose.places import own_folder
from topicweave.choose.question import checked
from topicweave.data import reading
from topicweave.data.parsing import LONGEST_NAME
from topicweave.data.sniffing import too_long
from topicweave.data.tables import Understood, read_subscriptions, refuse_options, subscriptions_in, table_of
from topicweave.data.text_tables import TableOptions, counted
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
    """As the same lists in a JSON file are read: what is repeated counts once."""
    once = {node: _once(topics) for node, topics in lists.items()}
    again = sum(len(lists[node]) - len(topics) for node, topics in once.items() if isinstance(topics, list))
    if again:
        note(f"subscriptions: {counted(again)} repeated: counted once")
    if not once:
        raise BadInput("subscriptions: empty; need a node with its topics")
    workload = Workload.from_lists(once)
    longest = max((len(name.encode()) for name in (*workload.node_names, *workload.topic_names)), default=0)
    if longest > LONGEST_NAME:
        raise too_long("subscriptions", longest)
    return workload


def _once(topics: Any) -> Any:
    if not isinstance(topics, list | tuple):
        return topics
    try:
        return list(dict.fromkeys(topics))
    except TypeError:  # No names, and so said of the workload.
        return topics


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
