"""Who is up when, from a churn table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from topicweave.errors import BadInput
from topicweave.measures.columns import codes, numbers
from topicweave.model.arrays import BoolArray, FloatArray, IntArray


class Uptime:
    """The intervals in which nodes are up, from changes (time, node, change) that say 'join' or 'leave'.

    A node starts in the state opposite to its first change; one without changes is always up. A node that joins
    or leaves at an instant is in its new state at that instant. A join while up is a restart: it ends one
    interval and begins another.
    """

    def __init__(self, nodes: pa.Array, churn: pa.Table | None = None) -> None:
        """`nodes` are sorted names; changes of others are ignored."""
        self._set(*_intervals(len(nodes), *_changes(nodes, churn)))

    @classmethod
    def of_changes(cls, nodes: int, node: IntArray, time: FloatArray, joins: BoolArray) -> Uptime:
        """Of so many nodes, known by number, and their changes in any order."""
        order = np.lexsort((time, node))
        return cls.of_intervals(*_intervals(nodes, node[order], time[order], joins[order]))

    @classmethod
    def of_intervals(cls, node: IntArray, begin: FloatArray, end: FloatArray) -> Uptime:
        """Of intervals in any order; nodes are numbers."""
        made = cls.__new__(cls)
        order = np.lexsort((begin, node))
        made._set(node[order], begin[order], end[order])
        return made

    def _set(self, node: IntArray, begin: FloatArray, end: FloatArray) -> None:
        self._node, self._begin, self._end = node, begin, end
        # (node, begin) as one growing number, by which to find intervals.
        self._begins = np.unique(self._begin)
        self._keys = self._key(self._node, self._begin)

    @property
    def intervals(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """(node, begin, end), by node, then begin."""
        return self._node, self._begin, self._end

    def throughout(self, node: IntArray, start: FloatArray, end: FloatArray) -> BoolArray:
        """Whether each node is up, without interruption, from `start` to `end`, both included."""
        if not len(self._node):
            return np.zeros(len(node), np.bool_)
        interval = np.searchsorted(self._keys, self._key(node, start), side="right") - 1
        known = (interval >= 0) & (self._node[interval] == node)
        # Who never leaves is up even until the end of time, infinity.
        lasts = (end < self._end[interval]) | np.isinf(self._end[interval])
        throughout: BoolArray = known & lasts
        return throughout

    def seconds(self, start: float, end: float) -> float:
        """The time that nodes are up between two moments, summed over nodes."""
        overlap = np.minimum(self._end, end) - np.maximum(self._begin, start)
        return float(np.maximum(overlap, 0.0).sum())

    def _key(self, node: IntArray, time: FloatArray) -> IntArray:
        return node * (len(self._begins) + 1) + np.searchsorted(self._begins, time, side="right")


def _intervals(
    nodes: int, node: IntArray, time: FloatArray, joins: BoolArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """(node, begin, end), by node, then begin, from changes by node, then time."""
    new_node = np.diff(node, prepend=-1) != 0
    until = np.where(np.append(new_node[1:], True), np.inf, np.append(time[1:], np.inf))
    up_at_start = np.full(nodes, True)
    up_at_start[node[new_node & joins]] = False
    first_change = np.full(nodes, np.inf)
    first_change[node[new_node]] = time[new_node]
    early = np.flatnonzero(up_at_start)
    begin = np.concatenate([np.full(len(early), -np.inf), time[joins]])
    owner = np.concatenate([early, node[joins]])
    end = np.concatenate([first_change[early], until[joins]])
    order = np.lexsort((begin, owner))
    return owner[order], begin[order], end[order]


def _changes(nodes: pa.Array, churn: pa.Table | None) -> tuple[IntArray, FloatArray, BoolArray]:
    """(node, time, whether it joins), by node, then time."""
    if churn is None:
        return np.empty(0, np.int64), np.empty(0), np.empty(0, np.bool_)
    change = codes(churn["change"], pa.array(["join", "leave"]))
    if (change < 0).any():
        row = int(np.argmin(change))
        raise BadInput(
            f"churn: row {row + 1}, column 'change': {churn['change'][row].as_py()!r}; write 'join' or 'leave'"
        )
    node, time = codes(churn["node"], nodes), numbers(churn["time"])
    order = np.lexsort((time, node))
    order = order[node[order] >= 0]
    return node[order], time[order], change[order] == 0
