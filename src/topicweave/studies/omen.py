"""OMen (DEBS 2016), §6: figures 3 to 6 and 8 to 12, and what Table 1 promises.

Rounds of churn on whole overlays (`topicweave.experiments.mending`): each event is handled before the next, as in the paper, whose events are minutes apart.
At paper scale the subscriptions are breadth-first samples of real social graphs and the churn is the Google cluster's, all read from TOPICWEAVE_DATA;
Facebook's 10K become LiveJournal's (the Facebook file holds 4,039 users), Twitter's are ego-Twitter's with the direction lost. Hubs differ a
lot from sample to sample, so there are several. At smoke scale everything is synthetic.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from topicweave.experiments import Experiment
from topicweave.experiments.experiment import Result
from topicweave.experiments.mending_plan import Mending
from topicweave.experiments.mending_workloads import SocialSample, SyntheticLists
from topicweave.studies.study import Plan, Row, Scale, Study, at_most, claim, reported

Results = Mapping[Any, Result]
Lists = SyntheticLists | SocialSample

FACTORS = tuple(range(10))
RIVALS: dict[str, tuple[str, dict[str, Any]]] = {
    "omen": ("omen", {}),
    "omen-g": ("omen", {"global_view": True}),
    "lowoda-inc": ("lowoda-inc", {}),
    "lowoda-re": ("lowoda-re", {}),
    "spidercast(3,1)": ("spidercast", {"k_greedy": 3, "k_random": 1}),
    "spidercast(4,0)": ("spidercast", {"k_greedy": 4, "k_random": 0}),
}


def unif(scale: Scale, seed: int) -> SyntheticLists:
    """The base instance of §6.1: 2,000 nodes, 200 topics."""
    if scale == "paper":
        return SyntheticLists(2000, 200, "uniform", seed=seed)
    return SyntheticLists(150, 40, "uniform", 5, 20, seed=seed)


def samples(scale: Scale, seed: int, graph: str, nodes: int = 1000, how_many: int = 3) -> dict[str, Lists]:
    """Workloads by name; at smoke scale one synthetic stand-in with skewed popularity."""
    if scale == "smoke":
        return {"zipf": SyntheticLists(150, 40, "zipf", 5, 20, seed=seed)}
    return {
        f"{graph} {nodes // 1000}K, sample {number}": SocialSample(graph, nodes, seed + number)
        for number in range(how_many)
    }


def mended(name: str, workload: Lists, scale: Scale, seed: int, rounds: int, **plan: Any) -> Experiment:
    """A run of one of the rivals; the paper's trace at paper scale."""
    system, settings = RIVALS[name]
    churn: Any = "google" if scale == "paper" else "random"
    rounds = rounds if scale == "paper" else min(rounds, 60)
    return Experiment(
        system=system,
        workload=workload,
        seed=seed,
        mending=Mending(rounds=rounds, **{"churn": churn, **settings, **plan}),
    )


def restored(where: Mapping[str, Any], result: Result) -> Row:
    """What must hold in every run: no round ends with a topic in parts."""
    broken = result["unrestored_rounds"] + result["partitioned_topics"]
    return at_most(where, "rounds that end with a partitioned topic", 0, broken)


