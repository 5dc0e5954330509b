"""Coordinators that die in mid-repair: no repair is lost, by the paper's means alone (§3.3, Alg. 5).

A chain of up to L nodes that follow each other on the circle crashes, each while the one before it is being
handled: before anybody noticed, during the survey, while labels spread, or just after. `TOPICWEAVE_SEEDS=200
pytest -m "" tests/systems/omen/test_mid_repair.py` tries more of them.
"""

from __future__ import annotations

import os
import random

from tests.seeds import seeds
from tests.systems.omen.networks import (
    around_the_circle,
    busiest,
    by_the_paper_alone,
    network,
    nodes_of,
    parted_topics,
)
from topicweave.systems.omen.invariants import at_rest

SEEDS = int(os.environ.get("TOPICWEAVE_SEEDS", "4"))
EPISODES = 3
LONGEST_REPAIR = 12.0
"""Silence (5 s), fresh beacons, answers."""


@seeds(range(SEEDS))
def test_no_repair_is_lost_when_coordinators_die(seed: int) -> None:
    rng = random.Random(f"mid-repair/{seed}")
    resilience = rng.randint(2, 3)
    simulation = network(rng.randint(25, 45), seed=seed, resilience=resilience)
    by_the_paper_alone(simulation)
    assert parted_topics(simulation) == []
    came_apart = 0
    for _ in range(EPISODES):
        first = busiest(simulation) if rng.random() < 0.5 else rng.choice(simulation.up())
        for index in around_the_circle(simulation, first, resilience):
            simulation.stop(index, orderly=False)
            came_apart += bool(parted_topics(simulation))
            simulation.run(simulation.now + rng.uniform(0.0, LONGEST_REPAIR))
        simulation.run(simulation.now + 45.0)
        assert parted_topics(simulation) == []
        for node in nodes_of(simulation):
            assert list(at_rest({node.id: node})) == []
    assert came_apart, "nothing came apart: this shows nothing"
