"""How a text file of subscriptions is written: separator, quotes, header, columns or lists.

DuckDB's CSV sniffer finds separator, quote and types from a sample of the lines. It knows neither runs of
blanks nor `::` nor arrows, wants every line of one length, and takes the first line of an all-text file for a
header. These are decided here.
"""

from __future__ import annotations

import csv
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from topicweave.data.bracketed import is_list
from topicweave.data.parsing import LONGEST_NAME, WHITESPACE
from topicweave.errors import BadInput, TopicweaveError

SAMPLE_LINES = 2000
SEPARATORS = {
    ",": "commas",
    "\t": "tabs",
    ";": "semicolons",
    "|": "bars",
    "::": "double colons",
    WHITESPACE: "blanks",
    ":": "colons",
    " ": "blanks",
    "->": "arrows",
    "=>": "arrows",
}
ARROWS = tuple(sign for sign, name in SEPARATORS.items() if name == "arrows")
"""Between them and the names there may be blanks, which must not be taken for the separators."""

MISSING = ("", "NaN", "nan", "null", "NULL", "None", "NA", "N/A", "#N/A", "<NA>", "\\N")
"""Words that programs write for a name that is not there."""

NODE_WORDS = [
    "node",
    "user",
    "reader",
    "subscriber",
    "follower",
    "member",
    "client",
    "consumer",
    "customer",
    "buyer",
    "person",
    "player",
    "account",
    "listener",
    "viewer",
    "visitor",
    "student",
    "employee",
    "author",
    "editor",
    "device",
    "host",
    "agent",
    "who",
    "from",
    "src",
    "source",
]
TOPIC_WORDS = [
    "topic",
    "feed",
    "channel",
    "followed",
    "group",
    "page",
    "repo",
    "repository",
    "artist",
    "game",
    "product",
    "item",
    "movie",
    "book",
    "song",
    "track",
    "album",
    "place",
    "location",
    "venue",
    "tag",
    "hashtag",
    "community",
    "forum",
    "subreddit",
    "article",
    "url",
    "event",
    "category",
    "stock",
    "symbol",
    "subject",
    "what",
    "to",
    "dst",
    "target",
    "friend",
]
_OTHER_WORDS = [
    "id",
    "ids",
    "name",
    "key",
    "index",
    "weight",
    "count",
    "rating",
    "score",
    "time",
    "timestamp",
    "date",
    "when",
    "value",
    "type",
    "label",
]


class Dialect(msgspec.Struct, frozen=True):
    """How the lines of a file are written."""

    delimiter: str
    quote: str
    names: tuple[str, ...]
    """Of the columns; made up if nothing names them."""
    header: bool
    """Whether the first line names the columns."""
    sure: bool
    """Whether that could be told."""
    types: tuple[str, ...] = ()
    """What DuckDB takes the columns for; empty if it was not asked."""
    lists: str = ""
    """If lines are a node and all its topics: the separator of the topics."""
    in_a_cell: bool = False
    """Whether these topics are one cell, of two."""
    alike: bool = False
    """Whether lines of equal length are taken for lists because names recur in any place."""


