"""What the four tables of a workload must hold, and the arrays they become.

Every check is a whole-column operation; each problem is one `BadInput` about the first row that has it.

Names are put in one order whatever order the rows come in, so that the same subscriptions give the same
arrays however a pipeline partitioned them. The order is by length, then by code point: `n2` before `n10`,
and so node `n7` of a generated workload, or node `7` of a numbered trace, has index 7.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from topicweave.errors import BadInput
from topicweave.model.arrays import FloatArray, IndexArray
from topicweave.model.tables import ColumnRule, Table

UP, DOWN = 1, 0
CHANGE_WORDS = {"join": UP, "leave": DOWN}
CHURN_DTYPE = np.dtype([("time", np.float64), ("node", np.int32), ("change", np.int8)])

SUBSCRIPTIONS = {
    "node": ColumnRule("name", "every subscription names a node (text or an integer)"),
    "topic": ColumnRule("name", "every subscription names a topic (text or an integer)"),
}
TOPICS = {
    "topic": ColumnRule("name", "every row names a topic (text or an integer)"),
    "rate": ColumnRule("number", "give events per second, a finite number of 0 or more"),
}
CHURN = {
    "time": ColumnRule("number", "give seconds from the start, a finite number of 0 or more"),
    "node": ColumnRule("name", "every change names a node (text or an integer)"),
    "change": ColumnRule("name", "write 'join' or 'leave'"),
}
HOSTS = {"node": ColumnRule("name", "every row names a node (text or an integer)")}
COORDINATES = {
    "x": ColumnRule("number", "give a finite number for every node, or neither 'x' nor 'y'"),
    "y": ColumnRule("number", "give a finite number for every node, or neither 'x' nor 'y'"),
}


class WorkloadArrays(NamedTuple):
    """The fields of a `Workload`, in its order."""

    node_names: tuple[str, ...]
    topic_names: tuple[str, ...]
    offsets: npt.NDArray[np.int64]
    topic_index: IndexArray
    rates: FloatArray
    churn: npt.NDArray[np.void]
    hosts: FloatArray | None


def check_tables(
    subscriptions: Table, topics: Table | None, churn: Table | None, hosts: Table | None
) -> WorkloadArrays:
    """Turn tables into arrays, or raise about the first thing that is wrong with them."""
    nodes = _ordered_names((hosts or subscriptions).names("node"))
    if not len(nodes):
        raise BadInput(f"{(hosts or subscriptions).label}: no rows; a workload has at least one node")
    topic_names = _ordered_names((topics or subscriptions).names("topic"))
    coordinates = None if hosts is None else _coordinates(hosts, nodes)
    rates = np.ones(len(topic_names)) if topics is None else _rates(topics, topic_names)
    offsets, topic_index = _interests(subscriptions, nodes, topic_names, topics, hosts)
    return WorkloadArrays(
        node_names=tuple(nodes.to_pylist()),
        topic_names=tuple(topic_names.to_pylist()),
        offsets=offsets,
        topic_index=topic_index,
        rates=rates,
        churn=np.empty(0, CHURN_DTYPE) if churn is None else _changes(churn, nodes),
        hosts=coordinates,
    )


def _ordered_names(column: Any) -> Any:
    """The distinct names of a column by length, then by code point, as a pyarrow array."""
    names = pc.unique(column)
    keys = pa.table({"length": pc.utf8_length(names), "name": names})
    return names.take(pc.sort_indices(keys, sort_keys=[("length", "ascending"), ("name", "ascending")]))


def _index(column: Any, names: Any) -> IndexArray:
    """Each cell's place in `names`; -1 where it is not there."""
    places = pc.fill_null(pc.index_in(column, value_set=names), -1)
    return np.asarray(places.to_numpy(), dtype=np.int32)


def _refuse_unknown(table: Table, column: str, index: IndexArray, problem: str, advice: str) -> None:
    unknown = index < 0
    if unknown.any():
        row = int(np.argmax(unknown))
        raise table.error(row, column, f"{table.value(row, column)} {problem}", advice)


