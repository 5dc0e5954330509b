"""SpiderCast (DEBS 2007), §3: figures 6 to 14.

All runs go through the message-level simulator, every node created at once, as §3 says. The paper gives no times for its
protocol; ours are those of `SpiderCastParameters`, with mending of parted topics off (it is ours, not the paper's).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from topicweave.experiments import ChurnModel, Experiment, GeneratedWorkload
from topicweave.experiments.experiment import Result
from topicweave.studies.study import Plan, Row, Scale, Study, at_most, claim, close_to, reported

Results = Mapping[Any, Result]

PAPER_SIZES = (1000, 2000, 4000, 6000, 8000, 10_000)
SMOKE_SIZES = (200, 400)
DISTRIBUTIONS = ("uniform", "rss", "zipf1", "nyse")

SETTLED = 10.0
"""Virtual seconds after which the overlay no longer changes: all coverage is reached within 4, trimming within 8."""


def sizes_of(scale: Scale) -> tuple[int, ...]:
    return PAPER_SIZES if scale == "paper" else SMOKE_SIZES


def experiment(
    nodes: int,
    seed: int,
    system: str = "spidercast",
    parameters: dict[str, Any] | None = None,
    *,
    topics: int = 100,
    popularity: str = "rss",
    lists: tuple[int, int] = (10, 10),
    **more: Any,
) -> Experiment:
    """An experiment in the paper's setting: 100 topics, RSS popularity, 10 topics per node, unless said otherwise."""
    workload = GeneratedWorkload(nodes, topics, popularity, *lists, seed=seed)
    return Experiment(
        system=system,
        parameters={"bridges": 0, **(parameters or {})},
        workload=workload,
        seed=seed,
        settle=more.pop("settle", SETTLED),
        **more,
    )


def falls(values: Sequence[float]) -> bool:
    return all(later < earlier for earlier, later in pairwise(values))


def rises(values: Sequence[float]) -> bool:
    return all(later > earlier for earlier, later in pairwise(values))


def listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


def fig6(scale: Scale, seed: int) -> Plan:
    """Heavily skewed popularity: which coverage connects all topics, and what it costs."""
    sizes = sizes_of(scale)
    settings: dict[str, dict[str, Any]] = {
        "(3,0)": {},
        "(3,1)": {"k_random": 1},
        "(4,0)": {"k_greedy": 4},
        "adaptive": {"adaptive": True},
    }
    experiments = {
        (name, nodes): experiment(nodes, seed, parameters=parameters, popularity="zipf2")
        for name, parameters in settings.items()
        for nodes in sizes
    }
    others = {
        ("adaptive", popularity): experiment(
            sizes[-1], seed, parameters={"adaptive": True}, popularity=popularity
        )
        for popularity in ("rss", "nyse", "uniform")
    }
    partitioned_in_paper = dict(zip(PAPER_SIZES, (0, 0, 0, 15, 14, 14), strict=True))

    def judge(results: Results) -> list[Row]:
        rows = []
        for nodes in sizes:
            where = {"nodes": nodes, "workload": "zipf2"}
            parted = {name: results[name, nodes]["partitioned_topics"] for name in settings}
            rows += [
                reported(
                    {**where, "coverage": "(3,0)"},
                    "partitioned_topics",
                    partitioned_in_paper.get(nodes),
                    parted["(3,0)"],
                ),
                at_most({**where, "coverage": "(3,1)"}, "partitioned_topics", 0, parted["(3,1)"]),
                reported({**where, "coverage": "(4,0)"}, "partitioned_topics", "above 0", parted["(4,0)"]),
                at_most({**where, "coverage": "adaptive"}, "partitioned_topics", 0, parted["adaptive"]),
            ]
        for nodes in sizes:
            for name, paper in (("(3,0)", 7), ("(3,1)", 13), ("(4,0)", None), ("adaptive", None)):
                where = {"nodes": nodes, "workload": "zipf2", "coverage": name}
                degree = results[name, nodes]["degree_mean"]
                if paper is None or nodes not in PAPER_SIZES:
                    rows.append(reported(where, "degree_mean", paper, degree))
                else:
                    rows.append(close_to(where, "degree_mean", paper, degree, 0.15))
        where = {"nodes": sizes[-1], "coverage": "adaptive"}
        share = results["adaptive", sizes[-1]]["random_coverage_share"]
        rows.append(reported({**where, "workload": "zipf2"}, "random_coverage_share", None, share))
        for popularity in ("rss", "nyse", "uniform"):
            share = results["adaptive", popularity]["random_coverage_share"]
            rows.append(
                claim(
                    {**where, "workload": popularity},
                    "random_coverage_share",
                    "0: stays at (3,0)",
                    share,
                    share == 0,
                )
            )
        return rows

    return Plan({**experiments, **others}, judge)


