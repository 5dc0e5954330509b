"""Subscriptions from any file that holds them, and what was understood of it.

A file is a table (text in columns, Parquet, JSON records), lists (`user item item …`, JSON `{user:
[topics]}`), packed or not. Which columns are meant is told by their names, or is said by the caller; what was
taken for what stands in `Understood`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from topicweave.data.bracketed import holds_lists, lists_in
from topicweave.data.files import COMPRESSIONS
from topicweave.data.json_tables import column_of, read_json
from topicweave.data.parsing import LONGEST_NAME
from topicweave.data.sniffing import (
    MISSING,
    NODE_WORDS,
    TOPIC_WORDS,
    is_plain_number,
    is_singular,
    too_long,
    words,
)
from topicweave.data.text_tables import TableOptions, TextRows, counted, read_text, sentence, whole
from topicweave.errors import BadInput
from topicweave.model.workload import Workload


class Understood(msgspec.Struct, frozen=True):
    """What was taken for what."""

    file: str
    shape: str
    """`columns between commas, with a header`, `Parquet`, `JSON lists`, …"""
    node: str
    topic: str
    rows: int
    notes: tuple[str, ...] = ()
    """What was left out, and what may be wrong."""

    def __str__(self) -> str:
        return f"{self.file}: {self.shape}; nodes from {self.node}, topics from {self.topic}, {counted(self.rows)}"


def read_subscriptions(path: Path, options: TableOptions | None = None) -> tuple[Workload, Understood]:
    """The workload in a file, and how the file was understood."""
    options = options or TableOptions()
    if not path.exists():
        raise BadInput(
            f"{path}: no such file or folder; give a file of subscriptions, or a workload's folder"
        )
    kind = _kind(path)
    if kind in (".parquet", ".json", ".jsonl", ".ndjson"):
        refuse_options(path, kind, delimiter=options.delimiter, header=options.header)
    if kind == ".parquet":
        refuse_options(path, kind, lists=options.lists)
        rows = TextRows("Parquet", _read_parquet(path))
    elif kind in (".json", ".jsonl", ".ndjson"):
        rows = read_json(path, whole(path), options.lists)
    else:
        rows = read_text(path, whole(path), options)
    return subscriptions_in(str(path), rows.table, options, rows)


def refuse_options(path: Path | str, kind: str, **options: object) -> None:
    """Raise about an option that says nothing about what is read."""
    for name, value in options.items():
        if value is not None:
            raise BadInput(f"{path}: --{name} says nothing about {kind}; leave it out")


def _kind(path: Path) -> str:
    """The ending of a file's name, without those of its compression."""
    name = path.name.lower()
    for ending in COMPRESSIONS:
        name = name.removesuffix(ending)
    return Path(name).suffix


def _read_parquet(path: Path) -> pa.Table:
    import pyarrow.parquet as pq

    try:
        if path.suffix.lower() in COMPRESSIONS:
            return pq.read_table(pa.BufferReader(whole(path)))
        return pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise BadInput(f"{path}: not a Parquet file ({sentence(error)}); name it by what it is") from None


def table_of(label: str, source: Any) -> pa.Table:
    """A table of pandas, Polars, …; columns of pandas' with values of several types become text."""
    try:
        return pa.table(source)
    except (pa.ArrowException, ValueError, TypeError) as error:
        if not hasattr(source, "iloc"):
            raise BadInput(f"{label}: {sentence(error)}; give columns of names") from None
    names = [str(name) for name in source.columns]
    _refuse_same_names(label, names)
    columns = {}
    for place, name in enumerate(names):
        try:
            columns[name] = pa.array(source.iloc[:, place])
        except (pa.ArrowException, ValueError, TypeError):
            cells = source.iloc[:, place].tolist()
            columns[name] = column_of(cells)
            _refuse_merged(label, name, cells)
    return pa.table(columns)


def _refuse_same_names(label: str, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"{label}: two columns are called {name!r}; give each a name of its own")


