"""What explains the paper's figures, measured: DISCONNECT to the letter (§2.3.1), ties (Figure 5), what a
link of each kind covers (§2.1).
"""

from __future__ import annotations

from typing import Any

from topicweave.papers.spidercast.overlays import PATHS, paths
from topicweave.papers.spidercast.settings import SETTLED, settled
from topicweave.papers.study import Plan, Results, Row, Scale

READINGS = ("agreed", "reached", "printed")
"""As in `SpiderCastParameters.disconnect`: ours, by §2.3.1, by Figure 3."""
SETTINGS: dict[str, tuple[str, dict[str, int]]] = {
    "rss (3,0)": ("rss", {}),
    "zipf2 (3,0)": ("zipf2", {}),
    "zipf2 (3,1)": ("zipf2", {"k_random": 1}),
    "zipf2 (4,0)": ("zipf2", {"k_greedy": 4}),
}
LONG = 30.0
"""Virtual seconds: to the letter links come and go for longer."""
LARGE = 6000
"""The smallest network in which the paper finds topics parted."""


def disconnect(scale: Scale, seed: int) -> Plan:
    """Figures 6, 7, 8 and 12 at their smaller sizes with DISCONNECT as it is built, as §2.3.1 tells it, and
    as Figure 3 prints it; and as Figure 3 prints it where the paper has parted topics, and its largest degrees.
    """
    sizes = (1000, 2000) if scale == "paper" else (200,)
    points = [(name, reading, nodes, 100) for name in SETTINGS for reading in READINGS for nodes in sizes]
    if scale == "paper":
        points += [(name, "printed", LARGE, 100) for name in SETTINGS]
        points.append(("rss (3,0)", "printed", LARGE, 200))
    runs = {
        (name, reading, nodes, topics): settled(
            nodes,
            seed,
            parameters={**SETTINGS[name][1], "disconnect": reading},
            popularity=SETTINGS[name][0],
            topics=topics,
            diameters=True,
            settle=LONG,
        )
        for name, reading, nodes, topics in points
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for (name, reading, nodes, topics), result in results.items():
            setting = name if topics == 100 else f"{name}, {topics} topics"
            where: dict[str, Any] = {"setting": setting, "disconnect": reading, "nodes": nodes}
            rows += [
                Row(where, measure, None, result[measure])
                for measure in ("degree_mean", "degree_max", "partitioned_topics")
            ]
            rows += paths(where, result)
        return rows

    return Plan(runs, rows_of)


def ties(scale: Scale, seed: int) -> Plan:
    """Figures 6, 7 and 8a if all nodes ask the same one of several peers that cover the same, with DISCONNECT
    as it is built and as Figure 3 prints it.
    """
    sizes = (1000, 6000) if scale == "paper" else (200,)
    settings = {**SETTINGS, "uniform (3,0)": ("uniform", {})}
    runs = {
        (name, reading, nodes): settled(
            nodes,
            seed,
            parameters={**parameters, "disconnect": reading, "ties": "first"},
            popularity=popularity,
            diameters=True,
            settle=LONG if reading == "printed" else SETTLED,
        )
        for name, (popularity, parameters) in settings.items()
        for reading in ("agreed", "printed")
        for nodes in sizes
    }

    def rows_of(results: Results) -> list[Row]:
        return [
            Row(
                {"setting": name, "ties": "first", "disconnect": reading, "nodes": nodes},
                measure,
                None,
                result[measure],
            )
            for (name, reading, nodes), result in results.items()
            for measure in ("degree_mean", "degree_max", "partitioned_topics", *PATHS)
        ]

    return Plan(runs, rows_of)


def links(scale: Scale, seed: int) -> Plan:
    """How many topics a greedy and a random link serve, with (3,1)-coverage."""
    sizes = (1000, 2000) if scale == "paper" else (200,)
    runs = {
        (popularity, nodes): settled(
            nodes, seed, parameters={"k_random": 1}, popularity=popularity, kinds=("greedy", "random")
        )
        for popularity in ("uniform", "rss", "zipf1", "nyse")
        for nodes in sizes
    }

    def rows_of(results: Results) -> list[Row]:
        return [
            Row({"workload": popularity, "nodes": nodes, "link": kind}, "topics per link", None, shared)
            for (popularity, nodes), result in results.items()
            for kind, shared in result["topics_per_link"].items()
        ]

    return Plan(runs, rows_of)
