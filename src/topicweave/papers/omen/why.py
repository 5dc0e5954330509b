"""Why OMen's figures come out as they do: a start as high as the paper's, other ways to gather views."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from topicweave.designs import DEFAULT_RHO
from topicweave.measures.mending import view_measures
from topicweave.papers.omen.runs import Lists, mended, samples, unif
from topicweave.papers.study import Plan, Results, Row, Scale
from topicweave.runs.run import Result, Run

HIGH = 1.15
"""A rho with which LowODA's overlays of these samples start about as high as the paper's, at 232."""
ROUNDS = 500
VIEWS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "one cycle of gossip": {"warm_up": 1},
    "five random nodes in a buffer": {"samples": 5},
    "greedy backups": {"builder": "greedy"},
    "one cover, each topic five times": {"covers": "multi"},
}
"""How local views may come about: gossip, builder, covers."""
OTHER_RHOS = (HIGH, DEFAULT_RHO, 2.0)
FIGURE_9 = ("omen", "lowoda-re", "spidercast(3,1)")


def why(scale: Scale, seed: int) -> Plan:
    """Figures 8, 9 and 11 from a high start; figure 5 with other values of rho; views by how they come about."""
    workloads = samples(scale, seed, "facebook")
    runs: dict[Any, Run] = {}
    for name, lists in workloads.items():
        for system in FIGURE_9:
            runs["high", name, system] = mended(*(system, lists, scale, seed, ROUNDS), looks=10, rho=HIGH)
        runs["uncovered", name] = mended(
            *("omen", lists, scale, seed, ROUNDS), looks=10, rho=HIGH, coverage=0
        )
        for told, how in VIEWS.items():
            runs["views", name, told] = mended("omen", lists, scale, seed, 0, histogram=True, **how)
    base: Lists = unif(scale, seed)
    for rho in (HIGH, DEFAULT_RHO):
        for system in ("omen", "lowoda-re"):
            runs["uniform", rho, system] = mended(*(system, base, scale, seed, ROUNDS), looks=10, rho=rho)
    for rho in OTHER_RHOS:
        runs["greedy", rho] = mended(
            *("omen-g", base, scale, seed, 1000), churn="random", coverage=3, builder="greedy", rho=rho
        )
    far = samples(scale, seed, "twitter", how_many=2)
    for name, lists in far.items():
        for system in (FIGURE_9[0], FIGURE_9[2]):
            runs["far", name, system] = mended(
                *(system, lists, scale, seed, ROUNDS), diameters=True, rho=HIGH
            )

    def rows_of(results: Results) -> list[Row]:
        rows: list[Row] = []
        for name in workloads:
            where = {"workload": name, "rho": HIGH}
            mine, best, theirs = (results["high", name, system] for system in FIGURE_9)
            rows += _course(where, mine, best)
            last, bare = mine["looks"][-1]["degree_max"], results["uncovered", name]["looks"][-1]
            rows += [
                Row({**where, "coverage": 5}, "degree_max at the end", None, last),
                Row({**where, "coverage": 0}, "degree_max at the end", None, bare["degree_max"]),
                Row(
                    {**where, "system": "spidercast(3,1)"},
                    "degree_max - OMen's",
                    None,
                    theirs["degree_max_mean"] - mine["degree_max_mean"],
                ),
                Row(
                    {**where, "system": "spidercast(3,1)"},
                    "degree_max / OMen's",
                    None,
                    theirs["degree_max_mean"] / mine["degree_max_mean"],
                ),
            ]
            for told in VIEWS:
                rows += _views({"workload": name, "views": told}, results["views", name, told])
        for rho in (HIGH, DEFAULT_RHO):
            where = {"workload": "uniform 2K", "rho": rho}
            rows += _course(where, results["uniform", rho, "omen"], results["uniform", rho, "lowoda-re"])
        for rho in OTHER_RHOS:
            last = results["greedy", rho]["looks"][-1]
            where = {"workload": "uniform 2K", "builder": "greedy", "rho": rho, "round": last["round"]}
            rows.append(Row(where, "degree_max", None, last["degree_max"]))
        for name in far:
            longer = _longest(results["far", name, "omen"]) - _longest(results["far", name, FIGURE_9[2]])
            where = {"workload": name, "rho": HIGH}
            rows.append(Row(where, "topic_diameter_max - SpiderCast(3,1)'s", None, longer))
        return rows

    return Plan(runs, rows_of)


def _course(where: dict[str, Any], mine: Result, best: Result) -> list[Row]:
    """OMen over the rounds, beside the design made anew."""
    start, end = mine["looks"][0]["degree_max"], mine["looks"][-1]["degree_max"]
    rounds = mine["rounds"]
    return [
        Row(where, "degree_max, first and last", None, f"{start}, {end}"),
        Row(where, "growth of degree_max per event", None, (end - start) / rounds),
        Row(where, "degree_max / LowODA-Re's", None, mine["degree_max_mean"] / best["degree_max_mean"]),
        Row(where, "degree_max - LowODA-Re's", None, mine["degree_max_mean"] - best["degree_max_mean"]),
    ]


def _views(where: dict[str, Any], result: Result) -> list[Row]:
    held = view_measures(result["view_sizes"])
    return [
        Row(where, measure, None, held[measure])
        for measure in ("local_view_mean", "share of local views of at most 80")
    ]


def _longest(result: Result) -> float:
    """The largest topic diameter, mean over the looks."""
    return fmean(look["topic_diameter_max"] for look in result["looks"])
