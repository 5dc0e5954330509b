"""Latency of one's own: a matrix, a list of pairs, coordinates, or a folder that `workload import` made.

Matrices and pairs are round-trip times, coordinates are one way; numbers are milliseconds unless said
otherwise. What can't be true (not a number, negative, a median that no network has) is refused with its
place.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from topicweave.data.files import is_tar
from topicweave.data.networks import read_slices
from topicweave.data.text_tables import TableOptions, TextRows, read_text, whole
from topicweave.errors import BadInput
from topicweave.model.arrays import FloatArray
from topicweave.sim.latency_choice import HELP, Distances

Unit = Literal["us", "ms", "s"]

_MILLISECONDS = {"us": 1e-3, "ms": 1.0, "s": 1e3}
_PLAUSIBLE = (0.05, 3000.0)
"""Milliseconds: medians of round trips from within a rack to by satellite."""


def read_network(
    path: Path, unit: Unit | None = None, note: Callable[[str], object] = lambda _words: None
) -> Distances:
    """The places in a file or folder, and how far they are apart. `note` is told what a user should know of that."""
    scale = _MILLISECONDS[unit or "ms"]
    if not path.exists():
        raise BadInput(f"latency {str(path)!r}: neither known nor a file; say {HELP}")
    if path.is_dir():
        network = _imported(path)
        scale = scale if network.rtt_ms is None else 1.0  # an imported matrix knows its unit
    elif is_tar(str(path)):
        slices = read_slices(path)
        network = _matrix(path, _numbered(slices.shape[1]), slices)
    else:
        rows = read_text(path, whole(path), TableOptions(lists=False))
        for one in rows.notes:
            note(f"{path}: {one}")
        network = _table(path, rows, note)
    network = Distances(
        network.names,
        None if network.rtt_ms is None else network.rtt_ms * scale,
        None if network.points is None else network.points * scale,
        None if network.heights is None else network.heights * scale,
    )
    _refuse_implausible(path, network, unit)
    return network


def _imported(folder: Path) -> Distances:
    """What `workload import rtt` or `workload import coordinates` wrote."""
    if (folder / "rtt.parquet").exists():
        table = pq.read_table(folder / "rtt.parquet")
        slices, node, peer = (
            table[name].to_numpy(zero_copy_only=False) for name in ("slice", "node", "peer")
        )
        names = sorted(set(node) | set(peer), key=_natural)
        place = {name: number for number, name in enumerate(names)}
        rtt = np.full((int(slices.max()) + 1, len(names), len(names)), np.nan)
        rtt[slices, [place[name] for name in node], [place[name] for name in peer]] = (
            table["rtt"].to_numpy() * 1000.0
        )
        return _matrix(folder / "rtt.parquet", names, rtt)
    if (folder / "hosts.parquet").exists():
        hosts = pq.read_table(folder / "hosts.parquet")
        if {"x", "y"} <= set(hosts.column_names):
            points = np.stack([hosts[axis].to_numpy().astype(np.float64) for axis in ("x", "y")], axis=1)
            heights = hosts["height"].to_numpy() if "height" in hosts.column_names else None
            return Distances(tuple(hosts["node"].to_pylist()), points=points, heights=heights)
    raise BadInput(
        f"{folder}: neither round-trip times nor places in it; make it by `topicweave workload import rtt` or `coordinates`"
    )


def _table(path: Path, rows: TextRows, note: Callable[[str], object]) -> Distances:
    """What a text file holds is told by its columns: a name and a number for each row, two names and one, or
    only numbers.
    """
    table = rows.table
    names, width = table.column_names, table.num_columns
    lower = [name.strip().lower() for name in names]
    columns = [_numbers(table[name]) for name in names]
    numeric = [
        not np.isnan(column[0]) or str(table[names[at]][0]).lower() == "nan"
        for at, column in enumerate(columns)
    ]
    if {"x", "y"} <= set(lower):
        return _points(path, rows, [lower.index(axis) for axis in ("x", "y")], None)
    if width in (4, 5) and table.num_rows and table[names[-2]][0].as_py().strip() == "h":
        return _points(path, rows, [width - 4, width - 3], width - 1)
    if width == table.num_rows and all(numeric):
        return _matrix(
            path, list(names) if rows.header else _numbered(width), _times(path, rows, range(width))
        )
    firsts = table[names[0]].to_pylist()
    once = len(set(firsts)) == len(firsts)
    labelled = width == table.num_rows + 1 and all(numeric[1:])
    # Without names above the columns it may be coordinates; a matrix has nothing on its diagonal.
    if labelled and (rows.header or not np.diag(_cells(path, rows, range(1, width))).any()):
        return _matrix(path, firsts, _times(path, rows, range(1, width)))
    if width == 3 and once and all(numeric[1:]):
        return _points(path, rows, [1, 2], None)
    if width == 3 and numeric[2]:
        return _pairs(path, rows, note)
    raise _not_square(path, table.num_rows, width)


def _numbered(count: int) -> list[str]:
    return [str(number) for number in range(count)]


def _not_square(path: Path, rows: int, columns: int) -> BadInput:
    return BadInput(
        f"{path}: {rows} rows of {columns} columns; give a square matrix, pairs (from, to, time), or coordinates (node, x, y)"
    )


def _numbers(column: Any) -> FloatArray:
    """A column's numbers; what is none is not a number."""
    try:
        fast: FloatArray = pc.utf8_trim_whitespace(column).cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        pass  # some cell is no number: which ones is seen one by one
    else:
        return fast
    found = np.full(len(column), np.nan)
    for at, cell in enumerate(column.to_pylist()):
        try:
            found[at] = float(cell)
        except (TypeError, ValueError):
            continue
    return found


