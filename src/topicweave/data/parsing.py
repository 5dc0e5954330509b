"""What lines of the known formats say, a block of lines at a time, in whole-column operations.

Each `…_lines` function makes a `Parse` (see lines.py); Spark tasks and readers in memory use the same.
Comments (`#`) and blank lines are passed over.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from topicweave.data.lines import Parse, Parsed

PAIR = pa.schema([("node", pa.string()), ("topic", pa.string()), ("time", pa.float64())])
CHANGE = pa.schema(
    [("time", pa.float64()), ("node", pa.string()), ("change", pa.string()), ("sessions", pa.int64())]
)
RTT = pa.schema([("node", pa.string()), ("peer", pa.string()), ("rtt", pa.float64())])
PLACE = pa.schema([("node", pa.string()), ("x", pa.float64()), ("y", pa.float64()), ("height", pa.float64())])
AS_LINK = pa.schema([("source", pa.string()), ("target", pa.string()), ("relation", pa.int64())])

LONGEST_NAME = 4096
"""Bytes of a node's or a topic's name."""
WHITESPACE, QUOTE = "whitespace", '"'
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


class Fields(NamedTuple):
    """Lines that have the wanted number of fields, column by column."""

    at: npt.NDArray[np.int64]
    columns: list[Any]
    wrong: list[tuple[int, str]]


def meant(texts: Any, header: bool, first: bool) -> npt.NDArray[np.int64]:
    """Places of the lines that are data: not blank, no comment, not the header."""
    trimmed = pc.utf8_trim_whitespace(texts)
    data = pc.and_(pc.not_equal(trimmed, ""), pc.invert(pc.starts_with(trimmed, "#")))
    places = np.flatnonzero(data.to_numpy(zero_copy_only=False))
    return places[1:] if header and first else places


def cells(line: str, delimiter: str) -> list[str]:
    """A line's cells. A sign within quotes separates nothing; quotes that are not around whole cells are none."""
    if len(delimiter) == 1 and QUOTE in line:
        try:
            return next(csv.reader([line], delimiter=delimiter, strict=True))
        except csv.Error:
            pass
    return line.split(delimiter)


def _split(lines: Any, delimiter: str) -> Any:
    if len(delimiter) > 1 or not pc.any(pc.match_substring(lines, QUOTE)).as_py():
        return pc.split_pattern(lines, delimiter)
    return pa.array([cells(line, delimiter) for line in lines.to_pylist()], pa.list_(pa.string()))


def fields_of(
    texts: Any, places: npt.NDArray[np.int64], delimiter: str, wanted: Sequence[int], empty: bool = False
) -> Fields:
    """Split lines; those with another number of fields than `wanted`, or unless they may an `empty` one, are wrong.

    With several numbers wanted, the columns are those that all have.
    """
    lines = texts.take(pa.array(places))
    if delimiter == WHITESPACE:
        lists = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(lines))
    else:
        lists = _split(lines, delimiter)
    counts = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    fits = np.isin(counts, wanted)
    words = " or ".join(str(count) for count in wanted)
    between = "white space" if delimiter == WHITESPACE else repr(delimiter)
    wrong = [
        (int(places[at]), f"{counts[at]} fields between {between}, not {words}")
        for at in np.flatnonzero(~fits).tolist()
    ]
    offsets = lists.offsets.to_numpy()[:-1]
    flat = pc.utf8_trim_whitespace(lists.values)
    columns = [flat.take(pa.array(offsets[fits] + column)) for column in range(min(wanted))]
    found = Fields(places[fits], columns, wrong)
    return found if empty else _without(found, [pc.equal(column, "") for column in columns], "an empty field")


def _without(fields: Fields, bad: Sequence[Any], reason: str) -> Fields:
    """The lines where none of the conditions holds; the others are wrong for the reason."""
    mask = np.zeros(len(fields.at), np.bool_)
    for condition in bad:
        mask |= condition.to_numpy(zero_copy_only=False)
    if not mask.any():
        return fields
    keep = pa.array(~mask)
    return Fields(
        fields.at[~mask],
        [column.filter(keep) for column in fields.columns],
        [*fields.wrong, *((at, reason) for at in fields.at[mask].tolist())],
    )


def _numbers_only(fields: Fields, column: int, what: str) -> Fields:
    """The lines whose column is a number."""
    bad = pc.invert(pc.match_substring_regex(fields.columns[column], _NUMBER))
    return _without(fields, [bad], f"{what} is not a number")


def _parsed(fields: Fields, columns: dict[str, Any], schema: pa.Schema) -> Parsed:
    count = len(fields.at)
    rows = {field.name: columns.get(field.name, pa.nulls(count, field.type)) for field in schema}
    table = pa.table({"at": fields.at, **rows})
    return Parsed(table, count, fields.wrong)


