"""Text files as tables: decoded, without comments, split into columns or lists, every cell as it stands."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from topicweave.data.bracketed import is_list
from topicweave.data.files import COMPRESSIONS, UNREADABLE, opened, unreadable
from topicweave.data.formats import delimiter_sign
from topicweave.data.languages import markdown_table, refuse_other_languages
from topicweave.data.parsing import WHITESPACE, fields_of, meant
from topicweave.data.sniffing import SAMPLE_LINES, SEPARATORS, Dialect, joined, sniff, split
from topicweave.errors import BadInput

LARGEST_FILE = 512 * 1024 * 1024
"""Bytes, unpacked, that are read at once; a larger file is a case for `topicweave workload import`."""
WRONG_LINES = 0.01
"""The share of lines with a wrong number of columns above which a file is refused."""


class TableOptions(msgspec.Struct, frozen=True):
    """What the caller knows about a file; what is None is found out."""

    node: str | None = None
    """The column of the nodes: its name, or its number from 1."""
    topic: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    lists: bool | None = None
    """Whether a line is a node and all its topics; if not, it is a row of columns with one topic."""


class TextRows(NamedTuple):
    """What a file holds, before names are looked at."""

    shape: str
    table: pa.Table
    types: tuple[str, ...] = ()
    header: bool = True
    """Whether the columns have names of their own."""
    first_line: int = 0
    """The line of a text file on which the first row is; 0 if there are no lines."""
    notes: tuple[str, ...] = ()


def whole(path: Path) -> bytes:
    """A file's bytes, unpacked."""
    too_large = BadInput(
        f"{path}: more than {LARGEST_FILE >> 20} MiB, too large to be read at once; make a workload of it on Spark: "
        f"topicweave workload import pairs {path} --out DIR"
    )
    try:
        if path.suffix.lower() not in COMPRESSIONS and path.stat().st_size > LARGEST_FILE:
            raise too_large
        with opened(str(path)) as stream:
            data = stream.read(LARGEST_FILE + 1)
    except UNREADABLE as error:
        raise unreadable(str(path), error) from None
    if len(data) > LARGEST_FILE:
        raise too_large
    return data


def read_text(path: Path, data: bytes, options: TableOptions) -> TextRows:
    text, notes = decoded(path, data)
    if "\n" not in text:
        text = text.replace("\r", "\n")
    _refuse_markup(path, text[:2000])
    excel = re.match(r'"?sep=([^\r\n\w])"?[ \t]*\r?\n', text, re.IGNORECASE)
    above = excel.end() if excel else 0
    start, comment = _after_comments(text[above:])
    start += above
    lines = _first_lines(text[start:])
    if not lines:
        raise BadInput(f"{path}: empty; need a line for each subscription: node,topic")
    given = None if options.delimiter is None else delimiter_sign(options.delimiter)
    if excel:
        given = given or excel[1]
        notes += (f"the first line, {excel[0].strip()!r}, names the separator",)
    line = text.count("\n", 0, start) + 1
    body, header = text[start:], options.header
    if given in (None, "|") and (bare := markdown_table(path, body, lines)):
        body, lines, given, line = bare, _first_lines(bare), "|", line + 1
        header = True if header is None else header
    elif given is None:
        refuse_other_languages(path, lines)
    dialect = sniff(path, lines, line, given, header, options.lists)
    between = SEPARATORS.get(dialect.delimiter, repr(dialect.delimiter))
    _refuse_open_quotes(path, body, dialect, line)
    if not dialect.sure and dialect.header:
        notes += ("the first line is taken for the names of the columns; if it is data, say --no-header",)
    elif not dialect.sure:
        notes += ("the first line is taken for data; if it names the columns, say --header",)
    if dialect.alike:
        notes += (
            "lines of equal length are read as a node and all its topics; if they are columns, say --columns",
        )
    if dialect.lists:
        inner = SEPARATORS.get(dialect.lists, repr(dialect.lists))
        named = ", with a header" if dialect.header else ""
        return TextRows(
            f"a node and its topics per line, between {inner}{named}",
            _lists(body, dialect),
            notes=notes,
        )
    table, left_out = _columns_of(path, body, dialect, line)
    if not dialect.header and comment:
        names = split(comment, dialect.delimiter, dialect.quote)
        if len(names) == table.num_columns and len(set(names)) == len(names):
            table = table.rename_columns([name.strip() for name in names])
    named = "with a header" if dialect.header else "without a header"
    guessed = not dialect.header and (options.lists, options.node, options.topic) == (None, None, None)
    if guessed and table.num_columns > 2 and table.column_names[0] == "column 1":
        notes += ("if a line is a node and all its topics, say --lists",)
    shape = f"columns between {between}, {named}"
    return TextRows(shape, table, dialect.types, dialect.header, line + dialect.header, notes + left_out)