def sniff(
    path: Path,
    lines: Sequence[str],
    first_line: int,
    delimiter: str | None,
    header: bool | None,
    as_lists: bool | None = None,
) -> Dialect:
    """How these first lines of a file are written; what is given is not guessed."""
    for number, line in enumerate(lines, start=first_line):
        if len(line) > LONGEST_NAME and (size := max(map(len, re.split(r"[,;|:\s]", line)))) > LONGEST_NAME:
            raise too_long(f"{path}, line {number}", size)
    given, delimiter = delimiter, delimiter or _arrow(lines)
    found = _by_duckdb(lines, delimiter) if delimiter is None or len(delimiter) == 1 else None
    if found is None or len(found["types"]) < 2 or (delimiter is None and _better(lines, found)):
        found = _by_counting(path, lines, first_line, delimiter)
    delimiter, quote, types = found["delimiter"], found["quote"], found["types"]
    rows = [split(line, delimiter, quote) for line in lines]
    told, sure = _has_header(rows) if header is None else (header, True)
    above_lists = _names_lists(rows) or (as_lists is True and told) if header is None else header
    lists, in_a_cell = ("", False) if as_lists is False else _lists(rows, delimiter, above_lists)
    alike = not lists and as_lists is None and not told and are_lists(rows)
    if alike or (as_lists and not lists):
        lists, in_a_cell = _inner_sign(rows[above_lists:]) or (delimiter, False)
    if lists:
        if given is None and SEPARATORS.get(lists) == "blanks" and _are_sentences(rows):
            raise BadInput(
                f"{path}: sentences, not a table; need a node and its topics per line (if it is: --delimiter says what is between them)"
            )
        return Dialect(
            delimiter,
            quote,
            ("1st name", "others"),
            above_lists,
            sure or as_lists is None,
            lists=lists,
            in_a_cell=in_a_cell,
            alike=alike,
        )
    first = [name.strip() for name in rows[0]]
    names = tuple(
        (name if told and name else f"column {number}") for number, name in enumerate(first, start=1)
    )
    return Dialect(delimiter, quote, _distinct(names), told, sure, tuple(types))


def split(line: str, delimiter: str, quote: str) -> list[str]:
    """The fields of a line."""
    if delimiter == WHITESPACE:
        return line.split()
    if len(delimiter) > 1 or not quote or quote not in line:
        return line.split(delimiter)
    return next(csv.reader([line], delimiter=delimiter, quotechar=quote), [])


def joined(fields: Sequence[str], delimiter: str) -> str:
    """Fields as they stood in their line, but for quotes."""
    return (" " if delimiter == WHITESPACE else delimiter).join(fields)


def _quotes(line: str, delimiter: str, quote: str) -> bool:
    """Whether a line has a field between quotes."""
    mark, end = re.escape(quote), re.escape(delimiter)
    return re.search(f"(^|{end}){mark}[^{mark}]*{mark}({end}|$)", line) is not None


def _arrow(lines: Sequence[str]) -> str | None:
    """The arrow that nearly every line has one of."""
    return next(
        (arrow for arrow in ARROWS if sum(line.count(arrow) == 1 for line in lines) >= 0.9 * len(lines)), None
    )


def _by_duckdb(lines: Sequence[str], delimiter: str | None) -> dict[str, Any] | None:
    try:
        import duckdb
    except ModuleNotFoundError:
        raise TopicweaveError(
            "reading a text file of subscriptions needs duckdb: pip install 'topicweave[compare]'"
        ) from None

    with tempfile.TemporaryDirectory() as folder:
        sample = Path(folder, "sample.csv")
        sample.write_text("\n".join(lines) + "\n", encoding="utf-8")
        given = {} if delimiter is None else {"delim": delimiter}
        options = "".join(f", {name}=$${value}$$" for name, value in given.items())
        with duckdb.connect() as connection:
            try:
                rows = connection.execute(
                    f"select Delimiter, Quote, Columns from sniff_csv($${sample}$${options})"
                ).fetchall()
            except duckdb.Error:
                return None
    found, quote, columns = rows[0]
    if quote == "(empty)" or not any(_quotes(line, found, quote) for line in lines):
        quote = (
            '"'  # Two names with an apostrophe each look like one that goes over several lines. Names don't.
        )
    return {
        "delimiter": found,
        "quote": quote,
        "types": [column["type"] for column in columns],
    }


def _better(lines: Sequence[str], found: dict[str, Any]) -> bool:
    """Whether another separator gives all lines the same number of fields, and this one does not."""

    def even(delimiter: str, quote: str) -> bool:
        widths = {len(split(line, delimiter, quote)) for line in lines}
        return len(widths) == 1 and widths != {1}

    return not even(found["delimiter"], found["quote"]) and any(even(other, '"') for other in SEPARATORS)


