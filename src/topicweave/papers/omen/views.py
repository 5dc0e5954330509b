"""Local views and the coverage factor (§6.4, Figures 6 and 8)."""

from __future__ import annotations

from typing import Any

from topicweave.measures.mending import view_measures
from topicweave.papers.omen.runs import mended, restored, samples
from topicweave.papers.study import Plan, Results, Row, Scale
from topicweave.runs.run import Result, Run

FACTORS = tuple(range(10))


def fig6(scale: Scale, seed: int) -> Plan:
    """How local view sizes are spread over the nodes, λ = 5."""
    workloads = samples(scale, seed, "facebook")
    runs: dict[Any, Run] = {
        name: mended("omen", workload, scale, seed, 300, histogram=True)
        for name, workload in workloads.items()
    }
    runs |= {
        (name, "hundred"): mended(
            *("omen", workload, scale, seed, 0), warm_up=100 if scale == "paper" else 15, histogram=True
        )
        for name, workload in workloads.items()
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for name in workloads:
            few = view_measures(results[name, "hundred"]["view_sizes"])[
                "share of nodes that know fewer than 5 % of all"
            ]
            where = {"workload": name, "gossip rounds": 100}
            rows.append(Row(where, "share of nodes that know fewer than 5 % of all", None, few))
            rows += [
                Row(
                    {"workload": name, "round": look["round"]},
                    "local_view mean",
                    None,
                    look["local_view_mean"],
                )
                for look in results[name]["looks"]
            ]
            sizes = results[name]["view_sizes"]
            where = {"workload": name}
            held = view_measures(sizes)
            small = held["share of local views of at most 80"]
            rows += [
                Row(where, "share of local views of at most 80", 0.974, small),
                Row(where, "local_view mean", 48.4, held["local_view_mean"]),
                Row(where, "local_view highest", None, held["local_view_max"]),
                Row(where, "nodes", None, len(sizes)),
            ]
        return rows

    return Plan(runs, rows_of)


def fig8(scale: Scale, seed: int) -> Plan:
    """The coverage factor: local views grow with it, degrees fall, little beyond 5."""
    workloads = samples(scale, seed, "facebook", how_many=2)
    factors = FACTORS if scale == "paper" else (0, 1, 5, 9)
    runs = {
        (name, factor): mended("omen", workload, scale, seed, 1000, coverage=factor)
        for name, workload in workloads.items()
        for factor in factors
    }
    views_in_paper = {1: 21.02, 3: 40.49, 5: 48.40, 9: 57.59}
    degrees_in_paper = {0: 333, 1: 313, 3: 302, 5: 283, 7: 277, 9: 274}

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for name in workloads:
            last = {factor: results[name, factor]["looks"][-1] for factor in factors}
            for factor, look in last.items():
                where = {"workload": name, "coverage": factor}
                rows += [
                    Row(where, "local_view mean", views_in_paper.get(factor), look["local_view_mean"]),
                    Row(where, "degree_max at the end", degrees_in_paper.get(factor), look["degree_max"]),
                    Row(where, "degree_mean at the end", None, look["degree_mean"]),
                    Row(where, "growth of degree_max per event", None, _growth(results[name, factor])),
                    restored(where, results[name, factor]),
                ]
            five, nine = last[5]["degree_max"], last[9]["degree_max"]
            zero = last[0]["degree_max"]
            where = {"workload": name, "coverage": "0, 5, 9"}
            rows += [
                Row(where, "degree_max at the end", "falls with the factor", f"{zero}, {five}, {nine}"),
                Row(
                    {"workload": name, "coverage": "9 against 5"},
                    "degree_max at the end",
                    "insignificant (274 / 283)",
                    nine / five,
                ),
                Row(
                    {"workload": name, "coverage": "rising"},
                    "local_view mean",
                    "rises, and stays small",
                    ", ".join(f"{last[factor]['local_view_mean']:.1f}" for factor in factors),
                ),
            ]
        return rows

    return Plan(runs, rows_of)


def _growth(result: Result) -> float:
    first, last = result["looks"][0], result["looks"][-1]
    return float((last["degree_max"] - first["degree_max"]) / result["rounds"])
