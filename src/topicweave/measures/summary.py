"""All measures of one run in one go."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from topicweave.errors import BadInput
from topicweave.measures.columns import distinct, names_array, numbers
from topicweave.measures.control import control_measures
from topicweave.measures.delivery import (
    Receptions,
    fairness,
    hit_ratio,
    latency_measures,
)
from topicweave.measures.diameter import diameter_measures
from topicweave.measures.graph import Overlay, TopicGraph, snapshot
from topicweave.measures.interests import Interests
from topicweave.measures.overlay import connectivity_measures, degree_measures, links_by_kind
from topicweave.measures.traffic import traffic_measures
from topicweave.measures.uptime import Uptime
from topicweave.telemetry.tables import Tables


class Scope(NamedTuple):
    """What of a run is measured."""

    start: float = 0.0
    """Events published from `start` to `end`, and the control traffic between them; by default up to the last
    row of all.
    """
    end: float | None = None
    grace: float = 0.0
    """For `hit_ratio`; and nodes that joined less than that before the snapshot are not in the overlay
    (SpiderCast §3.8).
    """
    window: float = math.inf
    """For `hit_ratio`: how long after an event its receptions count."""
    snapshot_time: float | None = None
    """Which moment of the overlay; see `graph.snapshot`."""
    snapshot_within: float = 0.0
    link_kinds: Collection[str] | None = None
    """Which kinds of links make the overlay; by default all."""
    coverage_k: int = 1
    """The k of `coverage`."""


def scope_of(**given: Any) -> Scope:
    """Raises `BadInput` about what would measure nothing."""
    scope = Scope(**given)
    if not -math.inf < scope.start < math.inf:
        raise BadInput(f"start {scope.start:g}: give a moment of the run, in seconds")
    if scope.end is not None and not scope.start < scope.end:
        raise BadInput(f"end {scope.end:g}: not after the start, {scope.start:g}; give a later moment")
    if not 0.0 <= scope.grace < math.inf:
        raise BadInput(f"grace {scope.grace:g}: give seconds, 0 or more")
    if not scope.window > 0.0:
        raise BadInput(f"window {scope.window:g}: give seconds, more than 0")
    return scope


def measure_run(
    tables: Tables,
    subscriptions: pa.Table,
    *,
    run: str | None = None,
    nodes: Iterable[str] | None = None,
    churn: pa.Table | None = None,
    **scope: Any,
) -> dict[str, float]:
    """Every measure of the vocabulary that the tables of one run allow.

    Shares are 0..1, times are seconds, counts of nothing are 0, and what would be a mean or share of nothing is
    nan.

    run             which run, if the tables hold several
    nodes           all nodes there are; by default those that subscribe to something or left a row of their own
    churn           (time, node, change): who came and went; by default everybody stayed
    scope           the fields of `Scope`, as keywords
    """
    start, end, grace, window, snapshot_time, snapshot_within, link_kinds, coverage_k = scope_of(**scope)
    tables = _one_run(tables, run)
    if end is None:
        end = _last_time(tables, default=start)
    everyone = _everyone(tables, subscriptions) if nodes is None else names_array(nodes)
    uptime = Uptime(everyone, churn)

    links = snapshot(tables.links, snapshot_time, snapshot_within)
    if snapshot_time is None:
        snapshot_time = pc.max(links["time"]).as_py() if links.num_rows else end
    settled = uptime.throughout(
        np.arange(len(everyone)),
        np.full(len(everyone), snapshot_time - grace),
        np.full(len(everyone), snapshot_time),
    )
    present = everyone.filter(pa.array(settled))
    overlay = Overlay.of(links, present, link_kinds)
    topics = TopicGraph.of(overlay, subscriptions)
    diameters = diameter_measures(topics)

    published = numbers(tables.publishes["time"])
    counted = pa.array((published >= start) & (published <= end))
    receptions = Receptions.of(tables.publishes.filter(counted), tables.deliveries)
    interests = Interests.of(subscriptions, everyone)

    return {
        **degree_measures(overlay),
        **{f"links.{kind}": value for kind, value in links_by_kind(links, present).items()},
        **connectivity_measures(topics, coverage_k),
        **diameters,
        "hit_ratio": hit_ratio(
            receptions, interests, None if churn is None else uptime, grace=grace, window=window
        ),
        **traffic_measures(receptions.traffic),
        **latency_measures(receptions),
        "fairness": fairness(receptions, interests),
        **control_measures(tables.control, node_seconds=uptime.seconds(start, end), start=start, end=end),
    }


def _one_run(tables: Tables, run: str | None) -> Tables:
    """Events of different runs may have equal keys, so runs are never measured together."""
    runs = tables.runs()
    held = ", ".join([*runs[:5], "…"] if len(runs) > 5 else runs) or "none"
    if run is None:
        if len(runs) > 1:
            raise BadInput(f"the tables hold {len(runs)} runs ({held}); say which to measure")
        return tables
    if run not in runs:
        raise BadInput(f"the tables hold no run {run!r}; they hold {held}")
    return tables.of_run(run)


def _last_time(tables: Tables, default: float) -> float:
    every = (tables.links, tables.publishes, tables.deliveries, tables.control)
    return max((pc.max(table["time"]).as_py() for table in every if table.num_rows), default=default)


def _everyone(tables: Tables, subscriptions: pa.Table) -> pa.Array:
    every = (subscriptions, tables.links, tables.publishes, tables.deliveries, tables.control)
    return distinct(*(table["node"] for table in every))
