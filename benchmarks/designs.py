"""The centralized designs: published times, growth with the network, and the definition beside them."""

from __future__ import annotations

import math
import time

import numpy as np

from benchmarks.measuring import measured
from benchmarks.sheet import Column, Sheet
from topicweave.designs import DEFAULT_RHO, Instance, Problem, compiled, reference
from topicweave.workloads import generate
from topicweave.workloads.catalogue import build

DESIGNS = {"GM": 0.0, "MinMaxODA": math.inf, "LowODA": DEFAULT_RHO}
PUBLISHED_SECONDS = 3.823
"""GM-style design of 1,000 nodes and 100 topics under Zipf, by the best published index; 555 minutes before it."""


def timed_design(
    instance: Instance, rho: float, by_definition: bool = False, repeats: int = 1
) -> tuple[float, int, float, int]:
    """(CPU seconds at best, edges, mean degree, maximum degree), compilation apart."""
    if not by_definition:
        compiled.design(Problem.of(Instance.of_lists([[0], [0]])), rho)
    seconds = math.inf
    for _ in range(1 if by_definition else repeats):
        start = time.process_time()
        problem = Problem.of(instance)
        edges = reference.design(problem, rho) if by_definition else compiled.design(problem, rho)
        seconds = min(seconds, time.process_time() - start)
    degrees = np.bincount(edges.ravel(), minlength=instance.nodes)
    return seconds, len(edges), float(degrees.mean()), int(degrees.max())


def _some(name: str, quick: bool) -> list[tuple[str, float]]:
    """All designs, or one of them."""
    return [(name, DESIGNS[name])] if quick else list(DESIGNS.items())


def published(quick: bool) -> Sheet:
    """The setting of the published figures."""
    sheet = Sheet(
        "designs/published",
        f"designs: 1,000 nodes, 100 topics, lists of 10 to 90; published for Zipf: {PUBLISHED_SECONDS} s",
        2,
        Column("design"),
        Column("workload"),
        Column("seconds", ".3f", "less"),
        Column("published / ours", ",.0f"),
        Column("edges", ",d"),
        Column("degree mean", ".2f"),
        Column("degree max", "d"),
    )
    for popularity in ("zipf",) if quick else ("zipf", "expo", "uniform"):
        instance = Instance.of_workload(build(f"omen-{popularity}", nodes=1000, topics=100))
        for name, rho in _some("GM", quick):
            seconds, edges, mean, most = measured(timed_design, instance, rho, False, 1 if quick else 5).value
            ratio = PUBLISHED_SECONDS / seconds if popularity == "zipf" and rho == 0 else None
            sheet.add(name, popularity, seconds, ratio, edges, mean, most)
    return sheet


def growth(quick: bool) -> Sheet:
    """As many topics as nodes, 30 subscriptions each; from 12,000 nodes on there is no matrix of pairs."""
    sheet = Sheet(
        "designs/growth",
        "designs: growth, as many topics as nodes (Zipf 0.5), 30 subscriptions a node",
        2,
        Column("design"),
        Column("nodes", ",d"),
        Column("seconds", ".3f", "less"),
        Column("against 1,000", ".1f"),
        Column("peak MiB", ",.0f", "less"),
        Column("edges", ",d"),
        Column("degree mean", ".2f"),
        Column("degree max", "d"),
    )
    for name, rho in _some("MinMaxODA", quick):
        first = None
        sizes = (1000, 2000, 5000, 10_000, 50_000) if rho == 0 else (1000, 2000, 5000, 10_000, 20_000)
        for nodes in sizes[:1] if quick else sizes:
            instance = Instance.of_workload(generate(nodes, nodes, "rss", 30, 30))
            run = measured(timed_design, instance, rho)
            seconds, edges, mean, most = run.value
            first = first or seconds
            sheet.add(name, nodes, seconds, seconds / first, run.peak_mib, edges, mean, most)
    return sheet


def against_definition(quick: bool) -> Sheet:
    """Every weight anew for every edge: only small networks can be done."""
    sheet = Sheet(
        "designs/definition",
        "designs: against the definition (100 topics, Zipf 1, 10 subscriptions a node)",
        2,
        Column("design"),
        Column("nodes", ",d"),
        Column("seconds", ".4f", "less"),
        Column("by definition", ".1f"),
        Column("ratio", ",.0f"),
    )
    for nodes in (30,) if quick else (50, 100, 200):
        instance = Instance.of_workload(generate(nodes, 100, "zipf1", 10, 10))
        for name, rho in _some("LowODA", quick):
            fast = measured(timed_design, instance, rho, False, 5).value
            slow = measured(timed_design, instance, rho, True).value
            assert fast[1:] == slow[1:], "the engines disagree"
            sheet.add(name, nodes, fast[0], slow[0], slow[0] / fast[0])
    return sheet


def run(quick: bool) -> list[Sheet]:
    return [published(quick), growth(quick), against_definition(quick)]