def _backup_degrees(scale: Scale, seed: int, builder: str) -> Plan:
    """The candidates decide: all nodes (OMen-G, as the paper says it measured), what gossip keeps bringing together, or a few random ones, as the
    first exchange of a node brings."""
    workload = unif(scale, seed)
    few = 60 if scale == "paper" else 30
    pools: dict[str, dict[str, Any]] = {
        "all nodes": {"global_view": True},
        "gossip": {},
        "random": {"candidates": few, "warm_up": 0},
    }
    experiments = {
        pool: mended(
            *("omen", workload, scale, seed, 0),
            coverage=3,
            builder=builder,
            global_view=everybody,
            backups=True,
        )
        for pool, everybody in pools.items()
    }
    in_paper = {
        "primal-dual": {"share": 0.028, "least": 21, "most": 59, "below 5": None},
        "greedy": {"share": 0.011, "least": None, "most": 581, "below 5": 0.429},
    }[builder]

    def judge(results: Results) -> list[Row]:
        rows: list[Row] = []
        spreads = {}
        for pool in pools:
            result = results[pool]
            sizes, incoming = result["backup_sizes"], result["backup_in_degrees"]
            mean = fmean(incoming)
            where = {"nodes": result["nodes"], "workload": "uniform", "builder": builder, "candidates": pool}
            spreads[pool] = max(incoming) / mean
            rows += [
                reported(where, "backup_size / nodes", in_paper["share"], fmean(sizes) / len(sizes)),
                reported(where, "backup_in_degree lowest", in_paper["least"], min(incoming)),
                reported(where, "backup_in_degree highest", in_paper["most"], max(incoming)),
                reported(
                    where,
                    "share of nodes with backup_in_degree below 5",
                    in_paper["below 5"],
                    sum(degree < 5 for degree in incoming) / len(incoming),
                ),
                claim(
                    where,
                    "backup_size / nodes",
                    "small compared to the node set",
                    fmean(sizes) / len(sizes),
                    fmean(sizes) / len(sizes) <= (0.1 if scale == "paper" else 0.5),
                ),
            ]
        where = {"builder": builder, "candidates": f"{few} random nodes"}
        even = spreads["random"]
        if builder == "primal-dual":
            rows.append(
                claim(where, "backup_in_degree highest / mean", "balanced (59 / 56)", even, even <= 3)
            )
        else:
            skew = spreads["all nodes"]
            where = {"builder": builder, "candidates": "all nodes"}
            rows.append(claim(where, "backup_in_degree highest / mean", "skewed (581 / 22)", skew, skew > 3))
        return rows

    return Plan(experiments, judge)


def fig3(scale: Scale, seed: int) -> Plan:
    """Backup degrees with the primal-dual builder."""
    return _backup_degrees(scale, seed, "primal-dual")


def fig4(scale: Scale, seed: int) -> Plan:
    """Backup degrees with the greedy builder."""
    return _backup_degrees(scale, seed, "greedy")


def fig5(scale: Scale, seed: int) -> Plan:
    """Degrees over 1,000 churn rounds, with either builder (OMen-G)."""
    workload = unif(scale, seed)
    experiments = {
        builder: mended(*("omen-g", workload, scale, seed, 1000), churn="random", coverage=3, builder=builder)
        for builder in ("primal-dual", "greedy")
    }

    def judge(results: Results) -> list[Row]:
        rows = []
        last = {builder: results[builder]["looks"][-1] for builder in experiments}
        first = results["greedy"]["looks"][0]
        for builder, look in last.items():
            where = {
                "nodes": look["nodes"],
                "workload": "uniform",
                "builder": builder,
                "round": look["round"],
            }
            paper = 84 if builder == "greedy" else None
            rows += [
                reported(where, "degree_max", paper, look["degree_max"]),
                reported(where, "degree_mean", None, look["degree_mean"]),
                restored(where, results[builder]),
            ]
        rows.append(reported({"workload": "uniform", "round": 0}, "degree_max", None, first["degree_max"]))
        highest = {builder: look["degree_max"] for builder, look in last.items()}
        rows.append(
            claim(
                {"workload": "uniform", "builder": "greedy against primal-dual"},
                "degree_max",
                "greedy degrades noticeably, primal-dual slowly",
                f"{highest['greedy']} against {highest['primal-dual']}",
                highest["greedy"] > highest["primal-dual"],
            )
        )
        return rows

    return Plan(experiments, judge)


