"""From rows of the tables to arrays for the tasks that need them: the only place that sees names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from topicweave.errors import BadInput
from topicweave.model.arrays import BoolArray, IntArray
from topicweave.pipeline.measuring.plan import (
    DRIVER,
    NODES,
    RECEPTIONS,
    MeasuringPlan,
    SharedPlan,
    event_keys,
)
from topicweave.pipeline.rounds import Letter, hashes, spread

SURVEYED = {
    "links": ("run", "time"),
    "publishes": ("run", "event", "topic", "time"),
    "control": ("run", "time"),
    "deliveries": ("run", "time"),
}
"""What is looked at before the rest."""


def names_of(what: str, column: pa.ChunkedArray) -> Letter:
    """Names with their hashes, to the driver: for columns that hold few."""
    names = pc.unique(column.cast(pa.string()))
    return Letter(DRIVER, 0, what, {"hash": hashes(names), "name": names})


def survey(
    start: float, end: float | None, with_events: bool
) -> Callable[[str, pa.Table, int], Iterator[Letter]]:
    """Which runs there are, the times of their last rows, and (if asked) the events with their topics."""

    def scan(source: str, rows: pa.Table, rank: int) -> Iterator[Letter]:
        run, time = hashes(rows["run"]), rows["time"].to_numpy()
        runs, number = np.unique(run, return_inverse=True)
        last = np.full(len(runs), -np.inf)
        np.maximum.at(last, number, time)
        yield names_of("runs", rows["run"])
        yield Letter(DRIVER, 0, source, {"run": runs, "last": last})
        if source == "publishes" and with_events:
            counts = (time >= start) & (time <= (np.inf if end is None else end))
            keys = event_keys(run, rows["event"].to_numpy())
            topic = hashes(rows["topic"])
            yield Letter(
                DRIVER, 0, "events", {"key": keys[counts], "run": run[counts], "topic": topic[counts]}, rank
            )

    return scan


def scanner(shared: SharedPlan) -> Callable[[str, pa.Table, int], Iterator[Letter]]:
    """Each table's rows to whom they concern."""
    of_table = {
        "deliveries": _deliveries,
        "publishes": _publishes,
        "links": _links,
        "control": _control,
        "subscriptions": _subscriptions,
        "churn": _churn,
        "nodes": _nodes,
    }

    def scan(source: str, rows: pa.Table, rank: int) -> Iterator[Letter]:
        return of_table[source](shared.value, rows, rank)

    return scan


def _deliveries(plan: MeasuringPlan, rows: pa.Table, rank: int) -> Iterator[Letter]:
    run = hashes(rows["run"])
    if len(plan.runs) == 1 and not (mine := plan.mine(run)).all():
        rows, run = rows.filter(pa.array(mine)), run[mine]
    node, sender = hashes(rows["node"]), hashes(rows["sender"])
    keys = event_keys(run, rows["event"].to_numpy())
    known, place = _placed(plan, keys)
    yield from _handled(plan, run, node, sender, known)
    flags = rows["hops"].to_numpy().astype(np.int32) * 2 + rows["wanted"].to_numpy()
    columns = {"key": keys, "node": node, "time": rows["time"].to_numpy(), "flags": flags.astype(np.int32)}
    if "order" in rows.column_names:
        columns["order"] = rows["order"].to_numpy()
    if plan.keys is None:
        columns["sender"] = sender
    elif not known.all():
        columns, place = {name: column[known] for name, column in columns.items()}, place[known]
    yield from spread(RECEPTIONS, "received", place, plan.tasks, columns, rank)


def _placed(plan: MeasuringPlan, keys: IntArray) -> tuple[BoolArray, IntArray]:
    """Which events count, and the task of each row's event."""
    if plan.keys is None:  # only the tasks will know
        return np.ones(len(keys), np.bool_), keys
    if not len(plan.keys):
        return np.zeros(len(keys), np.bool_), np.zeros(len(keys), np.int64)
    at = _index(plan.keys).get_indexer(keys)
    return at >= 0, plan.places[at]


_INDEX: dict[int, Any] = {}


def _index(keys: IntArray) -> Any:
    """A hash table of the events, made once in a process."""
    import pandas as pd

    if id(keys) not in _INDEX:
        _INDEX.clear()
        _INDEX[id(keys)] = pd.Index(keys)
    return _INDEX[id(keys)]


