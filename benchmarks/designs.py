"""The centralized designs: published times, growth with the network, and the definition beside them."""

from __future__ import annotations

import math
import time

import numpy as np
from rich.console import Group
from rich.table import Table

from benchmarks.measuring import measured
from topicweave.designs import DEFAULT_RHO, Instance, Problem, compiled, reference
from topicweave.workloads import generate
from topicweave.workloads.catalogue import build

DESIGNS = {"GM": 0.0, "MinMaxODA": math.inf, "LowODA": DEFAULT_RHO}
PUBLISHED_SECONDS = 3.823
"""GM-style design of 1,000 nodes and 100 topics under Zipf, by the best published index; 555 minutes before it."""


def timed_design(
    instance: Instance, rho: float, by_definition: bool = False, repeats: int = 1
) -> tuple[float, int, float, int]:
    """(seconds at best, edges, mean degree, maximum degree), compilation apart."""
    if not by_definition:
        compiled.design(Problem.of(Instance.of_lists([[0], [0]])), rho)
    seconds = math.inf
    for _ in range(1 if by_definition else repeats):
        start = time.perf_counter()
        problem = Problem.of(instance)
        edges = reference.design(problem, rho) if by_definition else compiled.design(problem, rho)
        seconds = min(seconds, time.perf_counter() - start)
    degrees = np.bincount(edges.ravel(), minlength=instance.nodes)
    return seconds, len(edges), float(degrees.mean()), int(degrees.max())


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title)
    for column in columns:
        table.add_column(column, justify="right" if column != "design" else "left")
    return table


def published(quick: bool) -> Table:
    """The setting of the published figures."""
    table = _table(
        f"designs: 1,000 nodes, 100 topics, lists of 10 to 90 by a power law; published for Zipf: {PUBLISHED_SECONDS} s",
        *("design", "workload", "seconds", "against published", "edges", "degree mean", "degree max"),
    )
    for popularity in ("zipf",) if quick else ("zipf", "expo", "uniform"):
        instance = Instance.of_workload(build(f"omen-{popularity}", nodes=1000, topics=100))
        for name, rho in DESIGNS.items():
            seconds, edges, mean, most = measured(timed_design, instance, rho, False, 5).value
            ratio = f"{PUBLISHED_SECONDS / seconds:,.0f}x" if popularity == "zipf" and rho == 0 else ""
            table.add_row(name, popularity, f"{seconds:.3f}", ratio, f"{edges:,}", f"{mean:.2f}", f"{most}")
    return table


def growth(quick: bool) -> Table:
    """As many topics as nodes, 30 subscriptions each; from 12,000 nodes on there is no matrix of pairs."""
    table = _table(
        "designs: growth, as many topics as nodes (Zipf 0.5), 30 subscriptions a node",
        *("design", "nodes", "seconds", "against 1,000", "peak MiB", "edges", "degree mean", "degree max"),
    )
    for name, rho in DESIGNS.items():
        first = None
        sizes = (1000, 2000, 5000, 10_000, 50_000) if rho == 0 else (1000, 2000, 5000, 10_000, 20_000)
        for nodes in sizes[:2] if quick else sizes:
            instance = Instance.of_workload(generate(nodes, nodes, "rss", 30, 30))
            run = measured(timed_design, instance, rho)
            seconds, edges, mean, most = run.value
            first = first or seconds
            table.add_row(
                name,
                f"{nodes:,}",
                f"{seconds:.3f}",
                f"{seconds / first:.1f}x",
                f"{run.peak_mib:,.0f}",
                f"{edges:,}",
                f"{mean:.2f}",
                f"{most}",
            )
    return table


def against_definition(quick: bool) -> Table:
    """Every weight anew for every edge: only small networks can be done."""
    table = _table(
        "designs: against the definition (100 topics, Zipf 1, 10 subscriptions a node)",
        *("design", "nodes", "seconds", "by definition", "ratio"),
    )
    for nodes in (50,) if quick else (50, 100, 200):
        instance = Instance.of_workload(generate(nodes, 100, "zipf1", 10, 10))
        for name, rho in DESIGNS.items():
            fast = measured(timed_design, instance, rho, False, 5).value
            slow = measured(timed_design, instance, rho, True).value
            assert fast[1:] == slow[1:], "the engines disagree"
            table.add_row(name, f"{nodes}", f"{fast[0]:.4f}", f"{slow[0]:.1f}", f"{slow[0] / fast[0]:,.0f}x")
    return table


def run(quick: bool) -> Group:
    return Group(published(quick), growth(quick), against_definition(quick))