def fig6(scale: Scale, seed: int) -> Plan:
    """How local view sizes are spread over the nodes, λ = 5."""
    workloads = samples(scale, seed, "facebook")
    experiments = {
        name: mended("omen", workload, scale, seed, 300, histogram=True)
        for name, workload in workloads.items()
    }

    def judge(results: Results) -> list[Row]:
        rows = []
        for name in workloads:
            sizes = results[name]["view_sizes"]
            where = {"workload": name, "nodes": len(sizes)}
            small = sum(size <= 80 for size in sizes) / len(sizes)
            rows += [
                Row(where, "share of local views of at most 80", 0.974, small, small >= 0.95, "at least 95%"),
                reported(where, "local_view mean", 48.4, fmean(sizes)),
                reported(where, "local_view highest", None, max(sizes)),
            ]
        return rows

    return Plan(experiments, judge)


def fig8(scale: Scale, seed: int) -> Plan:
    """The coverage factor: local views grow with it, degrees fall, little beyond 5."""
    workloads = samples(scale, seed, "facebook", how_many=2)
    factors = FACTORS if scale == "paper" else (0, 1, 5, 9)
    experiments = {
        (name, factor): mended("omen", workload, scale, seed, 1000, coverage=factor)
        for name, workload in workloads.items()
        for factor in factors
    }
    views_in_paper = {1: 21.02, 3: 40.49, 5: 48.40, 9: 57.59}
    degrees_in_paper = {0: 333, 1: 313, 3: 302, 5: 283, 7: 277, 9: 274}

    def judge(results: Results) -> list[Row]:
        rows = []
        for name in workloads:
            last = {factor: results[name, factor]["looks"][-1] for factor in factors}
            for factor, look in last.items():
                where = {"workload": name, "coverage": factor}
                rows += [
                    reported(where, "local_view mean", views_in_paper.get(factor), look["local_view_mean"]),
                    reported(
                        where, "degree_max at the end", degrees_in_paper.get(factor), look["degree_max"]
                    ),
                    reported(where, "degree_mean at the end", None, look["degree_mean"]),
                    restored(where, results[name, factor]),
                ]
            five, nine = last[5]["degree_max"], last[9]["degree_max"]
            zero = last[0]["degree_max"]
            where = {"workload": name, "coverage": "0, 5, 9"}
            rows += [
                claim(
                    where,
                    "degree_max at the end",
                    "falls with the factor",
                    f"{zero}, {five}, {nine}",
                    nine <= five <= zero,
                ),
                Row(
                    {"workload": name, "coverage": "9 against 5"},
                    "degree_max at the end",
                    "insignificant (274 / 283)",
                    nine / five,
                    abs(nine / five - 1) <= 0.1,
                    "within 10%",
                ),
                claim(
                    {"workload": name, "coverage": "rising"},
                    "local_view mean",
                    "rises, and stays small",
                    ", ".join(f"{last[factor]['local_view_mean']:.1f}" for factor in factors),
                    last[0]["local_view_mean"] <= last[5]["local_view_mean"] <= last[9]["local_view_mean"],
                ),
            ]
        return rows

    return Plan(experiments, judge)


def _degree_workloads(scale: Scale, seed: int) -> dict[str, tuple[Lists, int]]:
    """By name: workload and rounds."""
    chosen: dict[str, tuple[Lists, int]] = {
        name: (lists, 2000) for name, lists in samples(scale, seed, "facebook").items()
    }
    if scale == "paper":
        chosen |= {name: (lists, 2000) for name, lists in samples(scale, seed, "twitter", how_many=2).items()}
        large = samples(scale, seed, "livejournal", 10_000, 1)
        chosen |= {name: (lists, 200) for name, lists in large.items()}
    return chosen


