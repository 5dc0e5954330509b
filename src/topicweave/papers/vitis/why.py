"""Why Vitis' figures come out as they do: one thing changed at a time, in networks of a thousand nodes.

Topics have as many subscribers as in the paper (`lists` at a tenth), and these are ten times as large a share of
all nodes: they fall into fewer clusters.
"""

from __future__ import annotations

from typing import Any

from topicweave.papers.study import Plan, Results, Row, Scale
from topicweave.papers.vitis.followers_like import FollowersLike
from topicweave.papers.vitis.lists import CorrelatedLists
from topicweave.papers.vitis.real import churned
from topicweave.papers.vitis.settings import READINGS, SETTLE, TABLE, less, lists, paths_per_topic, static
from topicweave.papers.vitis.synthetic import share_above
from topicweave.papers.vitis.workloads import TraceLists
from topicweave.runs.run import Result, Run

FRIENDS: tuple[tuple[str, int, int], ...] = (
    ("random", 9, 4),
    ("random", 12, 1),
    ("random", 12, 4),
    ("low", 0, 13),
    ("low", 3, 10),
    ("low", 3, 13),
    ("low", 9, 4),
    ("low", 12, 1),
    ("low", 12, 4),
)
"""Workload, friends, small-world links: figure 4's, and the same friends with as many links as fewer friends leave."""
LARGEST = 35
CROSSING = (25, 30)
"""Tables between which Vitis becomes faster than RVR (figure 6b)."""
TABLES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "random": ("vitis", "random", {}),
    "random, relays keep to their paths": ("vitis", "random", {"relays_hand_on": False}),
    "low": ("vitis", "low", {}),
    "rvr": ("rvr", "random", {}),
}
PATTERNS = ("random", "low", "high")
"""Of subscriptions: the paper draws one line of RVR for all three."""
BOUNDED = ((2, 0), (2, LARGEST), (3, 0))
"""K and the bound of OPT's degree."""
CROWDS = (0.3, 0.6)
"""Shares of all nodes that come at once."""


def why(scale: Scale, seed: int) -> Plan:
    """Friends beside small-world links, larger tables, subscriptions as the paper's Twitter users have them."""
    small: Scale = "smoke" if scale == "smoke" else "tenth"
    settled = None if scale == "smoke" else SETTLE["paper"]
    runs: dict[Any, Run] = {
        ("friends", pattern, friends, links): static(
            *(small, seed, "vitis", lists(small, seed, pattern)),
            small_world=links,
            table_size=2 + friends + links,
            settle=settled,
        )
        for pattern, friends, links in FRIENDS
    }
    sizes = (TABLE, *CROSSING, LARGEST)
    for name, (system, drawn, how) in TABLES.items():
        for size in sizes:
            runs["table", name, size] = static(
                *(small, seed, system, lists(small, seed, drawn)), table_size=size, settle=settled, **how
            )
    for pattern in PATTERNS:
        runs["rvr", pattern] = static(*(small, seed, "rvr", lists(small, seed, pattern)), settle=settled)
    nodes = {"smoke": 150, "tenth": 1000, "paper": 1000}[scale]
    like = FollowersLike(nodes, seed)
    for system in ("vitis", "rvr"):
        for size in (TABLE, LARGEST):
            runs["users", system, size] = static(small, seed, system, like, table_size=size, settle=settled)

    def rows_of(results: Results) -> list[Row]:
        rows: list[Row] = []
        for pattern, friends, links in FRIENDS:
            where = {"workload": pattern, "friends": friends, "small_world": links, "level": "cycles"}
            rows += _paths(where, results["friends", pattern, friends, links])
        for name in TABLES:
            for size in sizes:
                where = {"setting": name, "table_size": size, "level": "cycles"}
                rows += _beside_rvr(where, results["table", name, size], results["table", "rvr", size])
        for pattern in PATTERNS:
            where = {"system": "rvr", "workload": pattern, "level": "cycles"}
            result = results["rvr", pattern]
            rows += [Row(where, name, None, result[name]) for name in (*READINGS, "hops_mean")]
        for size in (TABLE, LARGEST):
            rows += _users(size, results["users", "vitis", size], results["users", "rvr", size])
        return rows

    return Plan(runs, rows_of)


