"""First receptions and counts, compiled: hash tables over a task's rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True)
def _slot(one: Any, other: Any, mask: Any) -> Any:
    value = np.uint64(one) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(other)
    value = (value ^ (value >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return (value ^ (value >> np.uint64(32))) & mask


@njit(cache=True)
def first_receptions(event: Any, node: Any, time: Any) -> Any:
    """Which rows are the first of their event and node: the earliest, and of simultaneous ones the first in
    the arrays.
    """
    size = 16
    while size < 2 * len(event):
        size *= 2
    mask = np.uint64(size - 1)
    slots = np.full(size, -1, np.int32)
    first = np.zeros(len(event), np.bool_)
    for row in range(len(event)):
        at = _slot(event[row], node[row], mask)
        while True:
            other = slots[at]
            if other < 0:
                slots[at] = row
                first[row] = True
                break
            if event[other] == event[row] and node[other] == node[row]:
                if time[row] < time[other]:
                    slots[at] = row
                    first[other] = False
                    first[row] = True
                break
            at = (at + np.uint64(1)) & mask
    return first


@njit(cache=True)
def numbered_pairs(one: Any, other: Any) -> Any:
    """Each row's number among the distinct pairs, in the order in which they come, and the first row of each pair."""
    size = 16
    while size < 2 * len(one):
        size *= 2
    mask = np.uint64(size - 1)
    slots = np.full(size, -1, np.int32)
    number = np.empty(len(one), np.int64)
    rows = np.empty(len(one), np.int64)
    count = 0
    for row in range(len(one)):
        at = _slot(one[row], other[row], mask)
        while True:
            pair = slots[at]
            if pair < 0:
                slots[at] = count
                rows[count] = row
                number[row] = count
                count += 1
                break
            if one[rows[pair]] == one[row] and other[rows[pair]] == other[row]:
                number[row] = pair
                break
            at = (at + np.uint64(1)) & mask
    return number, rows[:count].copy()


@njit(cache=True)
def counted(pair: Any, pairs: Any, first: Any, wanted: Any, in_time: Any, hops: Any) -> Any:
    """By pair: receptions, unwanted ones, first ones, first ones unwanted, in time, hops of wanted first ones
    and their most.
    """
    counts = np.zeros((7, pairs), np.int64)
    counts[6] = -1
    for row in range(len(pair)):
        at = pair[row]
        counts[0, at] += 1
        if not wanted[row]:
            counts[1, at] += 1
        if not first[row]:
            continue
        counts[2, at] += 1
        if in_time[row]:
            counts[4, at] += 1
        if wanted[row]:
            counts[5, at] += hops[row]
            counts[6, at] = max(counts[6, at], hops[row])
        else:
            counts[3, at] += 1
    return counts


@njit(cache=True)
def found_pairs(one: Any, other: Any, wanted_one: Any, wanted_other: Any) -> Any:
    """The row among distinct pairs (one, other) of each wanted pair; -1 if it is not there."""
    size = 16
    while size < 2 * len(one):
        size *= 2
    mask = np.uint64(size - 1)
    slots = np.full(size, -1, np.int32)
    for row in range(len(one)):
        at = _slot(one[row], other[row], mask)
        while slots[at] >= 0:
            at = (at + np.uint64(1)) & mask
        slots[at] = row
    found = np.empty(len(wanted_one), np.int64)
    for wanted in range(len(wanted_one)):
        at = _slot(wanted_one[wanted], wanted_other[wanted], mask)
        while True:
            row = slots[at]
            if row < 0 or (one[row] == wanted_one[wanted] and other[row] == wanted_other[wanted]):
                found[wanted] = row
                break
            at = (at + np.uint64(1)) & mask
    return found