def fig9(scale: Scale, seed: int) -> Plan:
    """Degrees under churn, against the centralized design and SpiderCast; and with as many concurrent departures as L."""
    workloads = _degree_workloads(scale, seed)
    names = ("omen", "omen-g", "lowoda-re", "spidercast(3,1)", "spidercast(4,0)")
    experiments: dict[Any, Experiment] = {
        (name, system): mended(
            *(system, lists, scale, seed, rounds),
            looks=20,
            warm_up=15 if rounds > 1000 or scale == "smoke" else 6,
        )
        for name, (lists, rounds) in workloads.items()
        for system in names
        if rounds > 1000 or not system.startswith("omen-g")
    }
    first, lists = next((name, lists) for name, (lists, _) in workloads.items())
    factors = (1, 2, 3, 5)
    experiments |= {
        ("concurrent", factor): mended(
            *("omen", lists, scale, seed, 500), concurrent=factor, resilience=factor
        )
        for factor in factors
    }

    def judge(results: Results) -> list[Row]:
        rows = []
        for name in workloads:
            mine, best = results[name, "omen"], results[name, "lowoda-re"]
            where = {"workload": name, "system": "omen", "rounds": mine["rounds"]}
            start, end = mine["looks"][0]["degree_max"], mine["looks"][-1]["degree_max"]
            highest = mine["degree_max_mean"] / best["degree_max_mean"]
            above = mine["degree_mean_mean"] - best["degree_mean_mean"]
            rows += [
                restored(where, mine),
                at_most(where, "degree_max / LowODA-Re's", 1.15, highest, "on average over the sequence"),
                at_most(where, "degree_mean - LowODA-Re's", 1.12, above, "on average over the sequence"),
                reported(
                    where,
                    "degree_mean / LowODA-Re's",
                    None,
                    mine["degree_mean_mean"] / best["degree_mean_mean"],
                ),
                reported(where, "degree_max, first and last", "232, 283", f"{start}, {end}"),
                reported(where, "growth of degree_max", 0.22, end / start - 1),
            ]
            for system in ("spidercast(3,1)", "spidercast(4,0)"):
                theirs = results[name, system]
                ratio = theirs["degree_max_mean"] / mine["degree_max_mean"]
                rows += [
                    claim(
                        {"workload": name, "system": system},
                        "degree_max / OMen's",
                        "a number of times higher",
                        ratio,
                        ratio >= 2,
                    ),
                    reported(
                        {"workload": name, "system": system},
                        "degree_mean / OMen's",
                        None,
                        theirs["degree_mean_mean"] / mine["degree_mean_mean"],
                    ),
                ]
            if (name, "omen-g") in results:
                wide = results[name, "omen-g"]
                rows.append(
                    reported(
                        {"workload": name, "system": "omen"},
                        "degree_max / OMen-G's",
                        1.04,
                        mine["degree_max_mean"] / wide["degree_max_mean"],
                    )
                )
        rows += [
            restored(
                {"workload": first, "system": "omen", "resilience": factor, "concurrent departures": factor},
                results["concurrent", factor],
            )
            for factor in factors
        ]
        return rows

    return Plan(experiments, judge)


def fig10(scale: Scale, seed: int) -> Plan:
    """Repair time: OMen's as a share of the designs', all by our own code in the same run."""
    workloads: dict[str, tuple[Lists, int]] = {
        name: (lists, 300) for name, lists in samples(scale, seed, "facebook", how_many=1).items()
    }
    if scale == "paper":
        large = samples(scale, seed, "livejournal", 10_000, 1)
        workloads |= {name: (lists, 100) for name, lists in large.items()}
    names = ("omen", "omen-g", "lowoda-inc", "lowoda-re", "spidercast(3,1)")
    experiments = {
        (name, system): mended(*(system, lists, scale, seed, rounds), warm_up=6)
        for name, (lists, rounds) in workloads.items()
        for system in names
    }

    def judge(results: Results) -> list[Row]:
        rows = []
        for name in workloads:
            mine = results[name, "omen"]
            again = results[name, "lowoda-re"]["rebuild_seconds"]
            further = results[name, "lowoda-inc"]["repair_seconds_per_event"]
            where = {"workload": name, "system": "omen"}
            paper = 0.0001 if "10K" in name else 0.002
            whole, choice = mine["repair_seconds_per_event"], mine["choice_seconds_per_event"]
            rows += [
                reported({**where, "system": "lowoda-re"}, "repair_time", None, again),
                reported({**where, "system": "lowoda-inc"}, "repair_time", None, further),
                reported(where, "repair_time", None, whole),
                reported(where, "repair_time / LowODA-Re's", paper, whole / again),
                reported(where, "repair_time / LowODA-Inc's", None, whole / further),
                reported(where, "edge choice alone / LowODA-Re's", paper, choice / again),
                reported(
                    where,
                    "repair_time / OMen-G's",
                    0.0467,
                    whole / results[name, "omen-g"]["repair_seconds_per_event"],
                ),
                reported(
                    {**where, "system": "spidercast(3,1)"},
                    "repair_time",
                    None,
                    results[name, "spidercast(3,1)"]["repair_seconds_per_event"],
                ),
                claim(where, "repair_time / LowODA-Inc's", "shorter", whole / further, whole < further),
            ]
        return rows

    return Plan(experiments, judge)


