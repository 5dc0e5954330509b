"""How long do topics stay apart after a crash? docs/systems/weave.md.

A tenth of the nodes crashes without a word. Twice a second one who sees everything looks whether the living
subscribers of each topic still hang together by links between themselves. Events may arrive all the same, later.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from benchmarks.sheet import Column, Sheet
from topicweave.blocks.membership import DIRECTORY
from topicweave.measures.columns import names_array
from topicweave.measures.graph import Overlay, TopicGraph, snapshot
from topicweave.measures.overlay import connectivity_measures
from topicweave.runs.run import seldom_collected
from topicweave.sim.simulation import Simulation
from topicweave.systems.registry import find_system
from topicweave.testing.toys import recorder
from topicweave.workloads import generate

SYSTEMS = ("weave", "spidercast", "omen", "ring-per-topic")
WORKLOADS = ("rss", "zipf1")
SEEDS = {300: (0, 1, 2), 1000: (0,)}
"""By the number of nodes."""
TOPICS, EACH = 100, 10
CRASHED = 0.1
LOOKS = 0.5


class Mended(NamedTuple):
    parted: int
    """Topics, when the nodes have just crashed."""
    seconds: float | None
    """From the crash until all topics are in one piece and stay so; None: not within the time."""


def mended(system: str, popularity: str, nodes: int, seed: int, settled: float, watched: float) -> Mended:
    with seldom_collected():
        workload = generate(nodes, TOPICS, popularity, min_size=EACH, max_size=EACH, seed=seed)
        found = find_system(system)
        telemetry = recorder(workload)
        simulation = Simulation(
            workload,
            found,
            found.settings(**found.paced("lan", {})),
            seed=seed,
            membership=DIRECTORY,
            telemetry=telemetry,
        )
        simulation.run(settled)
        for index in random.Random(seed).sample(simulation.up(), round(CRASHED * nodes)):
            simulation.stop(index, orderly=False)
        names = names_array(workload.node_names[index] for index in simulation.up())
        subscriptions = workload.tables()["subscriptions"]
        apart = []
        while True:
            simulation.snapshot()
            links = snapshot(telemetry.tables().links)
            topics = TopicGraph.of(Overlay.of(links, names), subscriptions)
            apart.append(int(connectivity_measures(topics)["partitioned_topics"]))
            if simulation.now >= settled + watched:
                break
            simulation.run(simulation.now + LOOKS)
        last = max((at for at, topics_apart in enumerate(apart) if topics_apart), default=-1)
        return Mended(apart[0], None if last == len(apart) - 1 else LOOKS * (last + 1))


def run(quick: bool) -> list[Sheet]:
    sheet = Sheet(
        "mending",
        "topics apart after a tenth of the nodes crashed",
        4,
        Column("system"),
        Column("popularity"),
        Column("nodes", ",d"),
        Column("seed", "d"),
        Column("topics apart", "d"),
        Column("seconds until none is", ".1f", "less"),
        note="Nothing under seconds: some topic is apart at the end.",
    )
    settled, watched = (30.0, 5.0) if quick else (100.0, 30.0)
    seeds_by_size = {60: (0,)} if quick else SEEDS
    for nodes, seeds in seeds_by_size.items():
        for popularity in WORKLOADS:
            for seed in seeds:
                for system in SYSTEMS[:1] if quick else SYSTEMS:
                    outcome = mended(system, popularity, nodes, seed, settled, watched)
                    sheet.add(system, popularity, nodes, seed, *outcome)
    return [sheet]