def fig7(scale: Scale, seed: int) -> Plan:
    """Four distributions of popularity: degree, tdi(20), diameter."""
    sizes = sizes_of(scale)
    experiments = {
        (popularity, nodes): experiment(nodes, seed, popularity=popularity, diameters=True, tdi=20)
        for popularity in DISTRIBUTIONS
        for nodes in sizes
    }
    diameter_in_paper = dict(zip(DISTRIBUTIONS, (6, 6, 7, 8), strict=True))

    def judge(results: Results) -> list[Row]:
        rows = []
        for popularity in DISTRIBUTIONS:
            mine = [results[popularity, nodes] for nodes in sizes]
            where = {"workload": popularity}
            for nodes, result in zip(sizes, mine, strict=True):
                point = {**where, "nodes": nodes}
                rows += [
                    at_most(point, "degree_mean", 12, result["degree_mean"], "below 12"),
                    at_most(point, "partitioned_topics", 0, result["partitioned_topics"]),
                    reported(point, "tdi_20", None, result["tdi_20"]),
                    reported(point, "topic_diameter_max", None, result["topic_diameter_max"]),
                ]
            degrees = [result["degree_mean"] for result in mine]
            rows.append(
                claim({**where, "nodes": "rising"}, "degree_mean", "falls", listed(degrees), falls(degrees))
            )
            largest, paper = (
                max(result["topic_diameter_max"] for result in mine),
                diameter_in_paper[popularity],
            )
            rows.append(
                Row(where, "topic_diameter_max", paper, largest, largest <= paper + 1, "at most one above")
            )
        for nodes in sizes:
            by_similarity = sorted(DISTRIBUTIONS, key=lambda name: results[name, nodes]["tdi_20"])
            degrees = [results[name, nodes]["degree_mean"] for name in by_similarity]
            rows.append(
                claim(
                    {"nodes": nodes, "workload": " < ".join(by_similarity)},
                    "degree_mean",
                    "the higher tdi(20), the lower",
                    listed(degrees),
                    falls(degrees),
                )
            )
        return rows

    return Plan(experiments, judge)


def fig8(scale: Scale, seed: int) -> Plan:
    """Scalability with nodes (a, d), topics (b, e) and subscriptions (c, f)."""
    sizes = sizes_of(scale)
    largest = sizes[-1]
    topic_counts = (100, 200, 400, 600, 800, 1000) if scale == "paper" else (100, 200)
    list_sizes = (10, 15, 20, 30, 40)
    by_nodes = {
        ("a", topics, nodes): experiment(nodes, seed, topics=topics, diameters=True, tdi=20)
        for topics in (100, 200)
        for nodes in sizes
    }
    by_topics = {
        ("b", topics): experiment(largest, seed, topics=topics, lists=(20, 20), diameters=True, tdi=40)
        for topics in topic_counts
    }
    by_subscriptions = {
        ("c", length, nodes): experiment(nodes, seed, lists=(length, length), tdi=2 * length)
        for length in list_sizes
        for nodes in sizes
    }

    def judge(results: Results) -> list[Row]:
        rows = []
        for topics, largest_degree in ((100, 32), (200, 31)):
            mine = [results["a", topics, nodes] for nodes in sizes]
            degrees = [result["degree_mean"] for result in mine]
            where = {"figure": "8a", "topics": topics}
            similarity = [result["tdi_20"] for result in mine]
            diameter = max(result["topic_diameter_max"] for result in mine)
            rows += [
                claim({**where, "nodes": "rising"}, "degree_mean", "falls", listed(degrees), falls(degrees)),
                claim({**where, "nodes": "rising"}, "tdi_20", "rises", listed(similarity), rises(similarity)),
                at_most(where, "degree_max", largest_degree, max(result["degree_max"] for result in mine)),
                Row(where, "topic_diameter_max", 6, diameter, diameter <= 7, "at most one above"),
                at_most(where, "partitioned_topics", 0, max(result["partitioned_topics"] for result in mine)),
            ]
        for nodes in sizes:
            few, many = (results["a", topics, nodes]["degree_mean"] for topics in (100, 200))
            rows.append(
                claim(
                    {"figure": "8a", "nodes": nodes, "topics": "100, 200"},
                    "degree_mean",
                    "more topics, higher",
                    listed([few, many]),
                    many > few,
                )
            )
        mine = [results["b", topics] for topics in topic_counts]
        where = {"figure": "8b", "nodes": largest, "topics_per_node": 20, "topics": "rising"}
        degrees, similarity = [r["degree_mean"] for r in mine], [r["tdi_40"] for r in mine]
        first, last = mine[0]["topic_diameter_max"], mine[-1]["topic_diameter_max"]
        rows += [
            claim(where, "degree_mean", "rises", listed(degrees), rises(degrees)),
            claim(where, "tdi_40", "falls", listed(similarity), falls(similarity)),
            Row(
                {**where, "topics": topic_counts[0]},
                "topic_diameter_max",
                5,
                first,
                first <= 6,
                "at most one above",
            ),
            Row(
                {**where, "topics": topic_counts[-1]},
                "topic_diameter_max",
                4,
                last,
                last <= 5,
                "at most one above",
            ),
            at_most(where, "partitioned_topics", 0, max(r["partitioned_topics"] for r in mine)),
        ]
        for nodes in sizes:
            degrees = [results["c", length, nodes]["degree_mean"] for length in list_sizes]
            top = degrees.index(max(degrees))
            where = {"figure": "8c", "nodes": nodes, "topics_per_node": "10, 15, 20, 30, 40"}
            rows += [
                claim(
                    where,
                    "degree_mean",
                    "rises to 20, then falls",
                    listed(degrees),
                    list_sizes[top] == 20 and rises(degrees[: top + 1]) and falls(degrees[top:]),
                ),
                reported(
                    where,
                    "tdi(2d)",
                    "falls to 20, then rises",
                    listed([results["c", length, nodes][f"tdi_{2 * length}"] for length in list_sizes]),
                ),
                at_most(
                    where,
                    "partitioned_topics",
                    0,
                    max(results["c", length, nodes]["partitioned_topics"] for length in list_sizes),
                ),
            ]
        return rows

    return Plan({**by_nodes, **by_topics, **by_subscriptions}, judge)