def fig11(scale: Scale, seed: int) -> Plan:
    """Topic diameters: between LowODA-Re's and SpiderCast's."""
    workloads = samples(scale, seed, "twitter", how_many=2)
    names = ("omen", "lowoda-re", "spidercast(3,1)", "spidercast(4,0)")
    experiments = {
        (name, system): mended(*(system, lists, scale, seed, 1000), diameters=True)
        for name, lists in workloads.items()
        for system in names
    }

    def judge(results: Results) -> list[Row]:
        rows = []
        for name in workloads:
            mean = {
                system: fmean(look["topic_diameter_mean"] for look in results[name, system]["looks"])
                for system in names
            }
            most = {
                system: fmean(look["topic_diameter_max"] for look in results[name, system]["looks"])
                for system in names
            }
            where = {"workload": name}
            rows += [
                reported({**where, "system": system}, "topic_diameter_mean", None, mean[system])
                for system in names
            ]
            rows += [
                reported(
                    {**where, "system": "omen"},
                    "topic_diameter_mean - SpiderCast(3,1)'s",
                    1.45,
                    mean["omen"] - mean["spidercast(3,1)"],
                ),
                reported(
                    {**where, "system": "omen"},
                    "topic_diameter_max - SpiderCast(3,1)'s",
                    3.67,
                    most["omen"] - most["spidercast(3,1)"],
                ),
                claim(
                    {**where, "system": "omen"},
                    "topic_diameter_mean",
                    "between SpiderCast(3,1)'s and LowODA-Re's",
                    f"{mean['spidercast(3,1)']:.2f}, {mean['omen']:.2f}, {mean['lowoda-re']:.2f}",
                    mean["spidercast(3,1)"] <= mean["omen"] <= mean["lowoda-re"],
                ),
            ]
        return rows

    return Plan(experiments, judge)


def fig12(scale: Scale, seed: int) -> Plan:
    """Messages per churn event, gossip and failure detection apart."""
    workloads = samples(scale, seed, "twitter", how_many=2)
    kinds: dict[str, tuple[str, dict[str, Any]]] = {
        "omen": ("omen", {"labels": True}),
        "omen, labels spread": ("omen", {"labels": True, "components": "spread"}),
        "omen, components of the shadow set": ("omen", {"components": "shadow"}),
        "spidercast(3,1)": ("spidercast(3,1)", {}),
        "spidercast(4,0)": ("spidercast(4,0)", {}),
    }
    experiments = {
        (name, kind): mended(*(system, lists, scale, seed, 500), **plan)
        for name, lists in workloads.items()
        for kind, (system, plan) in kinds.items()
    }

    def judge(results: Results) -> list[Row]:
        rows = []
        for name in workloads:
            for kind in kinds:
                result = results[name, kind]
                where = {"workload": name, "system": kind}
                rows += [
                    reported(where, f"messages per {what}", None, result[f"messages_per_{what}"])
                    for what in ("join", "leave")
                ]
                if result["label_messages_per_leave"]:
                    labels = result["label_messages_per_leave"]
                    rows.append(reported(where, "messages that spread labels, per leave", None, labels))
            theirs = results[name, "spidercast(3,1)"]["messages_per_event"]
            for kind in ("omen", "omen, components of the shadow set"):
                mine = results[name, kind]["messages_per_event"]
                where = {"workload": name, "system": kind}
                rows.append(
                    claim(
                        where, "messages per event / SpiderCast(3,1)'s", "fewer", mine / theirs, mine < theirs
                    )
                )
        return rows

    return Plan(experiments, judge)