def decoded(path: Path, data: bytes) -> tuple[str, tuple[str, ...]]:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        try:
            return data.decode("utf-16"), ("it is in UTF-16",)
        except UnicodeDecodeError:
            raise BadInput(f"{path}: not a text file; give lines of text, Parquet or JSON") from None
    for magic, what in _MAGIC.items():
        if data.startswith(magic):
            raise BadInput(
                f"{path}: {what}, not lines of text; name it by what it is, or give the text in it"
            )
    if b"\0" in data[:65536]:
        raise BadInput(f"{path}: not a text file; give lines of text, Parquet or JSON")
    try:
        return data.decode("utf-8-sig"), ()
    except UnicodeDecodeError:
        pass
    try:
        return data.decode("cp1252"), ("it is not in UTF-8; read as Windows-1252",)
    except UnicodeDecodeError:
        return data.decode("latin-1"), ("it is not in UTF-8; read as Latin-1",)


_MAGIC = {
    b"PK\x03\x04": "a zip archive (or an Excel file)",
    b"\x1f\x8b": "packed by gzip",
    b"\xfd7zXZ": "packed by xz",
    b"BZh": "packed by bzip2",
    b"\x28\xb5\x2f\xfd": "packed by zstd",
    b"PAR1": "Parquet",
    b"%PDF": "a PDF",
    b"SQLite format 3": "a database",
}


def _refuse_markup(path: Path, start: str) -> None:
    head = start.lstrip().lower()
    if head.startswith(("<!doctype html", "<html", "<head", "<body")):
        raise BadInput(f"{path}: an HTML page, not a table; download the file itself, not the page about it")
    if head.startswith("<?xml"):
        raise BadInput(f"{path}: XML, not a table; of OPML give the folder that holds the files")
    if re.match(r"(strict\s+)?(di)?graph\b[^\n]*\{", head):
        raise BadInput(f"{path}: a drawing (DOT), not a table; give its edges, a node and a topic per line")


def _first_lines(text: str) -> list[str]:
    lines: list[str] = []
    for line in io.StringIO(text, newline=None):
        if line.strip():
            lines.append(line.rstrip("\r\n"))
        if len(lines) == SAMPLE_LINES:
            break
    return lines


def _after_comments(text: str) -> tuple[int, str]:
    """Where the comments at the start end, and what the last of them says. Where most lines start with `#` it
    starts names.
    """
    sample = text[:65536].splitlines()
    if sum(line.startswith("#") for line in sample) > 0.5 * len(sample) and len(sample) > 5:
        return 0, ""
    position, comment = 0, ""
    while position < len(text):
        end = text.find("\n", position)
        line = text[position : end if end >= 0 else len(text)].strip()
        if line and line[0] not in "#%":
            break
        comment = line.lstrip("#% ") if line else comment
        position = end + 1 if end >= 0 else len(text)
    return position, comment


def _refuse_open_quotes(path: Path, text: str, dialect: Dialect, first: int) -> None:
    """Raise about a field whose quote is not closed on its line: names hold no line breaks."""
    quote, delimiter = dialect.quote, dialect.delimiter
    if not quote or delimiter == WHITESPACE or len(delimiter) > 1 or quote not in text:
        return
    lines = pa.array(text.split("\n"), pa.large_string())
    odd = pc.equal(pc.bit_wise_and(pc.count_substring(lines, quote), 1), 1)
    for number in np.flatnonzero(odd.to_numpy(zero_copy_only=False)).tolist():
        line = lines[number].as_py()
        if _ends_inside(line, delimiter, quote):
            shown = repr((line if len(line) <= 60 else f"{line[:60]}…").rstrip())
            where = f"{path}, line {first + number}"
            closed = re.compile(f"[^{quote}]*({quote * 2}[^{quote}]*)*{quote}\\s*({re.escape(delimiter)}|$)")
            for later in range(number + 1, len(lines)):
                if quote not in (text_of := lines[later].as_py()):
                    continue
                if closed.match(text_of):
                    raise BadInput(
                        f"{where}: a cell that goes on in line {first + later}: {shown}; line breaks in cells are not "
                        "read; put each row on one line"
                    )
                break
            raise BadInput(
                f"{where}: a quote that is not closed: {shown}; close it, or double it where it is meant itself"
            )