def users(scale: Scale, seed: int) -> Plan:
    """OPT on subscriptions as the paper's Twitter users have them."""
    workload = FollowersLike(150 if scale == "smoke" else 1000, seed)
    small: Scale = "smoke" if scale == "smoke" else "tenth"
    runs = {
        (k, size): static(small, seed, "opt", workload, table_size=size, coverage=k) for k, size in BOUNDED
    }

    def rows_of(results: Results) -> list[Row]:
        return [row for (k, size), result in results.items() for row in _degrees(k, size, result)]

    return Plan(runs, rows_of)


def crowds(scale: Scale, seed: int) -> Plan:
    """Larger flash crowds: the paper does not say how many come at once."""
    hosts, quiet, duration = (60, 20.0, 40.0) if scale == "smoke" else (200, 40.0, 120.0)
    lists = CorrelatedLists(hosts, hosts // 2, "random", min(50, hosts // 4), 2, seed=seed)
    runs = {
        (system, share): churned(
            system, TraceLists(lists, 1.0, duration / 120.0, quiet, duration, share, seed), seed
        )
        for share in CROWDS
        for system in ("vitis", "rvr")
    }

    def rows_of(results: Results) -> list[Row]:
        return [row for (system, share), result in results.items() for row in _crowd(system, share, result)]

    return Plan(runs, rows_of)


def _beside_rvr(where: dict[str, Any], result: Result, rvr: Result) -> list[Row]:
    """Overhead, delay, and nodes with much overhead, over RVR's with the same table."""
    rows = [
        Row(where, f"{measure} / RVR's", None, result[measure] / rvr[measure])
        for measure in (*READINGS, "hops_mean")
    ]
    for key in ("overhead_by_node", "overhead_by_node_all"):
        others = share_above(rvr, key, 0.2)
        share = share_above(result, key, 0.2) / others if others else 0.0
        rows.append(Row(where, f"{key}: nodes above 0.2, share of RVR's", None, share))
    if "clusters_per_topic" in result:
        rows.append(Row(where, "clusters_per_topic", None, result["clusters_per_topic"]))
    return rows


def _paths(where: dict[str, Any], result: Result) -> list[Row]:
    return [
        *(Row(where, measure, None, result[measure]) for measure in (*READINGS, "hops_mean")),
        Row(where, "paths asked for per topic", None, paths_per_topic(result)),
        Row(where, "relays_per_topic", None, result["relays_per_topic"]),
        Row(where, "clusters_per_topic", None, result["clusters_per_topic"]),
    ]


def _users(size: int, vitis: Result, rvr: Result) -> list[Row]:
    """Figure 10 on such users."""
    where: dict[str, Any] = {
        "workload": "80 topics per node",
        "nodes": vitis["nodes"],
        "table_size": size,
        "level": "cycles",
    }
    rows = [
        Row({**where, "system": system}, measure, None, result[measure])
        for system, result in (("vitis", vitis), ("rvr", rvr))
        for measure in (*READINGS, "hops_mean", "hit_ratio")
    ]
    rows += [
        Row(where, f"{reading}: less than RVR's by", None, less(vitis[reading], rvr[reading]))
        for reading in READINGS
    ]
    faster = rvr["hops_mean"] / vitis["hops_mean"]
    return [*rows, Row(where, "delay: times shorter than RVR's", None, faster)]


def _degrees(k: int, size: int, result: Result) -> list[Row]:
    """Figure 11 on such users, and figure 10 with a bound."""
    degrees = result["degrees"]
    where: dict[str, Any] = {
        "system": "opt",
        "workload": "80 topics per node",
        "nodes": len(degrees),
        "K": k,
        "table_size": size,
        "level": "messages",
    }
    rows = [Row(where, measure, None, result[measure]) for measure in ("hit_ratio", "hops_mean")]
    for most in (TABLE, 200):
        share = sum(1 for degree in degrees if degree > most) / len(degrees)
        rows.append(Row(where, f"share of nodes of degree above {most}", None, share))
    mean = sum(degrees) / len(degrees)
    return [
        *rows,
        Row(where, "degree_mean", None, mean),
        Row(where, "degree_max", None, degrees[-1]),
    ]


def _crowd(system: str, share: float, result: Result) -> list[Row]:
    """Figure 12 before, in and after a crowd: by parts of the trace."""
    where: dict[str, Any] = {"system": system, "crowd": share, "level": "messages"}
    parts = result["parts"]
    rows = [Row(where, "worst hit_ratio", None, min(part["hit_ratio"] for part in parts))]
    return rows + [
        Row({**where, "part": number}, measure, None, part[measure])
        for number, part in enumerate(parts, start=1)
        for measure in ("hit_ratio", "noise", "noise_all", "hops_mean", "nodes")
    ]