def _refuse_merged(label: str, column: str, cells: Iterable[Any]) -> None:
    """Raise about a number and a text that are the same as names."""
    found: dict[str, Any] = {}
    for cell in cells:
        other = found.setdefault(str(cell), cell)
        if isinstance(other, str) != isinstance(cell, str) and str(cell) not in MISSING:
            raise BadInput(
                f"{label}: column {column!r}: {other!r} and {cell!r} would be one name; write all names as text"
            )


def subscriptions_in(
    label: str, table: pa.Table, options: TableOptions | None = None, rows: TextRows | None = None
) -> tuple[Workload, Understood]:
    """The workload in a table, and which of its columns were taken."""
    options, rows = options or TableOptions(), rows or TextRows("a table", table)
    notes = list(rows.notes)
    node, topic, more = _chosen(label, table, options, rows)
    notes += more
    pairs = pa.table({"node": _names(label, node, table[node]), "topic": table[topic]})
    listed = _is_list(table[topic].type)
    pairs = _spread(pairs) if listed else pairs
    pairs = pairs.set_column(1, "topic", _names(label, topic, pairs["topic"], listed=listed))
    if options.lists is not False and holds_lists(pairs["topic"]):
        found = lists_in(label, _column_word(topic), pairs["topic"], rows.first_line)
        pairs = _spread(pairs.set_column(1, "topic", pa.chunked_array([found])))
        pairs = pairs.set_column(1, "topic", _names(label, topic, pairs["topic"]))
        notes.append(f"lists in brackets in {_column_word(topic)}: each of their items is a topic")
    elif rows.header and not listed and options.lists is None:
        notes += _taken_whole(topic, pairs, rows.first_line > 0)
    count = pairs.num_rows
    _refuse_long_names(label, pairs, rows.first_line)
    nameless = pc.equal(pairs["node"], "")
    if missing := pc.sum(nameless).as_py() or 0:
        notes.append(f"{counted(missing)} without a node (empty, NaN, null, …) left out")
        pairs = pairs.filter(pc.invert(nameless))
    nodes = pc.unique(pairs["node"])
    wanting = pc.not_equal(pairs["topic"], "")
    if missing := pairs.num_rows - (pc.sum(wanting).as_py() or 0):
        notes.append(
            f"{counted(missing)} without a topic (empty, NaN, null, …): the node is there, without a subscription"
        )
        pairs = pairs.filter(wanting)
    distinct = pairs.group_by(["node", "topic"], use_threads=False).aggregate([])
    if again := pairs.num_rows - distinct.num_rows:
        notes.append(f"{counted(again)} repeated: counted once")
    if not distinct.num_rows:
        raise BadInput(f"{label}: nobody wants anything; need at least one row with a node and a topic")
    workload = Workload.from_tables(distinct, hosts=pa.table({"node": nodes}))
    understood = Understood(label, rows.shape, _column_word(node), _column_word(topic), count, tuple(notes))
    return workload, understood


def _taken_whole(topic: str, pairs: pa.Table, text: bool) -> list[str]:
    """A note about cells that may hold several topics: their column's name is a plural, a node stands once."""
    if is_singular(topic) or topic == "others" or len(pc.unique(pairs["node"])) < pairs.num_rows:
        return []
    several = pairs["topic"].filter(pc.match_substring_regex(pairs["topic"], r"\S[\s,;|]+\S"))
    if 3 * len(several) < pairs.num_rows:
        return []
    cell = several[0].as_py()[:60]
    apart = re.split(r"[\s,;|]+", cell)
    instead = f"write {'|'.join(apart)!r} and say --lists" if text else f"give a list, {apart}"
    return [
        f"cells of {_column_word(topic)} are taken whole: {cell!r} is one topic; if it is several, {instead}"
    ]


def _column_word(name: str) -> str:
    if name in ("1st name", "others", "key", "values"):
        return {
            "1st name": "the first name of a line",
            "others": "the others",
            "key": "the keys",
            "values": "their lists",
        }[name]
    return name if name.startswith("column ") else f"column {name!r}"


