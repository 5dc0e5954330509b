"""What membership alone costs nodes that want thousands of topics, from a real start; docs/membership-measured.md.

The nodes do nothing but keep a view with a topic directory. They join within 10 s through three seeds. From 300 s
on they are watched for as long as it takes them to renew each of their topics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from benchmarks.sheet import Column, Sheet

TOPIC_WANTED_BY = 3
"""Nodes, on average."""
SETTLED = 300.0

ROWS = ((24, 2500), (24, 5000), (60, 2500))
LARGE_ROWS = ((120, 2500),)
QUICK_ROWS = ((12, 100),)


class Cost(NamedTuple):
    """Per node and second."""

    contacts: float
    messages: float
    size: float
    directory_messages: float
    directory_bytes: float
    strangers_bytes: float
    """What gossip asks and tells about the interests of others,"""
    strangers_bytes_earlier: float
    """and what it did from the start on until it was watched."""


def cost(nodes: int, topics: int, settled: float = SETTLED, seed: int = 0) -> Cost:
    """Of membership, where each node wants so many topics."""
    from topicweave.blocks.membership import DIRECTORY
    from topicweave.blocks.topic_directory import DirectoryParameters
    from topicweave.measures.control import control_measures
    from topicweave.sim.churn import Churn
    from topicweave.sim.latency_choice import parse_latency
    from topicweave.sim.simulation import Simulation
    from topicweave.testing.directory_only import DIRECTORY_ONLY
    from topicweave.testing.toys import recorder
    from topicweave.workloads.catalogue import build

    workload = build(
        "spidercast",
        seed,
        nodes=nodes,
        topics=nodes * topics // TOPIC_WANTED_BY,
        popularity="uniform",
        min_size=topics,
        max_size=topics,
    )
    telemetry = recorder(workload)
    simulation = Simulation(
        workload,
        DIRECTORY_ONLY,
        seed=seed,
        membership=DIRECTORY,
        telemetry=telemetry,
        latency=parse_latency("50ms", workload, seed),
        churn=Churn(frozenset(range(nodes)), (), start_window=10.0),
    )
    simulation.seeds = (0, 1, 2)
    simulation.run(settled)
    simulation.flush_control()
    parameters = DirectoryParameters()
    term = max(parameters.renew, parameters.renew_per_topic * topics)
    simulation.run(settled + term)
    simulation.flush_control()
    control = telemetry.tables().control
    earlier = control_measures(control, node_seconds=nodes * settled, start=0.0, end=settled)
    rates = control_measures(control, node_seconds=nodes * term, start=settled, end=settled + term)
    contacts = sum(len(list(simulation.node(index).links())) for index in simulation.up()) / nodes
    return Cost(
        contacts,
        rates["control_messages"],
        rates["control_bytes"],
        _of(rates, "control_messages.dir-"),
        _of(rates, "control_bytes.dir-"),
        _of(rates, "control_bytes.profiles."),
        _of(earlier, "control_bytes.profiles."),
    )


def _of(rates: Mapping[str, float], kinds: str) -> float:
    return sum(rate for name, rate in rates.items() if name.startswith(kinds))


def run(quick: bool) -> list[Sheet]:
    return [measured(QUICK_ROWS if quick else ROWS, 60.0 if quick else SETTLED)]


def run_large(quick: bool) -> list[Sheet]:
    return [measured(QUICK_ROWS if quick else LARGE_ROWS, 60.0 if quick else SETTLED)]


def measured(rows: tuple[tuple[int, int], ...], settled: float) -> Sheet:
    sheet = Sheet(
        "membership",
        f"Membership alone, per node and second, from {settled:g} s after the start on, for a term",
        2,
        Column("nodes", ",d"),
        Column("topics", ",d"),
        Column("contacts", ".1f"),
        Column("messages", ".1f", "less"),
        Column("bytes", ",.0f", "less"),
        Column("of the directory", ".1f", "less"),
        Column("bytes", ",.0f", "less"),
        Column("of strangers", ",.0f", "less"),
        Column("until then", ",.0f", "less"),
        note="Of strangers: bytes of what gossip asks and tells about their interests.",
    )
    for nodes, topics in rows:
        sheet.add(nodes, topics, *cost(nodes, topics, settled))
    return sheet