def pair_lines(delimiter: str, columns: int, node: int, topic: int, time: int | None, header: bool) -> Parse:
    """User and topic (and, in an edit log, a time) in given columns."""

    def parse(texts: Any, first: bool) -> Parsed:
        fields = fields_of(texts, meant(texts, header, first), delimiter, [columns])
        if time is not None:
            fields = _numbers_only(fields, time, "the time")
        long = [pc.greater(pc.binary_length(fields.columns[at]), LONGEST_NAME) for at in (node, topic)]
        fields = _without(fields, long, f"a name of more than {LONGEST_NAME:,} bytes")
        found = {"node": fields.columns[node], "topic": fields.columns[topic]}
        if time is not None:
            found["time"] = fields.columns[time].cast(pa.float64())
        return _parsed(fields, found, PAIR)

    return parse


def adjacency_lines(delimiter: str, list_delimiter: str, header: bool) -> Parse:
    """A user and the list of those it is linked to. A user with an empty list gives one row without topic."""

    def parse(texts: Any, first: bool) -> Parsed:
        places = meant(texts, header, first)
        lines = pc.split_pattern(texts.take(pa.array(places)), delimiter, max_splits=1)
        counts = pc.list_value_length(lines).to_numpy(zero_copy_only=False)
        offsets, flat = lines.offsets.to_numpy()[:-1], pc.utf8_trim_whitespace(lines.values)
        user = flat.take(pa.array(offsets))
        fits = (counts == 2) & pc.not_equal(user, "").to_numpy(zero_copy_only=False)
        wrong = [
            (int(places[at]), f"no {delimiter!r} between a user and a list")
            for at in np.flatnonzero(~fits).tolist()
        ]
        user = user.filter(pa.array(fits))
        friends = pc.split_pattern(flat.take(pa.array(offsets[fits] + 1)), list_delimiter)
        owner = np.repeat(np.arange(len(user)), pc.list_value_length(friends).to_numpy(zero_copy_only=False))
        friend = pc.utf8_trim_whitespace(friends.flatten())
        topic = pc.if_else(pc.equal(friend, ""), pa.scalar(None, pa.string()), friend)
        rows = pa.table(
            {
                "at": places[fits][owner],
                "node": user.take(pa.array(owner)),
                "topic": topic,
                "time": pa.nulls(len(owner), pa.float64()),
            }
        )
        return Parsed(rows, int(fits.sum()), wrong)

    return parse


def machine_event_lines(delimiter: str) -> Parse:
    """Google ClusterData2011-2: microseconds, machine, 0 add / 1 remove / 2 update, platform, cpu, memory."""

    def parse(texts: Any, first: bool) -> Parsed:
        fields = fields_of_first(texts, meant(texts, False, first), delimiter, 6, 3)
        fields = _numbers_only(fields, 0, "the time")
        known = pc.is_in(fields.columns[2], value_set=pa.array(["0", "1", "2"]))
        fields = _without(fields, [pc.invert(known)], "the event is none of 0 (add), 1 (remove), 2 (update)")
        negative = pc.starts_with(fields.columns[0], "-")
        fields = _without(fields, [negative], "the time is before the start")
        word = pc.index_in(fields.columns[2], value_set=pa.array(["0", "1", "2"]))
        found = {
            "time": pc.divide(fields.columns[0].cast(pa.float64()), 1e6),
            "node": fields.columns[1],
            "change": pa.array(["join", "leave", "update"]).take(word),
        }
        return _parsed(fields, found, CHANGE)

    return parse


def fields_of_first(
    texts: Any, places: npt.NDArray[np.int64], delimiter: str, wanted: int, needed: int
) -> Fields:
    """As `fields_of`, where only the first `needed` must not be empty."""
    lines = texts.take(pa.array(places))
    lists = pc.split_pattern(lines, delimiter)
    counts = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    fits = counts == wanted
    wrong = [
        (int(places[at]), f"{counts[at]} fields between {delimiter!r}, not {wanted}")
        for at in np.flatnonzero(~fits).tolist()
    ]
    offsets, flat = lists.offsets.to_numpy()[:-1], pc.utf8_trim_whitespace(lists.values)
    columns = [flat.take(pa.array(offsets[fits] + column)) for column in range(needed)]
    found = Fields(places[fits], columns, wrong)
    return _without(found, [pc.equal(column, "") for column in columns], "an empty field")


def availability_lines(delimiter: str) -> Parse:
    """A host, how many sessions it has, and their starts and ends in seconds.

    Sessions that touch become one and those of no length none, for nobody changes twice in one moment; the
    recorded number stands in `sessions`, in the host's first row. A host never up gives a row without change.
    """

    def parse(texts: Any, first: bool) -> Parsed:
        places = meant(texts, False, first)
        at: list[int] = []
        columns: dict[str, list[Any]] = {name: [] for name in CHANGE.names}
        wrong: list[tuple[int, str]] = []
        good = 0
        for place, line in zip(places.tolist(), texts.take(pa.array(places)).to_pylist(), strict=True):
            host, *rest = line.split(delimiter)
            changes = _sessions(rest)
            if isinstance(changes, str) or not host.strip():
                wrong.append((place, changes if isinstance(changes, str) else "no host"))
                continue
            good += 1
            rows: Sequence[tuple[float | None, str | None]] = changes or [(None, None)]
            at += [place] * len(rows)
            columns["node"] += [host.strip()] * len(rows)
            columns["time"] += [time for time, _ in rows]
            columns["change"] += [change for _, change in rows]
            columns["sessions"] += [int(rest[0]), *[None] * (len(rows) - 1)]
        data = {field.name: pa.array(columns[field.name], field.type) for field in CHANGE}
        return Parsed(pa.table({"at": pa.array(at, pa.int64()), **data}), good, wrong)

    return parse


