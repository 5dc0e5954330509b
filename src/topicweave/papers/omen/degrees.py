"""Degrees: what each approach promises (Table 1), and what churn does to them (§6.5, Figure 9)."""

from __future__ import annotations

from typing import Any

from topicweave.designs import DEFAULT_RHO
from topicweave.papers.omen.runs import Lists, mended, restored, samples
from topicweave.papers.omen.workloads import SyntheticLists
from topicweave.papers.study import Plan, Results, Row, Scale
from topicweave.runs.run import Run


def table1(scale: Scale, seed: int) -> Plan:
    """Which degree each approach keeps low: GM the mean, MinMaxODA the maximum, LowODA and OMen both."""
    workloads = samples(scale, seed, "facebook")
    designs = {"GM": 0.0, "MinMaxODA": 1e9, "LowODA": DEFAULT_RHO}
    runs = {
        (name, design): mended(*("lowoda-re", lists, scale, seed, 0), rho=rho)
        for name, lists in workloads.items()
        for design, rho in designs.items()
    }
    runs |= {(name, "OMen"): mended("omen", lists, scale, seed, 300) for name, lists in workloads.items()}

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for name in workloads:
            look = {system: results[name, system]["looks"][-1] for system in (*designs, "OMen")}
            for system, last in look.items():
                where = {"workload": name, "system": system, "round": last["round"]}
                rows += [
                    Row(where, "degree_mean", None, last["degree_mean"]),
                    Row(where, "degree_max", None, last["degree_max"]),
                    Row(where, "partitioned_topics", 0, last["partitioned_topics"]),
                ]
            mean = {system: last["degree_mean"] for system, last in look.items()}
            most = {system: last["degree_max"] for system, last in look.items()}
            rows += [
                Row(
                    {"workload": name, "system": "GM"}, "degree_mean", "the lowest of the designs", mean["GM"]
                ),
                Row(
                    {"workload": name, "system": "MinMaxODA"},
                    "degree_max",
                    "the lowest of the designs",
                    most["MinMaxODA"],
                ),
                Row(
                    {"workload": name, "system": "LowODA"},
                    "degree_max",
                    "below GM's, with a mean below MinMaxODA's",
                    f"{most['LowODA']} and {mean['LowODA']:.2f}",
                ),
            ]
        return rows

    return Plan(runs, rows_of)


LARGE = 10_000
SYNTHETIC = ("uniform", "zipf", "expo")


def _degree_workloads(scale: Scale, seed: int) -> dict[str, tuple[Lists, int]]:
    """By name: workload and rounds."""
    chosen: dict[str, tuple[Lists, int]] = {
        name: (lists, 2000) for name, lists in samples(scale, seed, "facebook").items()
    }
    if scale == "paper":
        chosen |= {name: (lists, 2000) for name, lists in samples(scale, seed, "twitter").items()}
        chosen |= {f"{kind} 2K": (SyntheticLists(2000, 200, kind, seed=seed), 1000) for kind in SYNTHETIC}
        large = samples(scale, seed, "livejournal", LARGE, 1)
        chosen |= {name: (lists, 1000) for name, lists in large.items()}
    return chosen


def _beside_design(name: str, results: Results) -> list[Row]:
    """OMen against the design made anew after every event."""
    mine, best = results[name, "omen"], results[name, "lowoda-re"]
    where = {"workload": name, "system": "omen", "rounds": mine["rounds"]}
    start, end = mine["looks"][0]["degree_max"], mine["looks"][-1]["degree_max"]
    highest = mine["degree_max_mean"] / best["degree_max_mean"]
    above = mine["degree_mean_mean"] - best["degree_mean_mean"]
    share = mine["degree_mean_mean"] / best["degree_mean_mean"]
    return [
        restored(where, mine),
        Row(where, "degree_max / LowODA-Re's", 1.15, highest),
        Row(where, "degree_mean - LowODA-Re's", 1.12, above),
        Row(where, "degree_mean / LowODA-Re's", None, share),
        Row(where, "degree_max, first and last", "232, 283", f"{start}, {end}"),
        Row(where, "growth of degree_max", 0.22, end / start - 1),
        Row(where, "growth of degree_max per event", None, (end - start) / mine["rounds"]),
    ]