def table1(scale: Scale, seed: int) -> Plan:
    """Which degree each approach keeps low: GM the mean, MinMaxODA the maximum, LowODA and OMen both."""
    workloads = samples(scale, seed, "facebook")
    designs = {"GM": 0.0, "MinMaxODA": 1e9, "LowODA": 2.0}
    experiments = {
        (name, design): mended(*("lowoda-re", lists, scale, seed, 0), rho=rho)
        for name, lists in workloads.items()
        for design, rho in designs.items()
    }
    experiments |= {
        (name, "OMen"): mended("omen", lists, scale, seed, 300) for name, lists in workloads.items()
    }

    def judge(results: Results) -> list[Row]:
        rows = []
        for name in workloads:
            look = {system: results[name, system]["looks"][-1] for system in (*designs, "OMen")}
            for system, last in look.items():
                where = {"workload": name, "system": system, "round": last["round"]}
                rows += [
                    reported(where, "degree_mean", None, last["degree_mean"]),
                    reported(where, "degree_max", None, last["degree_max"]),
                    at_most(where, "partitioned_topics", 0, last["partitioned_topics"]),
                ]
            mean = {system: last["degree_mean"] for system, last in look.items()}
            most = {system: last["degree_max"] for system, last in look.items()}
            rows += [
                claim(
                    {"workload": name, "system": "GM"},
                    "degree_mean",
                    "the lowest of the designs",
                    mean["GM"],
                    mean["GM"] <= min(mean["LowODA"], mean["MinMaxODA"]),
                ),
                claim(
                    {"workload": name, "system": "MinMaxODA"},
                    "degree_max",
                    "the lowest of the designs",
                    most["MinMaxODA"],
                    most["MinMaxODA"] <= min(most["LowODA"], most["GM"]),
                ),
                claim(
                    {"workload": name, "system": "LowODA"},
                    "degree_max",
                    "below GM's, with a mean below MinMaxODA's",
                    f"{most['LowODA']} and {mean['LowODA']:.2f}",
                    most["LowODA"] <= most["GM"] and mean["LowODA"] <= mean["MinMaxODA"],
                ),
            ]
        return rows

    return Plan(experiments, judge)


_TITLES = {
    fig3: ("backup degrees, primal-dual builder", "§6.3, Figure 3"),
    fig4: ("backup degrees, greedy builder", "§6.3, Figure 4"),
    fig5: ("degrees under churn with either builder", "§6.3, Figure 5"),
    fig6: ("local view sizes", "§6.4, Figure 6"),
    fig8: ("coverage factor: local views and degrees", "§6.4, Figure 8"),
    fig9: ("degrees under churn against LowODA and SpiderCast; concurrent churn", "§6.5, Figure 9"),
    fig10: ("repair time against LowODA", "§6.6, Figure 10"),
    fig11: ("topic diameters under churn", "§6.7, Figure 11"),
    fig12: ("messages per churn event", "§6.8, Figure 12"),
    table1: ("which degrees each approach keeps low", "§1, Table 1"),
}

STUDIES = [
    Study(f"omen/{plan.__name__}", title, f"OMen (DEBS 2016) {section}", plan)
    for plan, (title, section) in _TITLES.items()
]