def _refuse_repeat(table: Table, columns: tuple[str, ...], key: npt.NDArray[np.integer[Any]]) -> None:
    """Raise about the first row whose key, made of `columns`, an earlier row holds already."""
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    again = order[1:][ordered[1:] == ordered[:-1]]
    if not again.size:
        return
    row = int(again.min())
    values = " and ".join(f"{column} {table.value(row, column)}" for column in columns)
    piece, number = table.place(int(order[np.searchsorted(ordered, key[row])]))
    elsewhere = "" if piece == table.place(row)[0] else f" of {piece}"
    raise table.error(row, columns[-1], f"{values} as in row {number}{elsewhere}", "keep one of the two")


def _coordinates(hosts: Table, nodes: Any) -> FloatArray | None:
    index = _index(hosts.names("node"), nodes)
    _refuse_repeat(hosts, ("node",), index)
    given = [column for column in COORDINATES if column in hosts.wanted]
    if not given:
        return None
    for column, expected in COORDINATES.items():
        if column not in given:
            raise BadInput(f"{hosts.label}: column {column!r}: missing; {expected.demand}")
    coordinates = np.empty((len(nodes), 2))
    for axis, column in enumerate(COORDINATES):
        values = hosts.numbers(column)
        hosts.refuse_where(~np.isfinite(values), column)
        coordinates[index, axis] = values
    return coordinates


def _rates(topics: Table, topic_names: Any) -> FloatArray:
    index = _index(topics.names("topic"), topic_names)
    _refuse_repeat(topics, ("topic",), index)
    values = topics.numbers("rate")
    topics.refuse_where(~(np.isfinite(values) & (values >= 0)), "rate")
    rates = np.empty(len(topic_names))
    rates[index] = values
    return rates


def _interests(
    subscriptions: Table, nodes: Any, topic_names: Any, topics: Table | None, hosts: Table | None
) -> tuple[npt.NDArray[np.int64], IndexArray]:
    node_index = _index(subscriptions.names("node"), nodes)
    topic_index = _index(subscriptions.names("topic"), topic_names)
    if hosts is not None:
        advice = "list every node there, or leave that table out"
        _refuse_unknown(subscriptions, "node", node_index, f"has no row in {hosts.label}", advice)
    if topics is not None:
        advice = "list every topic there, or leave that table out"
        _refuse_unknown(subscriptions, "topic", topic_index, f"has no row in {topics.label}", advice)
    width = max(len(topic_names), 1)
    pair = node_index.astype(np.int64) * width + topic_index
    _refuse_repeat(subscriptions, ("node", "topic"), pair)
    pair.sort()
    offsets = np.zeros(len(nodes) + 1, np.int64)
    np.cumsum(np.bincount(node_index, minlength=len(nodes)), out=offsets[1:])
    return offsets, (pair % width).astype(np.int32)


def _changes(churn: Table, nodes: Any) -> npt.NDArray[np.void]:
    times = churn.numbers("time")
    churn.refuse_where(~(np.isfinite(times) & (times >= 0)), "time")
    changes = np.empty(len(times), CHURN_DTYPE)
    changes["time"] = times
    changes["node"] = _index(churn.names("node"), nodes)
    advice = "give it a subscription, or a row in the hosts table"
    _refuse_unknown(churn, "node", changes["node"], "is in no other table", advice)
    word = _index(churn.names("change"), pa.array(list(CHANGE_WORDS), pa.large_string()))
    churn.refuse_where(word < 0, "change")
    changes["change"] = np.array(list(CHANGE_WORDS.values()))[word]
    _refuse_impossible(churn, changes)
    return changes[np.lexsort((changes["node"], changes["time"]))]


def _refuse_impossible(churn: Table, changes: npt.NDArray[np.void]) -> None:
    """Raise about a node that changes twice at once, joins while up or leaves while down."""
    order = np.lexsort((changes["time"], changes["node"]))
    before, after = changes[order[:-1]], changes[order[1:]]
    same_node = before["node"] == after["node"]

    at_once = order[1:][same_node & (before["time"] == after["time"])]
    if at_once.size:
        row = int(at_once.min())
        problem = f"{churn.value(row, 'time')} is when node {churn.value(row, 'node')} changes already"
        raise churn.error(row, "time", problem, "keep its changes apart in time")

    repeated = order[1:][same_node & (before["change"] == after["change"])]
    if repeated.size:
        row = int(repeated.min())
        state = "up" if changes["change"][row] == UP else "down"
        problem = f"{churn.value(row, 'change')} of node {churn.value(row, 'node')}, which is {state} already"
        raise churn.error(row, "change", problem, "let joins and leaves of a node alternate")
