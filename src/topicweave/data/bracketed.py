"""Lists that a program wrote into a cell of text: `['a', 'b']`, `["a", "b"]`, `('a',)`, `{a,b}`."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from topicweave.errors import BadInput

_BRACKETED = r"(?s)^\s*(\[.*\]|\(.*\)|\{.*\})\s*$"
_QUOTED_WITHIN = r"^\s*([\[({]\s*['\"]|\[\s*[\[({])"
_SEVERAL_WITHIN = r",|\d\s+\d"
_ITEM = re.compile(
    r"""\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^\s'"\[\](){},;|][^\[\](){},;|]*?))\s*(,|$|(?=['"]))""",
    re.DOTALL,
)
_EMPTY = r"^\s*(frozen)?set\(\)\s*$"


def is_list(text: str) -> bool:
    """Whether a text is, or is meant as, a list in brackets; `[a], [b]` is none."""
    return _bracketed(text) and (re.match(_QUOTED_WITHIN, text) is not None or items_of(text) is not None)


def _bracketed(text: str) -> bool:
    return re.match(_BRACKETED, text) is not None


def items_of(cell: str) -> list[str] | None:
    """The items of a list in brackets; None if it is none, or holds other lists or objects."""
    if re.match(_EMPTY, cell):
        return []
    inner, items, place = cell.strip()[1:-1], [], 0
    while place < len(inner.rstrip()):
        found = _ITEM.match(inner, place)
        if not found:
            return None
        single, double, bare, _ = found.groups()
        if bare is None:
            items.append(re.sub(r"\\(['\"\\/])", r"\1", double if single is None else single))
        elif re.search(r":\s", bare) or "..." in bare:
            return None
        else:
            items += bare.split() if re.fullmatch(r"[\d.]+(\s+[\d.]+)+", bare) else [bare]
        place = found.end()
    return items


def holds_lists(cells: Any) -> bool:
    """Whether cells of a column are such lists: an item is between quotes, or half of the cells have brackets and
    one has several items. A name such as `[deleted]` is no list.
    """
    brackets = cells.filter(pc.match_substring_regex(cells, _BRACKETED))
    if not len(brackets):
        return False
    if pc.any(pc.match_substring_regex(brackets, _QUOTED_WITHIN)).as_py():
        return True
    several = pc.any(pc.match_substring_regex(brackets, _SEVERAL_WITHIN)).as_py()
    return bool(several and 2 * len(brackets) >= (pc.sum(pc.not_equal(cells, "")).as_py() or 0))


def lists_in(label: str, column: str, cells: Any, first_line: int) -> Any:
    """The lists in the cells of a column that holds them; a cell without brackets is one name. `first_line` is the
    line of the first cell, 0 if there are no lines.
    """
    listed = pc.or_(
        pc.match_substring_regex(cells, r"^\s*\[|" + _EMPTY), pc.match_substring_regex(cells, _BRACKETED)
    )
    values = cells.to_pylist()
    found: list[list[str]] = [[value] if value else [] for value in values]
    for row in np.flatnonzero(listed.to_numpy()).tolist():
        items = items_of(values[row]) if _bracketed(values[row]) or re.match(_EMPTY, values[row]) else None
        if items is None:
            where = f"line {first_line + row}" if first_line else f"row {row + 1}"
            text = values[row] if len(values[row]) <= 60 else f"{values[row][:60]}…"
            raise BadInput(
                f"{label}, {where}: {text!r} in {column} is not a list of names; write ['a', 'b'], or say "
                "--columns if it is one name"
            )
        found[row] = items
    return pa.array(found, pa.list_(pa.large_string()))