def _by_counting(path: Path, lines: Sequence[str], first_line: int, delimiter: str | None) -> dict[str, Any]:
    """The first separator that gives most lines the same number of fields, or failing that one that most lines have."""
    best: tuple[float, str] = (0.0, "")
    candidates = [delimiter] if delimiter else [*SEPARATORS]
    for candidate in candidates:
        counts = Counter(len(split(line, candidate, '"')) for line in lines)
        width, often = counts.most_common(1)[0]
        if width > 1 and often >= 0.9 * len(lines):
            return {"delimiter": candidate, "quote": '"', "types": [""] * width}
        several = 1.0 - counts[1] / len(lines)
        if several > max(best[0], 0.5):
            best = (several, candidate)
    if not best[1]:
        between = (
            SEPARATORS.get(delimiter or "", repr(delimiter)) if delimiter else "comma, tab, ; | : or blanks"
        )
        for number, line in enumerate(lines, first_line):
            if all(len(split(line, candidate, '"')) == 1 for candidate in candidates):
                raise BadInput(
                    f"{path}, line {number}: one column, {_shown(line)}; need a node and a topic, with {between} between them"
                )
        raise BadInput(
            f"{path}: no separator that most lines have; need a node and a topic, with {between} between them"
        )
    return {"delimiter": best[1], "quote": '"', "types": []}


def _lists(rows: list[list[str]], delimiter: str, header: bool) -> tuple[str, bool]:
    """The separator of the topics, if every line is a node and all its topics, and whether these share a
    cell; else nothing.
    """
    below = rows[header:]
    if 2 * sum(is_list(joined(row[1:], delimiter)) for row in below) >= max(1, len(below)):
        # Lists in brackets, each in a cell of a table; or without quotes, so that their items look like cells.
        return delimiter if any(len(row) > 2 for row in below) else "", False
    if len(rows) < 3 and delimiter not in (":", *ARROWS):
        return "", False
    widths = Counter(len(row) for row in below)
    if widths.most_common(1)[0][1] < 0.9 * len(below):
        # Two lengths are lines that are wrong; more are lists, which have every length.
        return delimiter if len(widths) > 2 or delimiter in (WHITESPACE, "\t", " ") else "", False
    if header and len(rows[0]) == 2 < widths.most_common(1)[0][0]:
        return delimiter, False
    if (
        len(below[0]) != 2
        or (header and is_singular(rows[0][-1]))
        or len({row[0] for row in below}) < len(below)
    ):
        return "", False
    cells = [row[1] for row in below if len(row) == 2]
    for sign in ",;|":
        several = sum(
            _is_list(cell, sign, sure=header or delimiter in (":", *ARROWS), decimals=delimiter == ";")
            for cell in cells
        )
        if several >= 0.3 * len(cells):
            return sign, True
    return "", False