def _sessions(cells: list[str]) -> list[tuple[float, str]] | str:
    """The joins and leaves of a line, or what is wrong with it."""
    try:
        count, times = int(cells[0]), [float(cell) for cell in cells[1:] if cell.strip()]
    except (IndexError, ValueError):
        return "not a host, a number of sessions and their times"
    if len(times) != 2 * count:
        return f"{len(times)} times for {count} sessions, not {2 * count}"
    if any(not np.isfinite(time) or time < 0 for time in times):
        return "a time that is negative or no number"
    if any(later < earlier for earlier, later in pairwise(times)):
        return "sessions that go back in time"
    changes: list[tuple[float, str]] = []
    for number, time in enumerate(times):
        if changes and changes[-1][0] == time:
            changes.pop()
        else:
            changes.append((time, "leave" if number % 2 else "join"))
    return changes


def rtt_lines(delimiter: str, hosts: int, per_second: float = 1000.0) -> Parse:
    """One row of a square matrix of times per line, milliseconds if not said otherwise; the line's number is
    the host's.
    """

    def parse(texts: Any, first: bool) -> Parsed:
        fields = fields_of(texts, meant(texts, False, first), delimiter, [hosts])
        cells = pa.concat_arrays(fields.columns)  # column after column
        numeric = pc.match_substring_regex(cells, _NUMBER).to_numpy(zero_copy_only=False)
        bad = ~numeric.reshape(hosts, -1).all(axis=0)
        fields = _without(fields, [pa.array(bad)], "a time that is not a number")
        lines = len(fields.at)
        cells = pa.concat_arrays(fields.columns).cast(pa.float64()).to_numpy(zero_copy_only=False)
        peers = pa.array([str(number) for number in range(hosts)])
        rows = pa.table(
            {
                "at": np.repeat(fields.at, hosts),
                # The host follows from the line's number, which is not known here.
                "node": pa.nulls(lines * hosts, pa.string()),
                "peer": peers.take(pa.array(np.tile(np.arange(hosts), lines))),
                "rtt": cells.reshape(hosts, -1).T.ravel() / per_second,
            }
        )
        return Parsed(rows, lines, fields.wrong)

    return parse


def place_lines(delimiter: str, columns: int, node: int, x: int, y: int, header: bool) -> Parse:
    """A host and its coordinates; without a header also `id x y h HEIGHT`, as Vivaldi's are written."""

    def parse(texts: Any, first: bool) -> Parsed:
        places = meant(texts, header, first)
        lists = texts.take(pa.array(places))
        with_height = pc.match_substring_regex(lists, r"\sh\s+\S+\s*$").to_numpy(zero_copy_only=False)
        if header or not with_height.any():
            fields = fields_of(texts, places, delimiter, [columns])
            height = pa.nulls(len(fields.at), pa.float64())
        else:
            fields = fields_of(texts, places, delimiter, [5])
            fields = _numbers_only(fields, 4, "the height")
            height = fields.columns[4].cast(pa.float64())
        kept = Fields(fields.at, [*fields.columns, height], fields.wrong)
        kept = _numbers_only(_numbers_only(kept, x, "x"), y, "y")
        found = {
            "node": kept.columns[node],
            "x": kept.columns[x].cast(pa.float64()),
            "y": kept.columns[y].cast(pa.float64()),
            "height": kept.columns[-1],
        }
        return _parsed(kept, found, PLACE)

    return parse


def as_link_lines(delimiter: str, with_relation: bool) -> Parse:
    """Two neighbouring ASes, and with a third field how they relate (-1: the second is the first's customer)."""

    def parse(texts: Any, first: bool) -> Parsed:
        fields = fields_of(texts, meant(texts, False, first), delimiter, [3 if with_relation else 2])
        found = {"source": fields.columns[0], "target": fields.columns[1]}
        if with_relation:
            known = pc.is_in(fields.columns[2], value_set=pa.array(["-1", "0", "1", "2"]))
            fields = _without(fields, [pc.invert(known)], "the relation is none of -1, 0, 1, 2")
            found = {
                "source": fields.columns[0],
                "target": fields.columns[1],
                "relation": fields.columns[2].cast(pa.int64()),
            }
        return _parsed(fields, found, AS_LINK)

    return parse