def fig9(scale: Scale, seed: int) -> Plan:
    """Lists of unequal size: the mean degree depends on their mean size only.

    The paper does not say how many nodes and topics; ours are its largest network and 100 topics.
    """
    nodes = sizes_of(scale)[-1]
    lists = {20: (10, 30), 40: (10, 70)}
    experiments = {
        (mean, kind): experiment(
            nodes, seed, lists=(mean, mean) if kind == "equal" else spread, histogram=True
        )
        for mean, spread in lists.items()
        for kind in ("equal", "unequal")
    }

    def judge(results: Results) -> list[Row]:
        rows = []
        for mean, spread in lists.items():
            equal, unequal = results[mean, "equal"], results[mean, "unequal"]
            where = {"nodes": nodes, "topics_per_node": f"{spread[0]} to {spread[1]}"}
            rows.append(
                Row(
                    where,
                    "degree_mean",
                    f"as with {mean} each",
                    f"{unequal['degree_mean']:.2f} against {equal['degree_mean']:.2f}",
                    abs(unequal["degree_mean"] / equal["degree_mean"] - 1) <= 0.1,
                    "within 10%",
                )
            )
            for kind, result in (("equal", equal), ("unequal", unequal)):
                degrees = result["degrees"]
                average = sum(degrees) / len(degrees)
                near = sum(1 for degree in degrees if abs(degree - average) <= 0.5 * average) / len(degrees)
                rows.append(
                    claim(
                        {"nodes": nodes, "topics_per_node": f"{kind}, mean {mean}"},
                        "share of nodes within half the mean degree",
                        "concentrated around the mean",
                        near,
                        near >= 0.9,
                    )
                )
        return rows

    return Plan(experiments, judge)


def fig10(scale: Scale, seed: int) -> Plan:
    """Partial views: how little a node may know; by decree as in the paper, and by real gossip."""
    sizes = (4000, 8000) if scale == "paper" else (400,)
    shares = ["5%", "10%", "25%", "50%", "75%", "100%"] if scale == "paper" else ["25%", "50%", "100%"]
    experiments = {
        (nodes, share): experiment(nodes, seed, membership=share) for nodes in sizes for share in shares
    }
    # Views of 5% by gossip must first be gathered, a few dozen descriptors a second.
    experiments |= {
        (nodes, "gossip"): experiment(nodes, seed, membership=f"gossip:{nodes // 20}", settle=40.0)
        for nodes in sizes
    }

    def judge(results: Results) -> list[Row]:
        rows = []
        for nodes in sizes:
            full = results[nodes, "100%"]["degree_mean"]
            for share in (*shares, "gossip"):
                result = results[nodes, share]
                where = {"nodes": nodes, "membership": share}
                rows += [
                    at_most(where, "partitioned_topics", 0, result["partitioned_topics"]),
                    Row(
                        where,
                        "degree_mean",
                        "little affected",
                        result["degree_mean"],
                        abs(result["degree_mean"] / full - 1) <= 0.25,
                        "within 25% of the full view's",
                    ),
                ]
        return rows

    return Plan(experiments, judge)


