"""Backup sets by either builder, and what they do to degrees (§6.3, Figures 3 to 5)."""

from __future__ import annotations

from typing import Any

from topicweave.measures.mending import (
    backup_measures,
    backups_along_subscriptions,
    backups_by_subscriptions,
)
from topicweave.papers.omen.runs import mended, restored, unif
from topicweave.papers.study import Plan, Results, Row, Scale
from topicweave.runs.run import Result

SKEWED = ("zipf", "expo")


def _by_subscriptions(where: dict[str, Any], result: Result) -> list[Row]:
    """Backup set sizes of nodes with short, middling and long lists, and how nearly they lie on a line."""
    told = result["list_sizes"], result["backup_sizes"]
    rows = [
        Row({**where, "lists": name}, measure, None, value)
        for name, measured in backups_by_subscriptions(*told).items()
        for measure, value in measured.items()
    ]
    line = backups_along_subscriptions(*told)
    return [*rows, Row(where, "correlation of backup_size with subscriptions", None, line)]


def _measured(result: Result) -> dict[str, float]:
    return backup_measures(result["backup_sizes"], result["backup_in_degrees"])


def _served(where: dict[str, Any], result: Result) -> list[Row]:
    """How the load of being a backup is spread."""
    measured = _measured(result)
    return [Row(where, name, None, measured[name]) for name in SERVED]


SERVED = (
    "share of nodes with backup_in_degree below 5",
    "share of nodes with backup_in_degree above 100",
    "share of all backups that are nodes with backup_in_degree above 100",
)
IN_PAPER: dict[str, dict[str, float | None]] = {
    "primal-dual": {"share": 0.028, "least": 21, "most": 59, "below 5": None},
    "greedy": {"share": 0.011, "least": None, "most": 581, "below 5": 0.429},
}


def _of_pool(where: dict[str, Any], result: Result) -> list[Row]:
    """Backup degrees with one way to find candidates."""
    measured = _measured(result)
    paper, share = IN_PAPER[where["builder"]], measured["backup_size"] / len(result["backup_sizes"])
    below = measured[SERVED[0]]
    return [
        Row(where, "backup_size / nodes", paper["share"], share),
        Row(where, "backup_in_degree lowest", paper["least"], measured["backup_in_degree lowest"]),
        Row(where, "backup_in_degree highest", paper["most"], measured["backup_in_degree highest"]),
        Row(where, SERVED[0], paper["below 5"], below),
    ]


def _backup_degrees(scale: Scale, seed: int, builder: str) -> Plan:
    """The candidates decide: all nodes (OMen-G, as the paper says it measured), a few random ones, or what
    gossip brings together in one exchange of everybody or many.
    """
    workload = unif(scale, seed)
    few = 60 if scale == "paper" else 30
    pools: dict[str, dict[str, Any]] = {
        "all nodes": {"global_view": True},
        "random": {"candidates": few},
        "gossip, first exchange": {"warm_up": 1},
        "gossip": {"warm_up": 15},
    }
    runs = {
        pool: mended(
            *("omen", workload, scale, seed, 0), coverage=3, builder=builder, backups=True, **candidates
        )
        for pool, candidates in pools.items()
    }
    runs["other builder"] = mended(
        *("omen", workload, scale, seed, 0),
        coverage=3,
        builder="greedy" if builder == "primal-dual" else "primal-dual",
        backups=True,
        global_view=True,
    )
    runs |= {
        popularity: mended(
            *("omen", unif(scale, seed, popularity), scale, seed, 0),
            coverage=3,
            builder=builder,
            backups=True,
            global_view=True,
        )
        for popularity in SKEWED
    }

    def rows_of(results: Results) -> list[Row]:
        rows: list[Row] = []
        spreads = {}
        for pool in pools:
            result = results[pool]
            where = {"nodes": result["nodes"], "workload": "uniform", "builder": builder, "candidates": pool}
            spreads[pool] = _measured(result)["backup_in_degree highest / mean"]
            rows += [*_of_pool(where, result), *_by_subscriptions(where, result)]
        for popularity in SKEWED:
            where = {"nodes": results[popularity]["nodes"], "workload": popularity, "builder": builder}
            rows += _served({**where, "candidates": "all nodes"}, results[popularity])
        where = {"nodes": results["all nodes"]["nodes"], "workload": "uniform", "builder": builder}
        rows += _served({**where, "candidates": "all nodes"}, results["all nodes"])[1:]
        here, there = (
            int(_measured(results[run])["backup_in_degree highest"]) for run in ("all nodes", "other builder")
        )
        everybody = {"builder": builder, "candidates": "all nodes"}
        if builder == "primal-dual":
            even = spreads["random"]
            where = {"builder": builder, "candidates": f"{few} random nodes"}
            rows += [
                Row(where, "backup_in_degree highest / mean", "balanced (59 / 56)", even),
                Row(everybody, "backup_in_degree highest", "below greedy's", f"{here}, {there}"),
            ]
        else:
            skew = spreads["all nodes"]
            rows.append(Row(everybody, "backup_in_degree highest / mean", "skewed (581 / 22)", skew))
        return rows

    return Plan(runs, rows_of)


def fig3(scale: Scale, seed: int) -> Plan:
    """Backup degrees with the primal-dual builder."""
    return _backup_degrees(scale, seed, "primal-dual")


def fig4(scale: Scale, seed: int) -> Plan:
    """Backup degrees with the greedy builder."""
    return _backup_degrees(scale, seed, "greedy")


def fig5(scale: Scale, seed: int) -> Plan:
    """Degrees over 1,000 churn rounds, with either builder (OMen-G)."""
    workload = unif(scale, seed)
    runs = {
        builder: mended(*("omen-g", workload, scale, seed, 1000), churn="random", coverage=3, builder=builder)
        for builder in ("primal-dual", "greedy")
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        last = {builder: results[builder]["looks"][-1] for builder in runs}
        first = results["greedy"]["looks"][0]
        for builder, look in last.items():
            where = {"workload": "uniform", "builder": builder, "round": look["round"]}
            paper = 84 if builder == "greedy" else None
            rows += [
                Row(where, "degree_max", paper, look["degree_max"]),
                Row(where, "degree_mean", None, look["degree_mean"]),
                Row(where, "nodes", None, look["nodes"]),
                restored(where, results[builder]),
            ]
        rows.append(Row({"workload": "uniform", "round": 0}, "degree_max", None, first["degree_max"]))
        highest = {builder: look["degree_max"] for builder, look in last.items()}
        rows.append(
            Row(
                {"workload": "uniform", "builder": "greedy against primal-dual"},
                "degree_max",
                "greedy degrades noticeably, primal-dual slowly",
                f"{highest['greedy']} against {highest['primal-dual']}",
            )
        )
        return rows

    return Plan(runs, rows_of)