def _handled(
    plan: MeasuringPlan, run: IntArray, node: IntArray, sender: IntArray, known: BoolArray
) -> Iterator[Letter]:
    """Who received anything, and who sent how much that counts: none, if only tasks know what counts."""
    import pandas as pd

    if plan.keys is None:
        known = np.zeros(len(known), np.bool_)
    for one in np.unique(run).tolist():
        mine = run == one
        everything = bool(mine.all())
        receivers = pd.unique(node if everything else node[mine])
        columns = {"run": np.full(len(receivers), one), "node": receivers}
        yield from spread(RECEPTIONS, "seen", receivers, plan.tasks, columns)
        code, senders = pd.factorize(sender if everything else sender[mine])
        sent = np.bincount(code[known if everything else known[mine]], minlength=len(senders))
        columns = {"run": np.full(len(senders), one), "node": senders, "sent": sent}
        yield from spread(RECEPTIONS, "sent", senders, plan.tasks, columns)


def _publishes(plan: MeasuringPlan, rows: pa.Table, rank: int) -> Iterator[Letter]:
    run, node, time = hashes(rows["run"]), hashes(rows["node"]), rows["time"].to_numpy()
    mine = plan.mine(run)
    yield from _seen(plan, run[mine], node[mine])
    end = plan.scope.end
    counts = mine & (time >= plan.scope.start) & (time <= (np.inf if end is None else end))
    keys = event_keys(run, rows["event"].to_numpy())
    columns = {"key": keys, "run": run, "topic": hashes(rows["topic"]), "node": node, "time": time}
    if "order" in rows.column_names:
        columns["order"] = rows["order"].to_numpy()
    columns = {name: column[counts] for name, column in columns.items()}
    _, place = _placed(plan, columns["key"])
    yield from spread(RECEPTIONS, "event", place, plan.tasks, columns, rank)


def _seen(plan: MeasuringPlan, run: IntArray, node: IntArray) -> Iterator[Letter]:
    import pandas as pd

    for one in np.unique(run).tolist():
        nodes = pd.unique(node[run == one])
        yield from spread(NODES, "seen", nodes, plan.tasks, {"run": np.full(len(nodes), one), "node": nodes})


def _links(plan: MeasuringPlan, rows: pa.Table, rank: int) -> Iterator[Letter]:
    run, node, time = hashes(rows["run"]), hashes(rows["node"]), rows["time"].to_numpy()
    mine = plan.mine(run)
    yield from _seen(plan, run[mine], node[mine])
    recent = np.zeros(len(run), np.bool_)
    for number, about in plan.runs.items():
        recent |= (
            (run == number) & (time >= about.moment - plan.scope.snapshot_within) & (time <= about.moment)
        )
    kinds = rows["kind"].filter(pa.array(recent))
    yield names_of("kinds", kinds)
    columns = {
        "run": run,
        "node": node,
        "peer": hashes(rows["peer"]),
        "kind": hashes(rows["kind"]),
        "time": time,
    }
    columns = {name: column[recent] for name, column in columns.items()}
    yield from spread(NODES, "links", columns["node"], plan.tasks, columns, rank)


def _control(plan: MeasuringPlan, rows: pa.Table, rank: int) -> Iterator[Letter]:
    run, node, time = hashes(rows["run"]), hashes(rows["node"]), rows["time"].to_numpy()
    mine = plan.mine(run)
    yield from _seen(plan, run[mine], node[mine])
    yield names_of("kinds", rows["kind"])
    kind = hashes(rows["kind"])
    for number, about in plan.runs.items():
        here = run == number
        within = (time[here] > plan.scope.start) & (time[here] <= about.end)
        kinds, code = np.unique(kind[here], return_inverse=True)
        for what in ("messages", "bytes"):
            amounts = np.zeros(len(kinds), np.int64)
            np.add.at(amounts, code[within], rows[what].to_numpy()[here][within])
            sums = {
                f"{what}:{one}": amount for one, amount in zip(kinds.tolist(), amounts.tolist(), strict=True)
            }
            yield plan.tell(number, **sums)


def _subscriptions(plan: MeasuringPlan, rows: pa.Table, rank: int) -> Iterator[Letter]:
    columns = {"node": hashes(rows["node"]), "topic": hashes(rows["topic"])}
    yield from spread(NODES, "wishes", columns["node"], plan.tasks, columns, rank)


def _churn(plan: MeasuringPlan, rows: pa.Table, rank: int) -> Iterator[Letter]:
    change = rows["change"].cast(pa.string())
    joins = pc.equal(change, "join").to_numpy()
    odd = change.filter(pc.invert(pc.is_in(change, pa.array(["join", "leave"]))))
    if len(odd):
        raise BadInput(f"churn: column 'change': {odd[0].as_py()!r}; write 'join' or 'leave'")
    columns = {"node": hashes(rows["node"]), "time": rows["time"].to_numpy(), "joins": joins}
    yield from spread(NODES, "changes", columns["node"], plan.tasks, columns, rank)


def _nodes(plan: MeasuringPlan, rows: pa.Table, rank: int) -> Iterator[Letter]:
    nodes = np.unique(hashes(rows["node"]))
    yield from spread(NODES, "nodes", nodes, plan.tasks, {"node": nodes}, rank)