def _cells(path: Path, rows: TextRows, columns: range | list[int]) -> FloatArray:
    """The numbers of some columns; raises about the first cell that is none."""
    names = rows.table.column_names
    cells = np.stack([_numbers(rows.table[names[at]]) for at in columns], axis=1)
    bad = np.argwhere(~np.isfinite(cells))
    if len(bad):
        row, place = bad[0].tolist()
        text = rows.table[names[columns[place]]][row].as_py()
        raise BadInput(
            f"{path}, line {rows.first_line + row}, column {columns[place] + 1}: {text!r} is not a time; give a number for each"
        )
    return cells


def _times(path: Path, rows: TextRows, columns: range | list[int]) -> FloatArray:
    """The same; none is negative."""
    times = _cells(path, rows, columns)
    bad = np.argwhere(times < 0)
    if len(bad):
        row, place = bad[0].tolist()
        raise BadInput(
            f"{path}, line {rows.first_line + row}, column {columns[place] + 1}: a time of {times[row, place]:g}; "
            "give 0 or more"
        )
    return times


def _points(path: Path, rows: TextRows, axes: list[int], height: int | None) -> Distances:
    names = rows.table.column_names
    lower = [name.strip().lower() for name in names]
    label = next((names[at] for at in range(len(names)) if at not in (*axes, height)), None)
    hosts = _numbered(rows.table.num_rows) if label is None else rows.table[label].to_pylist()
    if height is None and rows.header:
        height = next((lower.index(word) for word in ("height", "h") if word in lower), None)
    points = _cells(path, rows, axes)
    heights = None if height is None else _cells(path, rows, [height])[:, 0]
    if heights is not None and (heights < 0).any():
        row = int(np.argmax(heights < 0))
        raise BadInput(f"{path}, line {rows.first_line + row}: a height of {heights[row]:g}; give 0 or more")
    return Distances(_distinct(path, hosts), points=points, heights=heights)


