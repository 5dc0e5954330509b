"""Why SpiderCast's figures come out as they do: what popularity, ties, views and chance do to them, one by one.

The parts are small networks or none at all; each explains a claim, by its rows.
"""

from __future__ import annotations

from typing import Any

from topicweave.papers.spidercast.regular import LikeItsLargestTopic
from topicweave.papers.spidercast.rivals import RIVALS
from topicweave.papers.spidercast.settings import DISTRIBUTIONS, settled
from topicweave.papers.study import Plan, Results, Row, Scale
from topicweave.runs.run import Run
from topicweave.runs.sources import GeneratedWorkload

VIEWING = 40.0
"""Virtual seconds: as long as figure 10 gives gossip."""
FEW = 200
GATHERED: dict[str, tuple[str, float]] = {
    "full": ("full", VIEWING),
    "gossip, room for all, 40 s": ("gossip:200", VIEWING),
    "gossip, room for all, 120 s": ("gossip:200", 3 * VIEWING),
}
"""So few nodes that a view by gossip soon holds all: what remains is what was chosen before."""
SAMPLES = 3
LENGTHS = (10, 15, 20, 30, 40)
TOPICS_PER_NODE = 20
"""In figure 8(b)."""
EXPONENTS = ("uniform", "zipf:0.3", "zipf:0.8")
"""Popularities beside RSS (Zipf's with 0.5)."""
CHANGES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "DISCONNECT as printed": {"disconnect": "printed"},
    "ties to the first": {"ties": "first"},
}
TWENTY = "similarity(20,0)"


def why(scale: Scale, seed: int) -> Plan:
    """Diameters, views, rings, similarity's chance, long lists, and how alike lists are."""
    parts = (_graphs, _views, _rings, _similar, _long, _alike)
    return Plan.of_parts({part.__name__: part(scale, seed) for part in parts})


def _sizes(scale: Scale) -> tuple[int, int]:
    return (1000, 10_000) if scale == "paper" else (200, 400)


def _samples(scale: Scale, seed: int) -> dict[str, int]:
    """Seeds of several networks, by the name of their workload."""
    return {
        f"rss, sample {number}": 10 * seed + number for number in range(SAMPLES if scale == "paper" else 1)
    }


