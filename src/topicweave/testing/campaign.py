"""Fault campaigns: many small runs, each a random workload under random faults, drawn from its seed alone.

A scenario has three acts: chaos (faults, churn, changes of interest, events published all the while), quiet
(everything heals and the protocol settles), and the proof (an event on every topic). Then the invariants are
checked. A failing seed replays exactly: `run_scenario(system, draw_scenario(seed, …))`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from topicweave.blocks.membership import Membership
from topicweave.blocks.topic_directory import DirectoryParameters
from topicweave.errors import BadInput
from topicweave.model.event import EventId
from topicweave.model.workload import Workload
from topicweave.sim.churn import Change, Churn
from topicweave.sim.faults import Crash, Duplication, Fault, Loss, Partition, Reordering, SlowNode
from topicweave.sim.latency import Uniform
from topicweave.sim.simulation import Simulation
from topicweave.systems.system import System
from topicweave.testing.invariants import (
    DeliveryLog,
    NoiseLog,
    check_at_rest,
    kept_for_the_departed,
    nodes_up,
)
from topicweave.workloads import MODELS, generate

CHAOS = (5.0, 35.0)
PROOF = 10.0
LOOK_EVERY = 10.0
TERM = DirectoryParameters().lasts * DirectoryParameters().renew
"""For so long a topic's home and those whom it tells believe that somebody wants the topic."""


@dataclass(frozen=True)
class Scenario:
    """All that happens in one run, as plain data."""

    seed: int
    workload: Workload
    membership: Membership
    churn: Churn
    faults: tuple[Fault, ...]
    interest_changes: tuple[tuple[float, int, int, bool], ...]
    """(time, node, topic, subscribe or unsubscribe)"""
    publishes: tuple[tuple[float, int, int], ...]
    """(time, node, topic), during the chaos"""
    quiet_from: float = CHAOS[1]
    """Everything that goes wrong is over by then."""


@dataclass(frozen=True)
class Verdict:
    """What a run showed: no violation means it passed."""

    seed: int
    violations: tuple[str, ...]
    events: int
    deliveries: int

    @property
    def passed(self) -> bool:
        return not self.violations