def fig11(scale: Scale, seed: int) -> Plan:
    """Churn: topics stay connected, degree stays flat, and what a join or leave costs."""
    sizes = (1250, 2500) if scale == "paper" else (250,)
    lives = (100.0, 200.0, 300.0, 400.0, 500.0) if scale == "paper" else (100.0, 500.0)
    duration = 1000.0 if scale == "paper" else 200.0
    messages_in_paper = {1250: 38, 2500: 34}
    experiments = {
        (nodes, life): experiment(nodes, seed, settle=duration, churn=ChurnModel(life, life / 4))
        for nodes in sizes
        for life in lives
    }

    def judge(results: Results) -> list[Row]:
        rows = []
        for nodes in sizes:
            degrees = [results[nodes, life]["degree_mean"] for life in lives]
            for life in lives:
                result = results[nodes, life]
                where = {"nodes": nodes * 4 // 5, "mean_life": life}
                rows += [
                    at_most(
                        where,
                        "partitioned_topics",
                        0,
                        result["partitioned_topics"],
                        "in every snapshot, nodes older than 2 s",
                    ),
                    reported(where, "degree_mean", None, result["degree_mean"]),
                    reported(
                        where,
                        "control messages per join or leave",
                        messages_in_paper.get(nodes),
                        result["messages_per_operation"],
                    ),
                ]
            rows.append(
                Row(
                    {"nodes": nodes * 4 // 5, "mean_life": "100 to 500"},
                    "degree_mean",
                    "not affected by churn",
                    listed(degrees),
                    max(degrees) / min(degrees) <= 1.1,
                    "within 10% of each other",
                )
            )
        return rows

    return Plan(experiments, judge)


RIVALS: dict[str, tuple[str, dict[str, int]]] = {
    "similarity(10,0)": ("similarity", {"similar": 10, "random": 0}),
    "similarity(9,1)": ("similarity", {"similar": 9, "random": 1}),
    "similarity(8,2)": ("similarity", {"similar": 8, "random": 2}),
    "similarity(7,3)": ("similarity", {"similar": 7, "random": 3}),
    "random(10)": ("random", {"random": 10}),
    "similarity(20,0)": ("similarity", {"similar": 20, "random": 0}),
}

TABLE_12: dict[str, tuple[float, ...]] = {
    "spidercast(3,0)": (10.81, 10.11, 9.53, 9.24, 9.08, 8.95),
    "similarity(10,0)": (10.08, 10.07, 10.08, 10.09, 10.08, 10.08),
    "similarity(9,1)": (10.22, 10.22, 10.20, 10.22, 10.21, 10.22),
    "similarity(8,2)": (10.20, 10.19, 10.19, 10.20, 10.20, 10.20),
    "similarity(7,3)": (10.21, 10.21, 10.20, 10.22, 10.21, 10.21),
    "random(10)": (10.82, 10.54, 10.34, 10.12, 10.08, 10.11),
    "similarity(20,0)": (20.04, 20.04, 20.04, 20.04, 20.03, 20.04),
}


def _table_12(sizes: Sequence[int], seed: int) -> dict[tuple[str, int], Experiment]:
    """The runs that figures 12 and 13 share."""
    systems = {"spidercast(3,0)": ("spidercast", {}), **RIVALS}
    return {
        (name, nodes): experiment(nodes, seed, system, dict(parameters))
        for name, (system, parameters) in systems.items()
        for nodes in sizes
    }


def fig12(scale: Scale, seed: int) -> Plan:
    """Mean degree of SpiderCast and its unstructured rivals."""
    sizes = sizes_of(scale)

    def judge(results: Results) -> list[Row]:
        rows = []
        for name, degrees in TABLE_12.items():
            in_paper = dict(zip(PAPER_SIZES, degrees, strict=True))
            for nodes in sizes:
                where = {"system": name, "nodes": nodes}
                result = results[name, nodes]
                if nodes in in_paper:
                    rows.append(close_to(where, "degree_mean", in_paper[nodes], result["degree_mean"], 0.05))
                else:
                    rows.append(reported(where, "degree_mean", None, result["degree_mean"]))
                if name == "spidercast(3,0)":
                    rows.append(at_most(where, "partitioned_topics", 0, result["partitioned_topics"]))
        return rows

    return Plan(_table_12(sizes, seed), judge)


def fig13(scale: Scale, seed: int) -> Plan:
    """How many pieces the topics fall into: 100 would be one for each."""
    sizes = sizes_of(scale)

    def judge(results: Results) -> list[Row]:
        rows = []
        for name in TABLE_12:
            pieces = [results[name, nodes]["components"] for nodes in sizes]
            for nodes, components in zip(sizes, pieces, strict=True):
                where = {"system": name, "nodes": nodes}
                if name == "spidercast(3,0)":
                    rows.append(at_most(where, "components", 100, components))
                else:
                    rows.append(claim(where, "components", "above 100", components, components > 100))
            if name != "spidercast(3,0)":
                grows = rises(pieces)
                rows.append(
                    claim({"system": name, "nodes": "rising"}, "components", "rises", listed(pieces), grows)
                )
        return rows

    return Plan(_table_12(sizes, seed), judge)


def fig14(scale: Scale, seed: int) -> Plan:
    """A ring per topic needs many more links, and no fewer as the network grows."""
    sizes = sizes_of(scale)
    experiments = {
        **{("spidercast", nodes): experiment(nodes, seed) for nodes in sizes},
        **{("ring-per-topic", nodes): experiment(nodes, seed, "ring-per-topic") for nodes in sizes},
    }

    def judge(results: Results) -> list[Row]:
        rows = []
        excesses = []
        for nodes in sizes:
            ring = results["ring-per-topic", nodes]
            excess = ring["degree_mean"] / results["spidercast", nodes]["degree_mean"] - 1
            excesses.append(excess)
            where = {"nodes": nodes, "system": "ring-per-topic"}
            rows += [
                reported(where, "degree_mean", None, ring["degree_mean"]),
                at_most(where, "partitioned_topics", 0, ring["partitioned_topics"]),
                Row(
                    where,
                    "degree above SpiderCast's",
                    "0.51 to 0.82",
                    excess,
                    0.46 <= excess <= 0.87 if nodes in PAPER_SIZES else None,
                    "from 0.51 to 0.82, give or take 0.05",
                ),
            ]
        rows.append(
            claim(
                {"nodes": "rising", "system": "ring-per-topic"},
                "degree above SpiderCast's",
                "rises",
                listed(excesses),
                rises(excesses),
            )
        )
        return rows

    return Plan(experiments, judge)


_TITLES = {
    fig6: ("skewed popularity: partitioned topics and degree by coverage", "§3.3, Figure 6"),
    fig7: ("four popularity distributions: degree, tdi(20), diameter", "§3.4, Figure 7"),
    fig8: ("scaling with nodes, topics and subscriptions", "§3.5, Figure 8"),
    fig9: ("lists of unequal size", "§3.6, Figure 9"),
    fig10: ("partial membership views, by decree and by gossip", "§3.7, Figure 10"),
    fig11: ("churn: connectivity, degree, messages per join or leave", "§3.8, Figure 11"),
    fig12: ("mean degree against similarity and random overlays", "§3.9.1, Table 12"),
    fig13: ("connected components against similarity and random overlays", "§3.9.1, Figure 13"),
    fig14: ("mean degree against a ring per topic", "§3.9.2, Figure 14"),
}

_REMARKS = {
    fig6: "why (3,1)-coverage takes about 10 links here and about 13 in the paper's figure is not known; that (3,0) parts no topic here may "
    "come from ties between equally good candidates being broken at random, for every choice (a guess, not tested).",
    fig7: "the paper's largest diameters can't be exact ones at its sizes: a topic of 1,000 subscribers with about three neighbours each in it "
    "can't have diameter 6 (the Moore bound for degree 3 is 190 nodes within 6 hops). Ours are exact, by search from every node.",
    fig8: "diameters are exact here; see fig7.",
    fig10: "greedy choices from 5 % of the nodes find less overlap, so more links are needed than with full views.",
    fig11: "below a thousand nodes a snapshot can catch a node that joined two seconds ago and has not covered all its topics yet.",
    fig12: "a random overlay's degree depends on how the nodes start, of which the paper says nothing.",
    fig14: "the difference at 1,000 nodes is 47 % here and 51 % in the paper: a ring per topic shares more of its links here. Why is not known.",
}

STUDIES = [
    Study(
        f"spidercast/{plan.__name__}",
        title,
        f"SpiderCast (DEBS 2007) {section}",
        plan,
        _REMARKS.get(plan, ""),
    )
    for plan, (title, section) in _TITLES.items()
]
