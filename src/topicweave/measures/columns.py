"""From Arrow columns to NumPy: names become integer codes, once, and everything after is arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from topicweave.model.arrays import FloatArray, IntArray


def distinct(*columns: pa.ChunkedArray) -> pa.Array:
    """The names that occur in any of the columns (dictionary-encoded or not), sorted."""
    found = [pc.unique(_one_dictionary(column)).cast(pa.string()) for column in columns]
    names = pc.unique(pa.chunked_array(found, pa.string()))
    return names.take(pc.array_sort_indices(names))


def names_array(names: Iterable[str]) -> pa.Array:
    """Names given in Python, as `distinct` gives them."""
    return pa.array(sorted(set(names)), pa.string())


def codes(column: pa.Array | pa.ChunkedArray, names: pa.Array) -> IntArray:
    """Where each cell stands among `names`; -1 if it does not."""
    column = _one_dictionary(column)
    if not pa.types.is_dictionary(column.type):
        return _filled(pc.index_in(column.cast(pa.string()), names))
    if not len(column):
        return np.empty(0, np.int64)
    # Look up the few distinct names, not the many cells.
    places = pc.index_in(column.chunk(0).dictionary.cast(pa.string()), names)
    return _filled(pc.take(places, pa.chunked_array([chunk.indices for chunk in column.chunks])))


def numbers(column: pa.ChunkedArray) -> FloatArray:
    return np.asarray(column.to_numpy(), dtype=np.float64)


def offsets_of(codes: IntArray, groups: int) -> IntArray:
    """Where each group starts, and the last ends, in an array that is sorted by these codes."""
    offsets = np.zeros(groups + 1, np.int64)
    np.cumsum(np.bincount(codes, minlength=groups), out=offsets[1:])
    return offsets


def growing(values: IntArray) -> IntArray:
    """The distinct values, growing. `np.unique` puts them into a hash table first, which takes ten times as long."""
    values = np.sort(values)
    new = np.ones(len(values), np.bool_)
    new[1:] = values[1:] != values[:-1]
    return values[new]


def mean(values: npt.NDArray[Any]) -> float:
    """The mean, nan over nothing (where NumPy would also warn)."""
    return float(values.mean()) if len(values) else math.nan


def percentile(values: npt.NDArray[Any], percent: float) -> float:
    """Interpolated; 100 is the maximum; nan over nothing (where NumPy would raise)."""
    return float(np.percentile(values, percent)) if len(values) else math.nan


def ratio(part: float, whole: float) -> float:
    """part / whole, nan if there is no whole."""
    return float(part / whole) if whole else math.nan


def _one_dictionary(column: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    chunked = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    return chunked.unify_dictionaries()


def _filled(places: pa.Array | pa.ChunkedArray) -> IntArray:
    return np.asarray(pc.fill_null(places, -1).to_numpy(), dtype=np.int64)
