"""JSON as tables: `{user: [topics]}`, `[[user, topic, …], …]`, columns, records, and records line by line.

What has one meaning is read; objects where names should be, and lists within lists, are refused.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from topicweave.data.sniffing import NODE_WORDS, TOPIC_WORDS, are_lists, words
from topicweave.data.text_tables import TextRows, decoded
from topicweave.errors import BadInput

_FORMS = "give {user: [topics]}, records, or lists of a user and topics"


def read_json(path: Path, data: bytes, as_lists: bool | None = None) -> TextRows:
    text, notes = decoded(path, data)
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        return TextRows("JSON lines", _lines(path, text, error), notes=notes)
    if isinstance(value, dict):
        _refuse_same_keys(path, text)
        columns = _columns(value) if as_lists is not True else None
        if as_lists is False and columns is None:
            raise BadInput(f"{path}: lists of different length are no columns; leave --columns out")
        if columns is not None and (as_lists is False or _name_columns(columns)):
            table = pa.table({name: column_of(cells) for name, cells in columns.items()})
            return TextRows("JSON columns", table, notes=notes)
        return TextRows("JSON lists", _table_of_lists(path, value.items()), notes=notes)
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        return TextRows("JSON records", _table_of_records(path, value), notes=notes)
    if isinstance(value, list) and value and all(isinstance(row, list) and row for row in value):
        return _rows(path, value, notes, as_lists)
    raise BadInput(f"{path}: JSON without subscriptions; {_FORMS}")


def _refuse_same_keys(path: Path, text: str) -> None:
    """Raise about a key that stands twice: a decoder keeps the topics of the last one only."""

    def checked(pairs: list[tuple[str, Any]]) -> None:
        for key, often in Counter(key for key, _ in pairs).items():
            if often > 1:
                raise BadInput(
                    f"{path}: the key {_shown(key)} stands twice in an object; put its topics in one list"
                )

    json.loads(text, object_pairs_hook=checked)


def _columns(value: dict[str, Any]) -> dict[str, list[Any]] | None:
    """Columns that may be meant by an object of objects or lists, as pandas writes them: two or more, all alike."""
    if len(value) < 2:
        return None
    if all(isinstance(cells, dict) for cells in value.values()):
        indices = [[*cells] for cells in value.values()]
        columns = {name: [*cells.values()] for name, cells in value.items()}
        return columns if indices[0] and all(index == indices[0] for index in indices) else None
    if all(isinstance(cells, list) for cells in value.values()):
        sizes = {len(cells) for cells in value.values()}
        return value if len(sizes) == 1 and 0 not in sizes else None
    return None


def _name_columns(columns: Iterable[str]) -> bool:
    """Whether these are the names of columns, and not of nodes: one says who, another says what."""
    found = [words(name) for name in columns]
    return any(one & {*NODE_WORDS} for one in found) and any(one & {*TOPIC_WORDS} for one in found)


def _rows(path: Path, rows: list[list[Any]], notes: tuple[str, ...], as_lists: bool | None) -> TextRows:
    """Pairs; or lists of a user and topics, which may be a list of their own; or columns, if that is said."""
    widths = {len(row) for row in rows}
    pairs = widths == {2} and not any(isinstance(row[1], list) for row in rows)
    if as_lists is False and not pairs:
        if len(widths) > 1:
            raise BadInput(f"{path}: rows of different length are no columns; leave --columns out")
        columns = map(column_of, zip(*rows, strict=True))
        table = pa.table({f"column {place}": column for place, column in enumerate(columns, start=1)})
        return TextRows("JSON columns", table, notes=notes)
    if (
        as_lists is None
        and len(widths) == 1
        and max(widths) > 2
        and not are_lists([list(map(str, row)) for row in rows])
    ):
        raise BadInput(
            f"{path}: rows of {max(widths)}: a node and its topics, or columns? say --lists or --columns"
        )
    lists = [(row[0], row[1] if len(row) == 2 else row[1:]) for row in rows]
    for number, (node, _) in enumerate(lists, start=1):
        if not _is_name(node):
            raise BadInput(f"{path}, item {number}: {_shown(node)} is no name of a node; {_FORMS}")
    table = _table_of_lists(path, lists)
    if pairs:
        return TextRows("JSON pairs", table.rename_columns(["column 1", "column 2"]), notes=notes)
    return TextRows("JSON lists", table, notes=notes)


def _lines(path: Path, text: str, error: Exception) -> pa.Table:
    records: list[Any] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = msgspec.json.decode(line)
        except msgspec.DecodeError:
            reason = error if number == 1 else "not JSON"
            raise BadInput(f"{path}, line {number}: {reason}; give JSON, or one record per line") from None
        if not isinstance(record, dict):
            raise BadInput(
                f"{path}, line {number}: not a record; give {{…}} with a node and a topic per line"
            )
        records.append(record)
    if not records:
        raise BadInput(f"{path}: empty; need a record for each subscription")
    return _table_of_records(path, records)


def _table_of_records(path: Path, records: list[dict[str, Any]]) -> pa.Table:
    names = list(dict.fromkeys(name for record in records for name in record))
    if len(names) == 1 or all(len(record) == 1 for record in records):
        return _table_of_lists(path, [pair for record in records for pair in record.items()])
    return pa.table({name: column_of([record.get(name) for record in records]) for name in names})


def _table_of_lists(path: Path, lists: Iterable[tuple[Any, Any]]) -> pa.Table:
    nodes: list[Any] = []
    topics: list[Any] = []
    for node, value in lists:
        found = value if isinstance(value, list) else [value]
        for topic in found:
            if not (topic is None or _is_name(topic)):
                raise BadInput(
                    f"{path}, topics of {_shown(node)}: {_shown(topic)} is no name of a topic; {_FORMS}"
                )
        nodes += [node] * (len(found) or 1)
        topics += found or [None]
    if not nodes:
        raise BadInput(f"{path}: empty; need a node with its topics")
    return pa.table({"key": _texts(nodes), "values": _texts(topics)})


def column_of(cells: Sequence[Any]) -> Any:
    """A column of Python values: names, or lists of names. Where anything else is among them it is told by the type
    that the column has.
    """
    lists = [cell for cell in cells if _is_list(cell)]
    if not all(map(_may_be_name, (one for cell in lists for one in cell))):
        return pa.nulls(len(cells), pa.list_(pa.struct([])))
    if not all(_is_list(cell) or _may_be_name(cell) for cell in cells):
        return pa.nulls(len(cells), pa.struct([]))
    if not lists:
        return _texts(cells)
    rows = [cell if _is_list(cell) else [] if cell is None else [cell] for cell in cells]
    return pa.array([list(map(_text, row)) for row in rows], pa.list_(pa.large_string()))


def _is_list(cell: Any) -> bool:
    return isinstance(cell, Iterable) and not isinstance(cell, str | bytes | Mapping)


def _may_be_name(cell: Any) -> bool:
    return isinstance(cell, str) or not isinstance(cell, Iterable)


def _is_name(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _texts(cells: Iterable[Any]) -> Any:
    return pa.array(map(_text, cells), pa.large_string())


def _text(cell: Any) -> str | None:
    if cell is None or isinstance(cell, str):
        return cell
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _shown(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else f"{text[:60]}…"
