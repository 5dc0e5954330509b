"""What the studies of Vitis share: the settings of §IV-A at three scales, and the four readings of traffic overhead.

Traffic overhead is printed in four readings (see `topicweave.papers.vitis.dissemination`), and the claims are
held against all four (under churn, against the two over the network). Where a study prints one alone it is
`noise_all`, in which every notification counts: small runs had shown that it comes closest to the paper's
reductions, so it is no evidence of its own, and `docs/systems/vitis.md` says what the others give.

Events are empty and travel with their notifications, so that every notification is seen by the telemetry.
Rates are equal unless a figure varies them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from topicweave.papers.study import Row, Scale
from topicweave.papers.vitis.dissemination import Dissemination
from topicweave.papers.vitis.followers_like import FollowersLike
from topicweave.papers.vitis.lists import CorrelatedLists
from topicweave.papers.vitis.runs import CycledDissemination
from topicweave.papers.vitis.workloads import FollowersSample
from topicweave.runs.run import Result

PATTERNS = ("random", "low", "high")
READINGS = ("noise", "noise_node_mean", "noise_all", "noise_all_node_mean")
HELD = "noise_all"
TABLE = 15

SETTLE: dict[Scale, float] = {"smoke": 30.0, "tenth": 30.0, "paper": 100.0}
"""Seconds until events are published. By then the ring is right everywhere (`vitis/ring`), and relay paths
have become few; friends still get a little better for as long as one looks. At paper scale it was chosen by
the curve of paths over cycles (figure 6 prints it).
"""
SETTLE_OPT = 30.0
"""OPT has no ring and no clusters to wait for."""

WINDOW = 4.0
"""Seconds over which events are published, by messages."""
Way = Literal["messages", "cycles"]
"""How static settings of Vitis and RVR run: nodes in the simulator, or all nodes as arrays, cycle by cycle
(`topicweave.bulk.vitis.engine`), as they do unless said otherwise; `vitis/levels` compares the two. OPT and
churn run by messages.
"""

_DEFAULTS = {"small_world": 1, "table_size": TABLE}
"""Left out of runs, so that figures that meet at a point share its run."""


def lists(scale: Scale, seed: int, pattern: str, alpha: float = 0.0) -> CorrelatedLists:
    """§IV-A; or a tenth of its nodes and topics, so that a hundred nodes want each topic as there; or a small
    likeness.
    """
    if scale == "paper":
        return CorrelatedLists(10_000, 5000, pattern, 50, 100, alpha, seed)
    if scale == "tenth":
        return CorrelatedLists(1000, 500, pattern, 50, 10, alpha, seed)
    return CorrelatedLists(150, 100, pattern, 10, 10, alpha, seed)


AS_PRINTED: dict[str, Any] = {"rest_period": 0.0, "names_first": False}
"""Every exchange every period, and everything in each message."""


def static(
    scale: Scale,
    seed: int,
    system: str,
    workload: CorrelatedLists | FollowersSample | FollowersLike,
    *,
    events: int | None = None,
    level: Way = "cycles",
    settle: float | None = None,
    watch_every: float | None = None,
    membership: str = "full",
    **parameters: Any,
) -> Dissemination | CycledDissemination:
    """A static setting: settle, then one event on every topic unless said otherwise.

    What is kept for the figures that look at distributions costs the others nothing.
    """
    given = {name: value for name, value in parameters.items() if _DEFAULTS.get(name) != value}
    if system == "opt":
        # What bounds OPT's degree is no default of its own.
        given.setdefault("table_size", TABLE)
    else:
        given["spreading"] = {"inline": 1}
    if system == "vitis":
        given.setdefault("rates", "equal")
    settle = settle or (SETTLE_OPT if system == "opt" else SETTLE[scale])
    watched: dict[str, Any] = {} if watch_every is None else {"watch_every": watch_every}
    if system in ("vitis", "rvr") and level == "cycles":
        return CycledDissemination(
            system="vitis" if system == "vitis" else "rvr",
            parameters=given,
            workload=workload,
            seed=seed,
            settle=settle,
            events=events,
            distribution=True,
            **watched,
        )
    return Dissemination(
        system=system,
        parameters=given if system == "opt" else AS_PRINTED | given,
        workload=workload,
        seed=seed,
        settle=settle,
        events=events,
        window=WINDOW,
        distribution=True,
        membership=membership,
        **watched,
    )


def less(part: float, whole: float) -> float:
    """By which share `part` is less than `whole`."""
    return 1.0 - part / whole if whole else 0.0


def everything(where: Mapping[str, Any], result: Result) -> list[Row]:
    """What every static setting must show, and what it is good to know."""
    hit = result["hit_ratio"]
    rows = [
        Row(where, "hit_ratio", 1.0, hit),
        *(Row(where, reading, None, result[reading]) for reading in READINGS),
        Row(where, "hops_mean", None, result["hops_mean"]),
        Row(where, "relays_per_topic", None, result["relays_per_topic"]),
        Row(where, "degree_mean", None, result["degree_mean"]),
        Row(where, "degree_max", None, result["degree_max"]),
        Row(where, "clusters_per_topic", None, result["clusters_per_topic"]),
    ]
    if "requested_paths" in result:
        rows.append(Row(where, "paths asked for per topic", None, paths_per_topic(result)))
    return rows


def paths_per_topic(result: Result) -> float:
    """Why an overhead is what it is: relay paths asked for, over topics."""
    return float(result["requested_paths"] * result["nodes"] / result["workload"]["topics"])


def at_level(rows: Iterable[Row]) -> list[Row]:
    """The rows, saying how their systems were run."""
    return [
        msgspec.structs.replace(
            row, where={**row.where, "level": "messages" if row.where["system"] == "opt" else "cycles"}
        )
        if "system" in row.where
        else row
        for row in rows
    ]