def _beside_others(name: str, results: Results) -> list[Row]:
    """SpiderCast and OMen-G against OMen."""
    rows = []
    mine = results[name, "omen"]
    for system in ("spidercast(3,1)", "spidercast(4,0)"):
        if (name, system) not in results:
            continue
        theirs = results[name, system]
        where = {"workload": name, "system": system}
        ratio = theirs["degree_max_mean"] / mine["degree_max_mean"]
        mean = theirs["degree_mean_mean"] / mine["degree_mean_mean"]
        rows += [
            Row(
                {**where, "rounds": theirs["rounds"]},
                "degree_max / OMen's",
                "a number of times higher",
                ratio,
            ),
            Row(where, "degree_mean / OMen's", None, mean),
            *_growth(where, theirs["looks"]),
            Row(where, "degree_max - OMen's", None, theirs["degree_max_mean"] - mine["degree_max_mean"]),
        ]
    if (name, "omen-g") in results:
        wide = results[name, "omen-g"]
        where = {"workload": name, "system": "omen"}
        ratio = mine["degree_max_mean"] / wide["degree_max_mean"]
        above = mine["degree_mean_mean"] - wide["degree_mean_mean"]
        rows += [
            Row(where, "degree_max / OMen-G's", 1.04, ratio),
            Row(where, "degree_mean - OMen-G's", 0.76, above),
        ]
    return rows


def _of_inc(name: str, results: Results) -> list[Row]:
    """LowODA-Inc against LowODA-Re."""
    theirs, best = results[name, "lowoda-inc"], results[name, "lowoda-re"]
    where = {"workload": name, "system": "lowoda-inc"}
    return [
        Row(where, f"{measure} / LowODA-Re's", None, theirs[f"{measure}_mean"] / best[f"{measure}_mean"])
        for measure in ("degree_max", "degree_mean")
    ]


def _growth(where: dict[str, Any], looks: list[dict[str, Any]]) -> list[Row]:
    """How fast the maximum degree rises at first and later."""
    first, last = looks[0], looks[-1]
    turn = max((look for look in looks if look["round"] <= 200), key=lambda look: int(look["round"]))
    rows = []
    for name, one, other in (("up to 200", first, turn), ("from 200 on", turn, last)):
        if other["round"] > one["round"]:
            rate = (other["degree_max"] - one["degree_max"]) / (other["round"] - one["round"])
            rows.append(Row({**where, "rounds": name}, "growth of degree_max per event", None, rate))
    return rows


def fig9(scale: Scale, seed: int) -> Plan:
    """Degrees under churn, against the centralized design and SpiderCast; and with as many concurrent
    departures as L.
    """
    workloads = _degree_workloads(scale, seed)
    names = ("omen", "omen-g", "lowoda-re", "lowoda-inc", "spidercast(3,1)", "spidercast(4,0)")
    runs: dict[Any, Run] = {}
    for name, (lists, rounds) in workloads.items():
        large = lists.nodes == LARGE
        for system in names:
            if large and system in ("omen-g", "spidercast(4,0)"):
                continue
            plan: dict[str, Any] = {"warm_up": 6} if large and system == "omen" else {}
            looks = 5 if large else 20
            runs[name, system] = mended(*(system, lists, scale, seed, rounds), looks=looks, **plan)
    first, lists = next((name, lists) for name, (lists, _) in workloads.items())
    factors = (1, 2, 3, 5)
    runs |= {
        ("concurrent", factor): mended(
            *("omen", lists, scale, seed, 500), concurrent=factor, resilience=factor
        )
        for factor in factors
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for name in workloads:
            rows += [
                *_beside_design(name, results),
                *_beside_others(name, results),
                *_of_inc(name, results),
            ]
        rows += [
            restored(
                {"workload": first, "system": "omen", "resilience": factor, "concurrent departures": factor},
                results["concurrent", factor],
            )
            for factor in factors
        ]
        return rows

    return Plan(runs, rows_of)
