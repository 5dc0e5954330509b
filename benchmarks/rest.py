"""What a swarm costs at rest, with the times of the `lan` preset and the membership that live nodes have;
docs/membership-measured.md.

Per node: messages and bytes per second, and which part of them membership takes. What all parts of a node
send to one peer at one moment leaves a live node in one frame, so frames are counted, too. And how many there
would be if parts waited for each other. Beside it how long it takes until everybody is served again after a
tenth of the nodes crashed: slower detection would be no saving.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple
from unittest.mock import patch

from benchmarks.sheet import Column, Sheet
from topicweave.systems.presets import Preset

BEAT = 0.5
"""Seconds for which parts might wait for each other."""

SYSTEMS = (
    "spidercast",
    "rappel",
    "omen",
    "gossipsub",
    "weave",
    "ring-per-topic",
    "vitis",
    "magnet",
    "rvr",
    "strawman",
    "scribe",
)


class Rest(NamedTuple):
    """Nodes and topics, from when on a swarm counts as at rest, and for how long it is watched."""

    nodes: int
    topics: int
    popularity: str
    size: int
    settled: float = 60.0
    measured: float = 20.0
    systems: tuple[str, ...] = SYSTEMS
    proofs: bool = False
    """Whether subscribers prove what they say, as those with keys do."""


WORKLOADS = {
    "300 nodes, 10 of 100 topics": Rest(300, 100, "rss", 10),
    # Magnet's samples have settled after 90 s.
    "250 nodes, 50 of 8,000 topics": Rest(250, 8000, "zipf:0.8", 50, settled=100.0),
    "300 nodes, 20 of 1,000 topics": Rest(300, 1000, "zipf:0.8", 20, settled=100.0),
    # They renew their topics every 300 s.
    "24 nodes, 5,000 of 40,000 topics": Rest(24, 40_000, "uniform", 5000, 300.0, 300.0, ("spidercast",)),
    "24 nodes, 5,000 of 40,000 topics, with proofs": Rest(
        24, 40_000, "uniform", 5000, 300.0, 300.0, ("spidercast",), proofs=True
    ),
}
QUICK = {"40 nodes, 10 of 100 topics": Rest(40, 100, "rss", 10, systems=SYSTEMS[:2])}


def at_rest(system: str, rest: Rest, preset: Preset = "lan") -> tuple[float, ...]:
    """Frames per node and second, the same if timers kept to a beat, and if all messages waited; messages and
    bytes, messages and bytes of membership, links per node, seconds until repaired.
    """
    from topicweave.blocks.membership import DIRECTORY
    from topicweave.measures.control import control_measures
    from topicweave.runs.trial import crash_and_probe
    from topicweave.sim.latency_choice import parse_latency
    from topicweave.sim.proofs import SimulatedProofs
    from topicweave.sim.simulation import Simulation
    from topicweave.systems.registry import find_system
    from topicweave.testing.toys import recorder
    from topicweave.workloads.catalogue import build

    nodes, end = rest.nodes, rest.settled + rest.measured
    workload = build(
        "spidercast",
        0,
        nodes=nodes,
        topics=rest.topics,
        popularity=rest.popularity,
        min_size=rest.size,
        max_size=rest.size,
    )
    found = find_system(system)
    telemetry = recorder(workload)
    simulation = Simulation(
        workload,
        found,
        found.settings(**found.paced(preset, {})),
        seed=0,
        membership=DIRECTORY,
        telemetry=telemetry,
        latency=parse_latency("50ms", workload, 0),
    )
    if rest.proofs:
        simulation.use_proofs(SimulatedProofs())
    simulation.run(rest.settled)
    simulation.flush_control()
    with watched() as sent:
        simulation.run(end)
    simulation.flush_control()
    rates = control_measures(
        telemetry.tables().control, node_seconds=nodes * rest.measured, start=rest.settled, end=end
    )
    kinds = simulation.membership_kinds
    links = sum(simulation.node(index).degree for index in simulation.up()) / nodes
    mended = crash_and_probe(simulation, 0.1, 30, 0)["repair_time"]
    membership = (
        sum(rates.get(f"control_{sort}.{kind}", 0.0) for kind in kinds) for sort in ("messages", "bytes")
    )
    frames = (
        count / (nodes * rest.measured) for count in (at_once(sent), on_a_beat(sent), if_all_wait(sent))
    )
    return *frames, rates["control_messages"], rates["control_bytes"], *membership, links, mended


class Sent(NamedTuple):
    source: int
    peer: int
    time: float
    timed: bool
    """Whether a timer had it sent, and no message that came."""


@contextmanager
def watched() -> Iterator[list[Sent]]:
    """Who sends something to whom, and when, as long as this lasts."""
    from topicweave.port import Message, Node, TimerKey
    from topicweave.sim.host import Host
    from topicweave.sim.network import Network

    sent: list[Sent] = []
    send, timer = Network.send, Node.timer
    timed = False

    def noting(network: Network, source: Host, peer: int, message: Message) -> None:
        sent.append(Sent(source.name, peer, network.kernel.now, timed))
        send(network, source, peer, message)

    def ringing(node: Node, key: TimerKey) -> None:
        nonlocal timed
        timed = True
        timer(node, key)
        timed = False

    with patch.object(Network, "send", noting), patch.object(Node, "timer", ringing):
        yield sent


def at_once(sent: Sequence[Sent]) -> int:
    """Frames if only messages of one moment share one, as they do."""
    return len({one[:3] for one in sent})


def on_a_beat(sent: Sequence[Sent], beat: float = BEAT) -> int:
    """Frames if all that timers send left at the sender's next beat; each node's beats are its own."""
    phases = {one.source: random.Random(one.source).random() * beat for one in sent}
    frames: set[tuple[object, ...]] = set()
    for one in sent:
        moment = math.ceil((one.time - phases[one.source]) / beat) if one.timed else one.time
        frames.add((one.source, one.peer, one.timed, moment))
    return len(frames)


def if_all_wait(sent: Sequence[Sent], longest: float = BEAT) -> int:
    """Frames if each message, answers too, waited so long for others to the same peer. No rule saves more with
    so short a wait.
    """
    frames, leaves = 0, dict[tuple[int, int], float]()
    for one in sent:
        if one.time > leaves.get((one.source, one.peer), -math.inf):
            frames += 1
            leaves[one.source, one.peer] = one.time + longest
    return frames


def run(quick: bool) -> list[Sheet]:
    sheet = Sheet(
        "rest",
        "Control traffic per node and second at rest, preset lan",
        2,
        Column("workload"),
        Column("system"),
        Column("frames", ".1f", "less"),
        Column("messages", ".1f", "less"),
        Column("bytes", ",.0f", "less"),
        Column("of membership messages", ".1f", "less"),
        Column("bytes", ",.0f", "less"),
        Column("links", ".1f", "less"),
        Column("repair s", ".0f", "less"),
    )
    waiting = Sheet(
        "rest/waiting",
        f"Frames per node and second, if parts waited up to {BEAT:g} s for each other",
        2,
        Column("workload"),
        Column("system"),
        Column("frames", ".1f", "less"),
        Column("timers keep to a beat", ".1f"),
        Column("all wait", ".1f"),
    )
    for name, workload in (QUICK if quick else WORKLOADS).items():
        for system in workload.systems:
            frames, on_beat, all_wait, *others = at_rest(system, workload)
            sheet.add(name, system, frames, *others)
            waiting.add(name, system, frames, on_beat, all_wait)
    return [sheet, waiting]