def _chosen(label: str, table: pa.Table, options: TableOptions, rows: TextRows) -> tuple[str, str, list[str]]:
    """The columns of the node and of the topic, by their names or as given, and what is not sure about them."""
    names = table.column_names
    _refuse_same_names(label, names)
    if len(names) < 2:
        raise BadInput(f"{label}: one column; need a node and a topic")
    node = None if options.node is None else _given(label, names, options.node, "--node")
    topic = None if options.topic is None else _given(label, names, options.topic, "--topic")
    if node is not None and node == topic:
        raise BadInput(f"{label}: column {node!r} for both; give one for --node and another for --topic")
    free = [name for name in names if name not in (node, topic)]
    node = node or _named(free, NODE_WORDS)
    topic = topic or _named([name for name in free if name != node], TOPIC_WORDS)
    rest = [name for name in free if name not in (node, topic)]
    notes = []
    if options.node is None and node is not None:
        notes += _passed_over(node, rest, NODE_WORDS, "nodes", "--node")
    if options.topic is None and topic is not None:
        notes += _passed_over(topic, rest, TOPIC_WORDS, "topics", "--topic")
    likely = [name for name in rest if not _unlikely(table, name, names.index(name), rows)] or rest
    if node is None or topic is None:
        wanted = (node is None) + (topic is None)
        if names[0] in likely and len(names) > 2 and len(likely) > wanted and _is_index(table[names[0]]):
            likely.remove(names[0])
            index = _column_word(names[0])
            notes.append(f"{index} counts the rows and is skipped; say --node 1 or --topic 1 if it is meant")
        if node is None:
            node = likely.pop(0)
            likely = likely or [name for name in rest if name != node]
        if topic is None:
            topic = likely[0]
            if rows.header:
                _refuse_matrix(label, table, [name for name in likely if name != node])
        if len(names) > 2:
            notes.append(
                f"of {len(names)} columns ({_list(names)}); say --node and --topic if others are meant"
            )
    return node, topic, notes


def _passed_over(
    taken: str, rest: Sequence[str], vocabulary: Sequence[str], what: str, option: str
) -> list[str]:
    """A note about columns that are named as the taken one is: a user's number beside the name."""
    common = words(taken) & {*vocabulary}
    others = [name for name in rest if words(name) & common]
    if not others:
        return []
    which = "if it is meant" if len(others) == 1 else "if another one is meant"
    left_out = ", ".join(map(repr, others))
    return [f"{what} from column {taken!r}, not from {left_out}; say {option} {others[0]!r} {which}"]


_NO_AND_YES = ({"0", "1"}, {"false", "true"}, {"no", "yes"}, {"n", "y"})


def _refuse_matrix(label: str, table: pa.Table, columns: Sequence[str]) -> None:
    """Raise about a column per topic that says who wants it: what stands in its cells are no names of topics."""
    found: set[str] = set()
    for name in columns:
        if pa.types.is_nested(table[name].type) or pa.types.is_binary(table[name].type):
            return
        found.update(pc.unique(pc.utf8_lower(_names(label, name, table[name]))).to_pylist())
        if not any(found - {""} <= words for words in _NO_AND_YES):
            return
    if len(columns) > 1 and found - {""} in _NO_AND_YES:
        raise BadInput(
            f"{label}: a column per topic ({_list(columns)}), with {' and '.join(sorted(found - {''}))} in it; "
            "need a row per subscription: node,topic (pandas makes it with melt), or say --topic"
        )


def _given(label: str, names: list[str], wanted: str, option: str) -> str:
    if wanted in names:
        return wanted
    folded = {name.strip().lower(): name for name in names}
    if wanted.strip().lower() in folded:
        return folded[wanted.strip().lower()]
    if wanted.isdigit() and 1 <= int(wanted) <= len(names):
        return names[int(wanted) - 1]
    raise BadInput(f"{label}: no column {wanted!r} for {option}; it has {_list(names)}")


def _named(names: list[str], vocabulary: list[str]) -> str | None:
    """The column whose name is a word, or has a word, of the vocabulary; the earlier words go first."""
    for test in (lambda name: {name.strip().lower()}, words):
        for word in vocabulary:
            for name in names:
                if word in test(name):
                    return name
    return None


