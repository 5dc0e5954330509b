"""The round in which receptions meet their events: which were first, and what is counted of them.

A task has all receptions of some topics (of a very large one: of some of its events). What it hands on is
small beside the rows: counts by topic and node, and the latencies as one sorted array per run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from topicweave.model.arrays import FloatArray, IntArray
from topicweave.pipeline.measuring.kernels import counted, first_receptions, numbered_pairs
from topicweave.pipeline.measuring.plan import DRIVER, LAST, LATER, NODES, TOPICS, MeasuringPlan, SharedPlan
from topicweave.pipeline.rounds import Inbox, Letter, Work, spread

COUNTS = ("receptions", "unwanted", "firsts", "relayed", "in_time", "hops", "hops_max")
MARKS = 1 << 20
"""So many latencies of all tasks and runs together come to the driver; between two of a task's there are
equally many.
"""

_EVENT = {"key": np.int64, "run": np.int64, "topic": np.int64, "node": np.int64, "time": np.float64}
_RECEIVED = {"key": np.int64, "node": np.int64, "time": np.float64, "flags": np.int32}


def meet(shared: SharedPlan) -> Work:
    def work(inbox: Inbox) -> Iterator[Letter]:
        plan = shared.value
        yield from _passed_on(plan, inbox)
        events = _first_rows(_in_order(inbox.take("event", **_EVENT)))
        about = {name: events[name] for name in ("run", "topic", "node", "time")}
        yield from spread(TOPICS, "events", events["topic"], plan.tasks, about)
        received = _in_order(inbox.take("received", **_RECEIVED))
        yield from _counted(plan, events, received)

    return work


def _in_order(rows: dict[str, Any]) -> dict[str, Any]:
    """By the column `order`, if there is one; else they are in order."""
    order = rows.pop("order", None)
    if order is None:
        return rows
    by_order = np.argsort(order, kind="stable")
    return {name: column[by_order] for name, column in rows.items()}


def _first_rows(events: dict[str, Any]) -> dict[str, Any]:
    _, rows = np.unique(events["key"], return_index=True)
    return {name: column[rows] for name, column in events.items()}


def _passed_on(plan: MeasuringPlan, inbox: Inbox) -> Iterator[Letter]:
    """Who received and who sent, once for all chunks of rows."""
    seen = inbox.take("seen", run=np.int64, node=np.int64)
    sent = inbox.take("sent", run=np.int64, node=np.int64, sent=np.int64)
    for run in plan.runs:
        nodes = np.unique(seen["node"][seen["run"] == run])
        yield from spread(NODES, "seen", nodes, plan.tasks, {"run": np.full(len(nodes), run), "node": nodes})
        mine = sent["run"] == run
        yield from _sent(plan, run, sent["node"][mine], sent["sent"][mine])


def _sent(plan: MeasuringPlan, run: int, node: IntArray, sent: IntArray) -> Iterator[Letter]:
    nodes, code = np.unique(node, return_inverse=True)
    amounts = np.zeros(len(nodes), np.int64)
    np.add.at(amounts, code, sent)
    columns = {"run": np.full(len(nodes), run), "node": nodes, "sent": amounts}
    yield from spread(LAST, "sent", nodes, plan.tasks, columns)


def _counted(plan: MeasuringPlan, events: dict[str, Any], received: dict[str, Any]) -> Iterator[Letter]:
    import pandas as pd

    event = pd.Index(events["key"]).get_indexer(received["key"])
    if (event < 0).any():
        known = event >= 0
        event, received = event[known], {name: column[known] for name, column in received.items()}
    if not len(event):
        return
    if "sender" in received:
        for run in np.unique(events["run"]).tolist():
            senders = received["sender"][events["run"][event] == run]
            yield from _sent(plan, run, senders, np.ones(len(senders), np.int64))
    node, time, flags = received["node"], received["time"], received["flags"]
    first = first_receptions(event, node, time)
    first &= node != events["node"][event]
    published = events["time"][event]
    in_time = first & (time <= published + plan.scope.window)
    wanted = (flags & 1).astype(np.bool_)
    topic, _ = numbered_pairs(events["run"], events["topic"])
    pair, rows = numbered_pairs(topic[event], node)
    counts = counted(pair, len(rows), first, wanted, in_time, flags >> 1)
    columns = {
        "run": events["run"][event[rows]],
        "topic": events["topic"][event[rows]],
        "node": node[rows],
        **dict(zip(COUNTS, counts, strict=True)),
    }
    yield from spread(TOPICS, "pairs", columns["topic"], plan.tasks, columns)
    if plan.churned:
        of = event[in_time]
        hits = {
            "run": events["run"][of],
            "topic": events["topic"][of],
            "node": node[in_time],
            "time": published[in_time],
        }
        yield from spread(TOPICS, "hits", hits["topic"], plan.tasks, hits)
    delivered = first & wanted
    latency, of = time[delivered] - published[delivered], event[delivered]
    for run in np.unique(events["run"]).tolist():
        here = events["run"][of] == run
        yield from _latencies(plan, run, latency if here.all() else latency[here])


def _latencies(plan: MeasuringPlan, run: int, values: FloatArray) -> Iterator[Letter]:
    if not len(values):
        return
    values = np.sort(values)
    each = max(64, MARKS // (plan.tasks * len(plan.runs)))
    stride = -(-len(values) // each)
    marks = values[::stride]
    columns = {"value": marks, "run": np.full(len(marks), run), "stride": np.full(len(marks), stride)}
    columns["size"] = np.full(len(marks), len(values))
    yield Letter(DRIVER, 0, "marks", columns)
    yield Letter(LATER, 0, "latency", {"value": values}, rank=run)
