"""Distinct choices in bulk: k different numbers below n for each of many rows, all sets alike."""

from __future__ import annotations

import numpy as np

from topicweave.model.arrays import IntArray
from topicweave.workloads.counter_random import hashes, uniforms


def distinct_choices(seed: int, stream: int, rows: IntArray, choices: int, wanted: int) -> IntArray:
    """For each row, `wanted` different numbers below `choices`, growing; a row's depend on its number alone.

    >>> distinct_choices(seed=1, stream=1, rows=np.arange(2), choices=6, wanted=6).tolist()
    [[0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]]
    """
    if choices <= 4 * wanted:
        # Dense: the places of the smallest of one random number per choice.
        keys = hashes(seed, stream, rows[:, np.newaxis], np.arange(choices))
        chosen = np.argsort(keys, axis=1, kind="stable")[:, :wanted]
        return np.sort(chosen, axis=1)
    return _first_distinct(seed, stream, rows, choices, wanted)


def _first_distinct(seed: int, stream: int, rows: IntArray, choices: int, wanted: int) -> IntArray:
    """Sparse: draw with repetition and keep the first different ones, drawing on where that is too few."""
    taken = np.empty((len(rows), wanted), np.int64)
    unfinished, draws = np.arange(len(rows)), wanted + wanted // 4 + 4
    while len(unfinished):
        numbers = uniforms(seed, stream, rows[unfinished, np.newaxis], np.arange(draws))
        drawn = (numbers * choices).astype(np.int64)
        order = np.argsort(drawn, axis=1, kind="stable")
        in_order = np.take_along_axis(drawn, order, axis=1)
        repeats = np.zeros(drawn.shape, np.bool_)
        np.put_along_axis(repeats, order[:, 1:], in_order[:, 1:] == in_order[:, :-1], axis=1)
        kept = ~repeats & (np.cumsum(~repeats, axis=1) <= wanted)
        enough = kept.sum(axis=1) == wanted
        taken[unfinished[enough]] = drawn[enough][kept[enough]].reshape(-1, wanted)
        unfinished, draws = unfinished[~enough], 2 * draws
    return np.sort(taken, axis=1)
