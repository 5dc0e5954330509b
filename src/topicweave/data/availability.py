"""When real hosts were up: sessions, machine events, and a workload whose nodes live the lives of such hosts."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from topicweave.data.files import data_file, fingerprint
from topicweave.data.formats import find_real
from topicweave.data.reading import real_rows
from topicweave.data.sampling import chances
from topicweave.errors import BadInput
from topicweave.model.workload import Workload

Sessions = tuple[tuple[float, float], ...]
"""(start, end) in seconds, in order, apart from each other."""


def host_sessions(name: str = "gnutella") -> tuple[Sessions, ...]:
    """Per host of a real availability trace its sessions; the Gnutella hosts stand in for Overnet's and Skype's."""
    return _read_once(name, str(fingerprint([data_file(find_real(name).file)])))


@lru_cache(maxsize=2)
def _read_once(name: str, _stamp: str) -> tuple[Sessions, ...]:
    rows = real_rows(name)
    hosts: list[list[float]] = []
    last = None
    for line, time in zip(rows["line"].to_pylist(), rows["time"].to_pylist(), strict=True):
        if line != last:
            hosts.append([])
            last = line
        if time is not None:
            hosts[-1].append(time)
    return tuple(tuple(zip(times[::2], times[1::2], strict=True)) for times in hosts)


def alternating(rows: pa.Table) -> pa.Table:
    """Of machine events the joins and leaves that change something, in the order of time, file and line.

    Of several changes of a machine at one moment the last counts; of a run of equal ones the first; and a
    machine that was never added can't be removed. `topicweave.pipeline.tables_of` sets the others aside with
    a reason.
    """
    changes = rows.filter(pc.not_equal(rows["change"], "update"))
    file = changes["file"].cast(pa.string())
    order = pc.sort_indices(
        pa.table({"node": changes["node"], "time": changes["time"], "file": file, "line": changes["line"]}),
        sort_keys=[(key, "ascending") for key in ("node", "time", "file", "line")],
    )
    changes = changes.take(order)
    node, time, _ = _columns(changes)
    superseded = np.append((node[1:] == node[:-1]) & (time[1:] == time[:-1]), False)
    changes = changes.filter(pa.array(~superseded[: len(node)]))
    node, _, joins = _columns(changes)
    first = np.append(True, node[1:] != node[:-1])[: len(node)]
    repeated = ~first & (joins == np.roll(joins, 1))
    kept = changes.filter(pa.array(~repeated & ~(first & ~joins)))
    return kept.sort_by([("time", "ascending"), ("line", "ascending")]).select(["time", "node", "change"])


def _columns(changes: pa.Table) -> tuple[Any, Any, Any]:
    """Machines by number, times, and which are joins."""
    node = changes["node"].combine_chunks().dictionary_encode().indices.to_numpy()
    return node, changes["time"].to_numpy(), pc.equal(changes["change"], "join").to_numpy()


def with_churn(
    workload: Workload, changes: pa.Table, hosts: pa.Table, *, seconds: float | None = None, seed: int = 0
) -> Workload:
    """The workload with a trace laid over it: each node lives the life of a random host of the trace.

    `changes` has time, node and change; `hosts` has node and, of a trace of sessions, how many `sessions`
    each had. Hosts are dealt out in a random order, and once all are used again from the first (Rappel §6.1.3
    replicates its trace too). With `seconds` the trace's length is scaled to that. A host that the trace
    never saw up is down throughout: its node joins at the trace's end.
    """
    if seconds is not None and not 0 < seconds < math.inf:
        raise BadInput(f"{seconds} seconds: scale to a positive length that ends")
    names = hosts["node"].to_pylist()
    span = pc.max(changes["time"]).as_py() or 1.0
    scale = 1.0 if seconds is None else seconds / span
    dealt = np.argsort(chances(seed, names), kind="stable")
    order = np.argsort(chances(seed + 1, workload.node_names), kind="stable")
    host_of = np.empty(workload.nodes, np.int64)
    host_of[order] = dealt[np.arange(workload.nodes) % len(dealt)]
    if "sessions" in hosts.column_names:
        never = hosts.filter(pc.invert(pc.is_in(hosts["node"], value_set=pc.unique(changes["node"]))))["node"]
        late = pa.table(
            {"time": pa.repeat(span, len(never)), "node": never, "change": pa.repeat("join", len(never))}
        )
        changes = pa.concat_tables([changes.select(late.column_names), late.cast(late.schema)])
    lives = pa.table(
        {"host": pa.array(names, pa.string()).take(pa.array(host_of)), "life": list(workload.node_names)}
    )
    lived = changes.join(lives, "node", "host", join_type="inner")
    tables = workload.tables()
    return Workload.from_tables(
        tables["subscriptions"],
        tables["topics"],
        pa.table(
            {"time": pc.multiply(lived["time"], scale), "node": lived["life"], "change": lived["change"]}
        ),
        tables.get("hosts"),
    )