def are_lists(rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows of equal length are a node and its topics each: nodes stand once, no row repeats a name, and what
    stands in one place stands in the next one too. Numbers coincide more often: these need another column.
    """
    width = Counter(map(len, rows)).most_common(1)[0][0]
    full = [[cell.strip() for cell in row] for row in rows if len(row) == width]
    nodes = {row[0] for row in full}
    lists = [[cell for cell in row[1:] if cell not in MISSING] for row in full]
    repeated = sum(len(set(topics)) < len(topics) for topics in lists)
    if len(full) < 0.9 * len(rows) or len(nodes) < len(full) or repeated > 0.1 * len(full):
        return False
    numbers = all(map(_is_number, nodes)) or all(_is_number(topic) for topics in lists for topic in topics)
    columns = [set(column) - set(MISSING) for column in list(zip(*full, strict=True))[1:]]
    return width >= (4 if numbers else 3) and all(
        len(one & other) >= (0.5 if numbers else 0.25) * max(len(one), len(other), 1)
        for one, other in pairwise(columns)
    )


def _inner_sign(rows: Sequence[Sequence[str]]) -> tuple[str, bool] | None:
    """What separates the topics of rows that have them in one cell."""
    cells = [row[1] for row in rows if len(row) == 2]
    sign = max(",;|", key=lambda sign: sum(sign in cell for cell in cells))
    return (sign, True) if max(map(len, rows)) == 2 and any(sign in cell for cell in cells) else None


def _are_sentences(rows: list[list[str]]) -> bool:
    """Whether words end as in sentences; lists between blanks have such names seldom, but for the first: `ann: x y`."""
    ends = sum(any(re.search(r"\w[.,;:!?]$", word) for word in row[1:]) for row in rows)
    return ends >= 0.3 * len(rows)


def _is_list(cell: str, sign: str, *, sure: bool, decimals: bool) -> bool:
    """Whether a cell holds several names. A comma with a blank behind it stands in sentences too; one between
    digits may be a decimal sign.
    """
    if len([name for name in cell.split(sign) if name.strip()]) < 2:
        return False
    return sure or not (", " in cell or (decimals and re.fullmatch(r"\s*\d+,\d+\s*", cell)))


def is_singular(name: str) -> bool:
    """Whether a column's name says that each cell is one thing: `topic` is one, `topics` are several."""
    return not name.strip().lower().endswith("s")


def _names_lists(rows: list[list[str]]) -> bool:
    """Whether the first line says what stands in the lists below: two words that name columns, and nothing
    else has these names.
    """
    first = [cell.strip() for cell in rows[0]]
    others = {cell.strip() for row in rows[1:] for cell in row}
    return len(first) == 2 and not others & set(first) and all(map(names_a_column, first))


def names_a_column(cell: str) -> bool:
    """Whether a cell has a word that names columns."""
    return bool(words(cell) & {*NODE_WORDS, *TOPIC_WORDS, *_OTHER_WORDS})


def _has_header(rows: list[list[str]]) -> tuple[bool, bool]:
    """Whether the first row names columns, and whether that is sure."""
    first = [cell.strip() for cell in rows[0]]
    others = rows[1:]
    if any(_is_number(cell) for cell in first) or not any(first):
        return False, True
    named = list(map(names_a_column, first))
    recurs = [
        bool(cell) and any(place < len(row) and row[place].strip() == cell for row in others)
        for place, cell in enumerate(first)
    ]
    even = [row for row in others if len(row) == len(first)]
    numeric = [place for place in range(len(first)) if even and all(_is_number(row[place]) for row in even)]
    # A word above a column of numbers is its name; so is one that names columns and stands nowhere else.
    if any(first[place] not in MISSING for place in numeric):
        return True, True
    if any(recurs):
        # Below `user,topic` a topic may be called `topic`.
        likely = first[0].lower() in NODE_WORDS and any(cell.lower() in TOPIC_WORDS for cell in first)
        return likely and not all(recurs), not likely
    return any(named), sum(named) > 1 or not others


def too_long(where: str, size: int) -> BadInput:
    return BadInput(
        f"{where}: a name of {size:,} bytes; names have at most {LONGEST_NAME:,}: is a quote or a line break missing?"
    )


def words(name: str) -> set[str]:
    """The words of a column's name, in lower case and in the singular: `userIDs` has `user` and `id`."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)
    lower = {part.lower() for part in parts} | {name.strip().lower()}
    return lower | {word.removesuffix("s") for word in lower} | {word.removesuffix("id") for word in lower}


def is_plain_number(type_name: str) -> bool:
    """Whether a column of this type of DuckDB's holds fractions or moments rather than names."""
    return type_name.startswith(("DOUBLE", "FLOAT", "DECIMAL", "DATE", "TIME"))


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", text) is not None


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(found)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}…")