def draw_scenario(seed: int, nodes: int | None = None, membership: str | None = None) -> Scenario:
    """A scenario from its seed. The number of nodes may be fixed, else it is 30 to 100; so may the membership, else
    it is `directory` or `gossip`. All else is the same with any membership, but that homes crash only where nodes
    run the directory.
    """
    rng = random.Random(f"scenario/{seed}")
    nodes = rng.randint(30, 100) if nodes is None else nodes
    if nodes < 2:
        raise BadInput(f"a scenario with {nodes} nodes: ask for at least 2")
    topics = rng.randint(5, 30)
    longest = min(topics, rng.randint(2, 10))
    workload = generate(
        nodes, topics, rng.choice(sorted(MODELS)), min_size=1, max_size=longest, seed=rng.getrandbits(32)
    )
    drawn = rng.choice(["directory", "gossip"])
    known_by = Membership.parse(drawn if membership is None else membership)
    churn, faults = _draw_churn(rng, nodes), tuple(_draw_faults(rng, nodes))
    if known_by.directory:
        faults += tuple(homes_crash(workload, random.Random(f"homes/{seed}")))
    return Scenario(
        seed=seed,
        workload=workload,
        membership=known_by,
        churn=churn,
        faults=faults,
        interest_changes=tuple(
            (rng.uniform(*CHAOS), rng.randrange(nodes), rng.randrange(topics), rng.random() < 0.5)
            for _ in range(rng.randint(0, nodes // 3))
        ),
        publishes=tuple(
            (rng.uniform(*CHAOS), rng.randrange(nodes), rng.randrange(topics)) for _ in range(2 * topics)
        ),
    )


def _draw_churn(rng: random.Random, nodes: int) -> Churn:
    """Up to a third of the nodes come late or leave in order; some come back."""
    late_or_leaving = rng.sample(range(nodes), rng.randint(0, nodes // 3))
    up_at_start = set(range(nodes))
    changes = []
    for node in late_or_leaving:
        times = sorted(rng.uniform(*CHAOS) for _ in range(rng.randint(1, 3)))
        up = rng.random() < 0.5
        if not up:
            up_at_start.discard(node)
        for time in times:
            up = not up
            changes.append(Change(time, node, up))
    return Churn(frozenset(up_at_start), tuple(sorted(changes)))


def _draw_faults(rng: random.Random, nodes: int) -> Iterator[Fault]:
    def span() -> tuple[float, float]:
        start, end = sorted((rng.uniform(*CHAOS), rng.uniform(*CHAOS)))
        return start, end

    makers: list[Callable[[], Fault]] = [
        lambda: Loss(*span(), rng.uniform(0.01, 0.3)),
        lambda: Duplication(*span(), rng.uniform(0.01, 0.3)),
        lambda: Reordering(*span(), rng.uniform(0.01, 0.5), rng.uniform(0.1, 3.0)),
        lambda: Partition(*span(), frozenset(rng.sample(range(nodes), rng.randint(1, nodes // 2)))),
        lambda: SlowNode(*span(), rng.randrange(nodes), rng.uniform(0.1, 3.0)),
        lambda: Crash(*span(), rng.randrange(nodes), rng.random() < 0.5),
    ]
    for make in rng.sample(makers, rng.randint(1, len(makers))):
        yield make()
    for _ in range(rng.randint(0, nodes // 4)):
        yield makers[-1]()


def homes_crash(workload: Workload, rng: random.Random) -> Iterator[Fault]:
    """The homes of one or two topics in the topic directory crash, each together with the next on the ring,
    which keeps the same records.
    """
    ring = sorted(range(workload.nodes), key=workload.node_ids.__getitem__)
    for topic in rng.sample(range(workload.topics), min(workload.topics, rng.randint(1, 2))):
        after = [
            place for place, node in enumerate(ring) if workload.node_ids[node] >= workload.topic_ids[topic]
        ]
        first = after[0] if after else 0
        start, end = sorted((rng.uniform(*CHAOS), rng.uniform(*CHAOS)))
        for step in range(2):
            yield Crash(start, end, ring[(first + step) % len(ring)], rng.random() < 0.5)


def run_scenario(system: System, scenario: Scenario, parameters: Any = None) -> Verdict:
    """Play a scenario and check all invariants. An error that a node raises is passed on, with the seed noted."""
    try:
        return _play(system, scenario, parameters)
    except Exception as error:
        error.add_note(f"in the scenario of seed {scenario.seed} with {scenario.workload.nodes} nodes")
        raise


def _play(system: System, scenario: Scenario, parameters: Any) -> Verdict:
    workload = scenario.workload
    simulation = Simulation(
        workload,
        system,
        parameters,
        seed=scenario.seed,
        membership=scenario.membership,
        latency=Uniform(0.01, 0.1, random.Random(f"latency/{scenario.seed}")),
        churn=scenario.churn,
        faults=scenario.faults,
    )
    log = DeliveryLog(simulation)
    for time, node, topic, wanted in scenario.interest_changes:
        simulation.at(time, simulation.subscribe if wanted else simulation.unsubscribe, node, topic)
    for time, node, topic in scenario.publishes:
        simulation.at(time, simulation.publish, node, topic)
    noise = NoiseLog(simulation, _ever_wanted(scenario)) if system.noiseless else None
    violations: list[str] = []
    _run_watched(simulation, scenario.quiet_from + system.heals_within, violations)
    if noise is not None:
        noise.nobody_excused()
    expected = _publish_everywhere(simulation, random.Random(f"proof/{scenario.seed}"))
    simulation.run(simulation.now + PROOF)
    violations += [*log.violations, *check_at_rest(simulation)]
    if scenario.membership.directory and any(kept_for_the_departed(simulation)):
        # A word of one that is gone may have come late to a topic's home, and counts for a term from then on.
        simulation.run(simulation.now + TERM)
    violations += kept_for_the_departed(simulation)
    if noise is not None:
        violations += noise.violations
    if system.connects_topics:
        violations += log.missed(expected)
    return Verdict(scenario.seed, tuple(violations), log.events, log.deliveries)


def _run_watched(simulation: Simulation, until: float, violations: list[str]) -> None:
    """Let time pass, looking at the system's own invariants now and then; the first moment that breaks them
    is enough.
    """
    always = simulation.system.always
    while always is not None and simulation.now + LOOK_EVERY < until and not violations:
        simulation.run(simulation.now + LOOK_EVERY)
        violations += [f"at {simulation.now:g} s: {what}" for what in always(nodes_up(simulation))]
    simulation.run(until)


def _ever_wanted(scenario: Scenario) -> set[tuple[int, int]]:
    """All (node, topic) that are wanted at some time of the scenario."""
    nodes, topics = scenario.workload.subscription_pairs()
    wanted = set(zip(nodes.tolist(), topics.tolist(), strict=True))
    return wanted | {(node, topic) for _, node, topic, starts in scenario.interest_changes if starts}


def _publish_everywhere(simulation: Simulation, rng: random.Random) -> dict[EventId, set[int]]:
    """An event on every topic, from one of its subscribers; returns who must get it."""
    expected = {}
    for topic, topic_id in enumerate(simulation.workload.topic_ids):
        subscribers = [index for index in simulation.up() if topic_id in simulation.node(index).subscriptions]
        if subscribers:
            receipt = simulation.publish(rng.choice(subscribers), topic)
            expected[receipt.event.id] = set(subscribers)
    return expected
