"""Does everybody who wants a topic get its events, however rare it is? docs/membership-measured.md.

Nodes that want three of 20 popular topics and two rare ones each, which three want, with views of 100. All
join within ten seconds by way of three seeds. Every topic is published on after a while, and again half a
minute after a tenth of the nodes crashed without a word. The same with four rare topics per node, which two want.
"""

from __future__ import annotations

import random
from functools import partial
from typing import NamedTuple

from benchmarks.measuring import measured
from benchmarks.sheet import Column, Sheet
from topicweave.blocks.membership import Membership
from topicweave.measures.control import control_measures
from topicweave.model.event import Event, EventId
from topicweave.runs.run import seldom_collected
from topicweave.sim.churn import Churn
from topicweave.sim.host import Host
from topicweave.sim.latency_choice import parse_latency
from topicweave.sim.simulation import Simulation
from topicweave.systems.registry import find_system
from topicweave.testing.toys import recorder
from topicweave.workloads.catalogue import build

SYSTEMS = ("spidercast", "rappel", "gossipsub", "omen", "ring-per-topic")
JOINING, MENDED, WATCHED, ARRIVING = 10.0, 30.0, 15.0, 10.0
CRASHED = 0.1
LATER = 120.0


class Found(NamedTuple):
    """Shares of those who should have an event that got it, and topics of which somebody missed one; before
    and after the crash. Then what membership takes.
    """

    hit: float
    apart: int
    hit_after: float
    apart_after: int
    messages: float
    bytes: float


def served(simulation: Simulation, rng: random.Random) -> tuple[float, int]:
    """One event on every topic that two nodes want, by one of them: the share of the others that got it, and
    topics of which one did not.
    """
    got: dict[EventId, set[int]] = {}

    def delivered(host: Host, event: Event) -> None:
        got.setdefault(event.id, set()).add(host.index)

    simulation.on_delivery(delivered)
    wanting: dict[int, list[int]] = {}
    for index in simulation.up():
        for topic in simulation.workload.interests(index).tolist():
            wanting.setdefault(topic, []).append(index)
    expected: dict[EventId, set[int]] = {}
    for topic, nodes in wanting.items():
        if len(nodes) > 1:
            publisher = rng.choice(nodes)
            event = simulation.publish(publisher, topic).event
            expected[event.id] = set(nodes) - {publisher}
    simulation.run(simulation.now + ARRIVING)
    missed = {event: nodes - got.get(event, set()) for event, nodes in expected.items()}
    all_of_them = sum(map(len, expected.values()))
    return 1.0 - sum(map(len, missed.values())) / all_of_them, sum(map(bool, missed.values()))


def found(system: str, nodes: int, view: int, settled: float, **model: int) -> Found:
    with seldom_collected():
        simulation, messages, octets = _joined(system, nodes, view, settled, **model)
        rng = random.Random(2)
        before = served(simulation, rng)
        for index in rng.sample(simulation.up(), round(CRASHED * nodes)):
            simulation.stop(index, orderly=False)
        simulation.run(simulation.now + MENDED)
        return Found(*before, *served(simulation, rng), messages, octets)


def growth(system: str, nodes: int, view: int) -> tuple[float, float]:
    """Messages and bytes of membership per node and second, of all sizes at the same time after the start:
    nodes renew what they announced in waves.
    """
    with seldom_collected():
        return _joined(system, nodes, view, LATER)[1:]


def _joined(
    system: str, nodes: int, view: int, settled: float, **model: int
) -> tuple[Simulation, float, float]:
    """A swarm so many seconds after its start, and what membership took per node in the last of them."""
    workload = build("rare", 1, nodes=nodes, **model)
    known = find_system(system)
    telemetry = recorder(workload)
    simulation = Simulation(
        workload,
        known,
        known.settings(**known.paced("lan", {})),
        seed=1,
        membership=Membership.parse(f"directory:{view}"),
        telemetry=telemetry,
        latency=parse_latency("50ms", workload, 1),
        churn=Churn(frozenset(range(nodes)), (), start_window=JOINING),
    )
    simulation.seeds = (0, 1, 2)
    simulation.run(settled - WATCHED)
    simulation.flush_control()
    start = simulation.now
    simulation.run(settled)
    simulation.flush_control()
    rates = control_measures(
        telemetry.tables().control, node_seconds=nodes * WATCHED, start=start, end=settled
    )
    messages, octets = (
        sum(rates.get(f"control_{sort}.{kind}", 0.0) for kind in simulation.membership_kinds)
        for sort in ("messages", "bytes")
    )
    return simulation, messages, octets


SIZES = ((300, 60.0), (1000, 60.0), (3000, 90.0), (10_000, 120.0))
"""Nodes, and seconds after the start until the first events."""


def run(quick: bool) -> list[Sheet]:
    sizes = ((60, 60.0),) if quick else SIZES
    systems = SYSTEMS[:1] if quick else SYSTEMS
    sheet = _who_is_served(
        "found",
        "Rare topics, views of 100, preset lan: who is served after 60 s (10,000 nodes: 120 s), and after a crash",
    )
    grown = Sheet(
        "growth",
        f"Membership per node and second, from {LATER - WATCHED:.0f} to {LATER:.0f} s after the start",
        2,
        Column("nodes", ",d"),
        Column("system"),
        Column("messages", ".1f", "less"),
        Column("bytes", ",.0f", "less"),
    )
    for nodes, settled in sizes:
        for system in systems:
            outcome = measured(found, system, nodes, 100, settled)
            sheet.add(nodes, system, *outcome.value, outcome.cpu)
            if settled == LATER:  # The same run, until then: it takes most of an hour.
                grown.add(nodes, system, outcome.value.messages, outcome.value.bytes)
            else:
                grown.add(nodes, system, *growth(system, nodes, 100))
    nodes = 60 if quick else 1000
    pairs = _who_is_served(
        "pairs", f"The same with {2 * nodes:,d} rare topics that two nodes want each, after 60 s"
    )
    for system in systems:
        outcome = measured(partial(found, rare=4, audience=2), system, nodes, 100, 60.0)
        pairs.add(nodes, system, *outcome.value, outcome.cpu)
    return [sheet, pairs, grown]


def _who_is_served(name: str, title: str) -> Sheet:
    return Sheet(
        name,
        title,
        2,
        Column("nodes", ",d"),
        Column("system"),
        Column("hit", ".5f", "more"),
        Column("topics apart", ",d", "less"),
        Column("hit after", ".5f", "more"),
        Column("topics apart", ",d", "less"),
        Column("membership messages/s", ".1f", "less"),
        Column("bytes/s", ",.0f", "less"),
        Column("CPU s", ".0f", "less"),
    )
