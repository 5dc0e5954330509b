"""SpiderCast §3.9: against similarity and random overlays, and a ring per topic."""

from __future__ import annotations

from collections.abc import Sequence

from topicweave.papers.spidercast.settings import (
    PAPER_SIZES,
    settled,
    sizes_of,
)
from topicweave.papers.study import Plan, Results, Row, Scale, listed
from topicweave.runs.run import Run

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


def _table_12(sizes: Sequence[int], seed: int) -> dict[tuple[str, int], Run]:
    """The runs that figures 12 and 13 share."""
    systems = {"spidercast(3,0)": ("spidercast", {}), **RIVALS}
    return {
        (name, nodes): settled(nodes, seed, system, dict(parameters))
        for name, (system, parameters) in systems.items()
        for nodes in sizes
    }


def fig12(scale: Scale, seed: int) -> Plan:
    """Mean degree of SpiderCast and its unstructured rivals."""
    sizes = sizes_of(scale)

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for name, degrees in TABLE_12.items():
            in_paper = dict(zip(PAPER_SIZES, degrees, strict=True))
            for nodes in sizes:
                where = {"system": name, "nodes": nodes}
                result = results[name, nodes]
                rows.append(Row(where, "degree_mean", in_paper.get(nodes), result["degree_mean"]))
                if name == "spidercast(3,0)":
                    rows.append(Row(where, "partitioned_topics", 0, result["partitioned_topics"]))
        return rows

    return Plan(_table_12(sizes, seed), rows_of)


def fig13(scale: Scale, seed: int) -> Plan:
    """How many pieces the topics fall into: 100 would be one for each."""
    sizes = sizes_of(scale)

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for name in TABLE_12:
            pieces = [results[name, nodes]["components"] for nodes in sizes]
            for nodes, components in zip(sizes, pieces, strict=True):
                where = {"system": name, "nodes": nodes}
                paper = 100 if name == "spidercast(3,0)" else "above 100"
                rows.append(Row(where, "components", paper, components))
            if name != "spidercast(3,0)":
                rows.append(Row({"system": name, "nodes": "rising"}, "components", "rises", listed(pieces)))
        return rows

    return Plan(_table_12(sizes, seed), rows_of)


def fig14(scale: Scale, seed: int) -> Plan:
    """A ring per topic needs many more links, and no fewer as the network grows."""
    sizes = sizes_of(scale)
    runs = {
        **{("spidercast", nodes): settled(nodes, seed) for nodes in sizes},
        **{("ring-per-topic", nodes): settled(nodes, seed, "ring-per-topic") for nodes in sizes},
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        excesses = []
        for nodes in sizes:
            ring = results["ring-per-topic", nodes]
            excess = ring["degree_mean"] / results["spidercast", nodes]["degree_mean"] - 1
            excesses.append(excess)
            where = {"nodes": nodes, "system": "ring-per-topic"}
            rows += [
                Row(where, "degree_mean", None, ring["degree_mean"]),
                Row(where, "partitioned_topics", 0, ring["partitioned_topics"]),
                Row(where, "degree above SpiderCast's", "0.51 to 0.82", excess),
            ]
        rows.append(
            Row(
                {"nodes": "rising", "system": "ring-per-topic"},
                "degree above SpiderCast's",
                "rises",
                listed(excesses),
            )
        )
        return rows

    return Plan(runs, rows_of)