def _graphs(scale: Scale, seed: int) -> Plan:
    """How long diameters must be: a subscriber's neighbours per topic, and random graphs with as many."""
    small, large = _sizes(scale)
    runs: dict[Any, Run] = {
        ("graph", popularity, nodes): LikeItsLargestTopic(
            GeneratedWorkload(nodes, popularity=popularity, seed=seed), seed=seed
        )
        for popularity in DISTRIBUTIONS
        for nodes in (small, large)
    }
    topics = (100, 1000) if scale == "paper" else (50, 100)
    runs |= {
        ("topics", count, large): LikeItsLargestTopic(
            GeneratedWorkload(large, count, "rss", TOPICS_PER_NODE, TOPICS_PER_NODE, seed), seed=seed
        )
        for count in topics
    }
    runs |= {
        ("links", popularity, small): settled(small, seed, popularity=popularity, kinds=("greedy",))
        for popularity in DISTRIBUTIONS
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for (kind, name, nodes), result in results.items():
            where: dict[str, Any] = {"workload": name, "nodes": nodes}
            if kind == "links":
                # Each end of a link counts for each topic that both want; ten topics each.
                shared = result["degree_mean"] * result["topics_per_link"]["greedy"] / 10
                where["level"] = "messages"
                rows.append(Row(where, "neighbours per subscription", None, shared))
                continue
            if kind == "topics":
                where |= {"workload": "rss", "topics": name, "topics_per_node": TOPICS_PER_NODE}
            rows += [
                Row(where, "subscribers of the largest topic", None, result["subscribers"]),
                Row(
                    where,
                    "diameter of a random graph of as many, four neighbours each",
                    None,
                    result["diameter"],
                ),
            ]
        return rows

    return Plan(runs, rows_of)


def _views(scale: Scale, seed: int) -> Plan:
    """Figure 10 with views as live nodes have them, by gossip and by what the homes of topics know; and
    networks of no more nodes than a view of 5 % has.
    """
    small, _ = _sizes(scale)
    runs: dict[Any, Run] = {
        ("views", told, small): settled(small, seed, membership=told, settle=VIEWING)
        for told in ("directory", "5%")
    }
    for told, (membership, seconds) in GATHERED.items():
        runs["views", told, FEW] = settled(FEW, seed, membership=membership, settle=seconds)
    sizes = (FEW, 2 * FEW) if scale == "paper" else (50, 100)
    for name, number in _samples(scale, seed).items():
        for nodes in sizes:
            runs["small", name, nodes] = settled(nodes, number)

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for (kind, name, nodes), result in results.items():
            where: dict[str, Any] = {"nodes": nodes, "level": "messages"}
            where |= (
                {"workload": "rss", "membership": name}
                if kind == "views"
                else {"workload": name, "size": "as of a small view"}
            )
            rows += [
                Row(where, measure, None, result[measure])
                for measure in ("degree_mean", "partitioned_topics")
            ]
        return rows

    return Plan(runs, rows_of)


def _rings(scale: Scale, seed: int) -> Plan:
    """Rings by identifier depend on the lists alone (figure 14)."""
    nodes, _ = _sizes(scale)
    runs = {
        popularity: settled(nodes, seed, "ring-per-topic", popularity=popularity)
        for popularity in DISTRIBUTIONS
    }

    def rows_of(results: Results) -> list[Row]:
        return [
            Row(
                {"system": "ring-per-topic", "workload": popularity, "nodes": nodes, "level": "messages"},
                "degree_mean",
                None,
                result["degree_mean"],
            )
            for popularity, result in results.items()
        ]

    return Plan(runs, rows_of)


def _similar(scale: Scale, seed: int) -> Plan:
    """Into how many parts 20 links by similarity leave the topics: by size and by chance (figure 13)."""
    sizes = (1000, 2000) if scale == "paper" else (100, 200)
    system, parameters = RIVALS[TWENTY]
    runs = {
        (name, nodes): settled(nodes, number, system, dict(parameters))
        for name, number in _samples(scale, seed).items()
        for nodes in sizes
    }

    def rows_of(results: Results) -> list[Row]:
        return [
            Row(
                {"system": TWENTY, "workload": name, "nodes": nodes, "level": "messages"},
                "components",
                None,
                result["components"],
            )
            for (name, nodes), result in results.items()
        ]

    return Plan(runs, rows_of)


def _long(scale: Scale, seed: int) -> Plan:
    """Figure 8(c) at its peak: 15 and 20 topics per node, also with DISCONNECT as printed and with other ties."""
    nodes, _ = _sizes(scale)
    runs = {
        (name, change, length): settled(nodes, number, parameters=changed, lists=(length, length))
        for name, number in _samples(scale, seed).items()
        for change, changed in CHANGES.items()
        for length in (15, 20)
        if not changed or number == 10 * seed
    }

    def rows_of(results: Results) -> list[Row]:
        return [
            Row(
                {
                    "workload": name,
                    "nodes": nodes,
                    "topics_per_node": length,
                    "change": change,
                    "level": "messages",
                },
                "degree_mean",
                None,
                result["degree_mean"],
            )
            for (name, change, length), result in results.items()
        ]

    return Plan(runs, rows_of)


def _alike(scale: Scale, seed: int) -> Plan:
    """Figure 8(f) with other popularities: it depends on the lists alone, so no overlay is waited for."""
    nodes, _ = _sizes(scale)
    runs = {
        (popularity, length): settled(
            nodes, seed, popularity=popularity, lists=(length, length), tdi=2 * length, settle=0.0
        )
        for popularity in EXPONENTS
        for length in LENGTHS
    }

    def rows_of(results: Results) -> list[Row]:
        return [
            Row(
                {"workload": popularity, "nodes": nodes, "topics_per_node": length},
                "tdi(2d)",
                None,
                result[f"tdi_{2 * length}"],
            )
            for (popularity, length), result in results.items()
        ]

    return Plan(runs, rows_of)
