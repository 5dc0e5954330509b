"""What a node costs, beside how much its interests are like those of others: what correlated interests are worth."""

from __future__ import annotations

import random

import numpy as np

from topicweave.measures.delivery import Receptions
from topicweave.measures.traffic import noise_by_node
from topicweave.model.workload import Workload
from topicweave.sim.simulation import Simulation

SAMPLED_NODES = 300
PEERS = 5


def cost_by_likeness(simulation: Simulation, receptions: Receptions, seed: int) -> list[list[float | None]]:
    """(likeness, links, noise) of a sample of nodes that want anything; noise is None where nothing was received."""
    noise = noise_by_node(receptions.traffic)
    workload = simulation.workload
    wanting = [index for index in simulation.up() if workload.interests(index).size]
    chosen = random.Random(f"likeness/{seed}").sample(wanting, min(SAMPLED_NODES, len(wanting)))
    heard = dict(zip(receptions.nodes.to_pylist(), noise.tolist(), strict=True))
    rows: list[list[float | None]] = []
    for index in sorted(chosen):
        share = heard.get(workload.node_names[index], np.nan)
        rows.append(
            [
                round(likeness(workload, index), 4),
                simulation.node(index).degree,
                None if np.isnan(share) else round(share, 4),
            ]
        )
    return rows


def likeness(workload: Workload, node: int, peers: int = PEERS) -> float:
    """The share of the node's topics that another node wants too, on average over those `peers` that share most."""
    wanted = np.zeros(workload.topics, np.bool_)
    wanted[workload.interests(node)] = True
    ends = np.concatenate([[0], np.cumsum(wanted[workload.topic_index])])
    common = np.diff(ends[workload.offsets])
    others = np.sort(np.delete(common, node))[::-1][:peers]
    return float(others.mean()) / int(wanted.sum()) if others.size else 0.0