def _pairs(path: Path, rows: TextRows, note: Callable[[str], object]) -> Distances:
    """From, to, time. A pair that is given one way only holds for both; of several times for one way the median
    counts.
    """
    names = rows.table.column_names
    one, other = (rows.table[names[at]].to_pylist() for at in (0, 1))
    time = _times(path, rows, [2])[:, 0]
    places = sorted({*one, *other}, key=_natural)
    place = {name: number for number, name in enumerate(places)}
    way = np.array([place[a] * len(places) + place[b] for a, b in zip(one, other, strict=True)])
    order = np.argsort(way, kind="stable")
    ways, starts = np.unique(way[order], return_index=True)
    rtt = np.full((len(places), len(places)), np.nan)
    rtt.flat[ways] = [float(np.median(some)) for some in np.split(time[order], starts[1:])]
    if len(ways) < len(way):
        note(f"{path}: pairs with several times ({len(way):,} rows in all): the median of each counts")
    rtt = np.where(np.isnan(rtt), rtt.T, rtt)
    rtt[np.diag_indices(len(places))] = np.nan_to_num(np.diag(rtt), nan=0.0)
    missing = np.argwhere(np.triu(np.isnan(rtt)))
    if len(missing):
        first, second = (places[at] for at in missing[0])
        more = f", nor for {len(missing) - 1:,} more pairs" if len(missing) > 1 else ""
        raise BadInput(f"{path}: no time between {first!r} and {second!r}{more}; give one for every pair")
    return _matrix(path, places, rtt)


def _matrix(path: Path, names: list[str], rtt: FloatArray) -> Distances:
    """Checked: every pair has a time, none is negative."""
    slices = rtt if rtt.ndim == 3 else rtt[None]
    bad = np.argwhere(~(slices >= 0))
    if len(bad):
        number, one, other = bad[0].tolist()
        value = slices[number, one, other]
        what = "no time" if np.isnan(value) else f"a time of {value:g}"
        where = f", slice {number + 1}" if len(slices) > 1 else ""
        raise BadInput(
            f"{path}{where}: {what} from {names[one]!r} to {names[other]!r}"
            + (f", and {len(bad) - 1:,} more like it" if len(bad) > 1 else "")
            + "; give 0 or more for every pair"
        )
    return Distances(_distinct(path, names), rtt_ms=slices.astype(np.float64))


def _distinct(path: Path, names: list[Any]) -> tuple[str, ...]:
    texts = tuple(str(name).strip() for name in names)
    if len(set(texts)) < len(texts):
        twice = next(name for name in texts if texts.count(name) > 1)
        raise BadInput(f"{path}: place {twice!r} is there twice; keep one of them")
    return texts


def _refuse_implausible(path: Path, network: Distances, unit: Unit | None) -> None:
    """A unit that was not said must be likely; one that was said is believed."""
    median = typical_rtt(network)
    if unit is None and not _PLAUSIBLE[0] <= median <= _PLAUSIBLE[1]:
        likely = "s" if median < _PLAUSIBLE[0] else "us"
        raise BadInput(
            f"{path}: read as milliseconds, the median round trip is {median:.3g} ms, which no network has; "
            f"say the unit: --latency-unit {likely}, for instance"
        )


def typical_rtt(network: Distances) -> float:
    """The median round trip between two places, milliseconds; of many places, of a thousand pairs."""
    if network.rtt_ms is not None:
        if len(network.names) == 1:
            return float(network.rtt_ms.max())
        apart = ~np.eye(len(network.names), dtype=np.bool_)
        return float(np.median(network.rtt_ms[:, apart]))
    assert network.points is not None
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, len(network.points), (2, 1000))
    keep = one != other
    if not keep.any():
        return 1.0
    way = np.sqrt(((network.points[one] - network.points[other]) ** 2).sum(axis=1))
    if network.heights is not None:
        way = way + network.heights[one] + network.heights[other]
    return float(2.0 * np.median(way[keep]))


def _natural(name: Any) -> list[Any]:
    """`h2` before `h10`."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", str(name))]