def _ends_inside(line: str, delimiter: str, quote: str) -> bool:
    inside, at_start = False, True
    place = 0
    while place < len(line):
        sign = line[place]
        if inside and sign == quote:
            if line[place + 1 : place + 2] == quote:
                place += 1
            else:
                inside = False
        elif not inside and sign == quote and at_start:
            inside = True
        at_start = not inside and sign == delimiter
        place += 1
    return inside


def _columns_of(path: Path, text: str, dialect: Dialect, first: int) -> tuple[pa.Table, tuple[str, ...]]:
    """Every column as text, as it stands: `007` is a name like any other. And what was left out."""
    names = list(dialect.names)
    if dialect.delimiter == WHITESPACE or len(dialect.delimiter) > 1:
        lines = pa.array(text.split("\n"), pa.large_string())
        places = meant(lines, dialect.header, True)
        fields = fields_of(lines, places, dialect.delimiter, [len(names)], empty=True)
        table = pa.table(dict(zip(names, fields.columns, strict=True)))
        wrong = [(at + first, reason) for at, reason in sorted(fields.wrong)]
    else:
        table, wrong = _by_arrow(path, text, dialect, first)
    if len(wrong) > WRONG_LINES * (table.num_rows + len(wrong)):
        number, reason = wrong[0]
        raise BadInput(
            f"{path}, line {number}: {reason}; {counted(len(wrong), 'line')} wrong, more than 1 %: mend them, or say --delimiter or --lists"
        )
    note = (
        f"{counted(len(wrong), 'line')} with a wrong number of columns left out, first line {wrong[0][0]}"
        if wrong
        else ""
    )
    return table, (note,) if note else ()


def _by_arrow(path: Path, text: str, dialect: Dialect, first: int) -> tuple[pa.Table, list[tuple[int, str]]]:
    from pyarrow import csv

    names = list(dialect.names)
    data = text.encode()
    wrong: list[tuple[int, str]] = []

    def skip(row: Any) -> str:
        wrong.append((row.number + first - 1, f"{row.actual_columns} columns, not {row.expected_columns}"))
        return "skip"

    try:
        table = csv.read_csv(
            io.BytesIO(data),
            csv.ReadOptions(
                column_names=names,
                skip_rows=1 if dialect.header else 0,
                use_threads=False,
                block_size=max(1 << 20, len(data)),  # one block: a line may be of any length
            ),
            csv.ParseOptions(
                delimiter=dialect.delimiter, quote_char=dialect.quote or False, invalid_row_handler=skip
            ),
            csv.ConvertOptions(
                column_types={name: pa.large_string() for name in names}, strings_can_be_null=False
            ),
        )
    except (OSError, pa.ArrowException) as error:
        raise BadInput(f"{path}: {sentence(error)}") from None
    return table, wrong


def _lists(text: str, dialect: Dialect) -> pa.Table:
    """A node and all its topics on each line."""
    nodes: list[str] = []
    topics: list[str] = []
    lines = [line for line in text.split("\n") if line.strip() and not line.startswith("#")]
    for line in lines[dialect.header :]:
        node, *others = split(line.rstrip("\r"), dialect.delimiter, dialect.quote)
        if is_list(rest := joined(others, dialect.delimiter)):
            others = [rest]
        elif dialect.in_a_cell:
            others = others[0].split(dialect.lists) if others else []
        found = [other.strip() for other in others if other.strip()] or [""]
        nodes += [node] * len(found)
        topics += found
    return pa.table(
        {"1st name": pa.array(nodes, pa.large_string()), "others": pa.array(topics, pa.large_string())}
    )


def counted(count: int, what: str = "row") -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def sentence(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