def _unlikely(table: pa.Table, name: str, place: int, rows: TextRows) -> bool:
    """Whether a column is an index that some program wrote in front, or holds fractions or moments."""
    kind = table[name].type
    if pa.types.is_floating(kind) or pa.types.is_temporal(kind) or pa.types.is_decimal(kind):
        return not _whole_numbers(table[name])
    if place < len(rows.types) and is_plain_number(rows.types[place]):
        return True
    nameless = name in (f"column {place + 1}", "", "__index_level_0__") or name.startswith("Unnamed")
    return place == 0 and rows.header and nameless and _counts_up(table[name])


def _whole_numbers(column: Any) -> bool:
    return bool(
        pa.types.is_floating(column.type)
        and pc.all(pc.equal(column, pc.floor(column)), skip_nulls=True).as_py()
    )


def _is_index(column: Any) -> bool:
    return len(column) > 1 and _counts_up(column) and column[0].cast(pa.int64()).as_py() in (0, 1)


def _counts_up(column: Any) -> bool:
    try:
        numbers = column.cast(pa.int64()).to_numpy()
    except (pa.ArrowException, ValueError):
        return False
    return len(numbers) > 0 and bool((np.diff(numbers) == 1).all())


def _names(label: str, column: str, cells: Any, listed: bool = False) -> Any:
    """Names as text, trimmed; those that are missing are empty."""
    kind = cells.type
    if pa.types.is_dictionary(kind):
        cells = cells.cast(kind.value_type)
    if pa.types.is_nested(kind):
        what = ("lists of " if listed else "") + ("lists" if _is_list(kind) else "objects")
        need = "lists of names" if listed else "a name in each row"
        raise BadInput(f"{label}: {_column_word(column)} holds {what}; need {need}")
    if pa.types.is_floating(cells.type) and _whole_numbers(cells.drop_null()):
        cells = pc.if_else(pc.is_finite(cells), cells, None).cast(pa.int64())
    try:
        texts = cells.cast(pa.large_string())
    except pa.ArrowException as error:
        raise BadInput(f"{label}: column {column!r} must hold names ({sentence(error)})") from None
    texts = pc.utf8_trim_whitespace(pc.fill_null(texts, ""))
    return pc.if_else(pc.is_in(texts, value_set=pa.array(MISSING, pa.large_string())), "", texts)


def _is_list(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _spread(pairs: pa.Table) -> pa.Table:
    """A row for each topic of a list; an empty list keeps its node."""
    topics = pairs["topic"].combine_chunks().cast(pa.large_list(pairs["topic"].type.value_type))
    sizes = pc.fill_null(pc.list_value_length(topics), 0).to_numpy(zero_copy_only=False)
    owner = np.repeat(np.arange(len(topics)), sizes)
    values = topics.flatten()
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    idle = np.flatnonzero(sizes == 0)
    nodes = pairs["node"].take(pa.array(np.concatenate([owner, idle])))
    filled = pa.concat_arrays([values, pa.nulls(len(idle), values.type)])
    return pa.table({"node": nodes, "topic": filled})


def _refuse_long_names(label: str, pairs: pa.Table, first_line: int) -> None:
    for name in ("node", "topic"):
        sizes = pc.binary_length(pairs[name])
        longest = pc.max(sizes).as_py() or 0
        if longest > LONGEST_NAME:
            row = pc.index(sizes, pa.scalar(longest, sizes.type)).as_py()
            where = f"line {first_line + row}" if first_line else f"row {row + 1}"
            raise too_long(f"{label}, {where}", longest)


def refuse_pointless(label: str, workload: Workload) -> None:
    """Raise about a workload on which nothing can be compared: one node, or nobody to deliver to."""
    if workload.nodes < 2:
        raise BadInput(
            f"{label}: one node ({workload.node_names[0]!r}); need at least two to compare systems"
        )
    audience = np.bincount(workload.topic_index, minlength=workload.topics)
    if audience.max(initial=0) < 2:
        raise BadInput(
            f"{label}: none of the {workload.topics:,} topics has more than one subscriber, so nothing is delivered; "
            "are --node and --topic the wrong way round?"
        )


def _list(names: Iterable[str]) -> str:
    def shown() -> Iterator[str]:
        for number, name in enumerate(names):
            if number == 8:
                yield "…"
                return
            yield name or "''"

    return ", ".join(shown())
