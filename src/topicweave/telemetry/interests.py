"""Who wanted what when, from the table `interests`: the lists of a stretch of time, and who came and went."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

LISTS = pa.schema([("node", pa.string()), ("topic", pa.string())])
CHURN = pa.schema([("time", pa.float64()), ("node", pa.string()), ("change", pa.string())])


class RecordedLists(NamedTuple):
    """What nodes of one run wanted in a stretch of time."""

    subscriptions: pa.Table
    """(node, topic), wanted at some moment of it."""
    churn: pa.Table
    """(time, node, change): a node comes when it begins to want something, and goes when it wants nothing any more."""


def wanted_between(interests: pa.Table, start: float, end: float, stay: float = math.inf) -> RecordedLists:
    """From the rows of one run, in any order; who goes later than `stay` is taken to be there for ever.

    >>> rows = [(0.0, "ann", "news", True), (5.0, "ann", "", False), (7.0, "bob", "news", True)]
    >>> table = pa.table(dict(zip(("time", "node", "topic", "wanted"), map(list, zip(*rows)), strict=True)))
    >>> wanted_between(table, 6.0, 9.0).subscriptions.to_pylist()
    [{'node': 'bob', 'topic': 'news'}]
    >>> wanted_between(table, 6.0, 9.0).churn["change"].to_pylist()
    ['join', 'leave', 'join']
    """
    times, node, node_names = _coded(interests, "node")
    _, topic, topic_names = _coded(interests, "topic")
    wanted = np.asarray(interests["wanted"].combine_chunks(), bool)
    ends = _ends(times, node, topic, topic_names)
    held = wanted & (ends > times)
    inside = held & (times <= end) & (ends > start)
    pairs = np.unique(np.stack([node[inside], topic[inside]], axis=1), axis=0)
    subscriptions = pa.table(
        [node_names.take(pa.array(pairs[:, 0])), topic_names.take(pa.array(pairs[:, 1]))], schema=LISTS
    )
    lasts = np.where(ends > stay, np.inf, ends)
    return RecordedLists(subscriptions, _churn(times[held], lasts[held], node[held], node_names))


def _coded(interests: pa.Table, column: str) -> tuple[Any, Any, Any]:
    times = np.asarray(interests["time"].combine_chunks(), float)
    coded = pc.cast(interests[column], pa.string()).combine_chunks().dictionary_encode()
    return times, np.asarray(coded.indices, np.int64), coded.dictionary


def _ends(times: Any, node: Any, topic: Any, topic_names: Any) -> Any:
    """Until when each row holds: the node's next row on the topic, or its next one without a topic."""
    ends = np.full(len(times), np.inf)
    if not len(times):
        return ends
    order = np.lexsort((np.arange(len(times)), times, topic, node))
    same = (node[order][1:] == node[order][:-1]) & (topic[order][1:] == topic[order][:-1])
    ends[order[:-1][same]] = times[order[1:][same]]
    none = pc.index(topic_names, "").as_py()
    resets = np.flatnonzero(topic == none)
    if len(resets):
        moments, rank = np.unique(times, return_inverse=True)
        key = node * len(moments) + rank
        resets = resets[np.argsort(key[resets], kind="stable")]
        # What is said at the same moment is said after it: it begins anew with that.
        place = np.searchsorted(key[resets], key, side="right")
        found = place < len(resets)
        found[found] &= node[resets[place[found]]] == node[found]
        ends[found] = np.minimum(ends[found], times[resets[place[found]]])
    return ends


def _churn(begins: Any, ends: Any, node: Any, names: Any) -> pa.Table:
    over = np.isfinite(ends)
    moments = np.concatenate([begins, ends[over]])
    who = np.concatenate([node, node[over]])
    steps = np.concatenate([np.ones(len(begins), np.int64), np.full(int(over.sum()), -1)])
    order = np.lexsort((moments, who))
    moments, who, steps = moments[order], who[order], steps[order]
    total = np.cumsum(steps)
    # All that a node says at one moment is one change; counts start anew with every node.
    last = np.append((who[1:] != who[:-1]) | (moments[1:] != moments[:-1]), True)[: len(who)]
    moments, who, total = moments[last], who[last], total[last]
    first = np.append(True, who[1:] != who[:-1])[: len(who)]
    before = np.where(first, np.append(0, total[:-1])[: len(who)], 0)
    base = np.maximum.accumulate(np.where(first, np.arange(len(who)), 0)) if len(who) else who
    up = total - before[base] > 0
    was = np.where(first, False, np.append(False, up[:-1])[: len(who)])
    changed = up != was
    rows = np.lexsort((who[changed], moments[changed]))
    return pa.table(
        {
            "time": pa.array(moments[changed][rows], pa.float64()),
            "node": names.take(pa.array(who[changed][rows])),
            "change": pa.array(np.where(up[changed][rows], "join", "leave"), pa.string()),
        },
        schema=CHURN,
    )
