"""A smaller workload out of a large one, in memory."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa

from topicweave.model.workload import Workload


def random_nodes(workload: Workload, count: int, seed: int) -> Workload:
    """So many of the nodes with all their topics, their places, and their comings and goings; topics that nobody wants any more go."""
    if count >= workload.nodes:
        return workload
    chosen = sorted(random.Random(f"nodes/{seed}").sample(range(workload.nodes), count))
    names = pa.array([workload.node_names[index] for index in chosen])
    kept = {}
    for name, table in workload.tables().items():
        if "node" in table.column_names:
            kept[name] = table.filter(pa.compute.is_in(table["node"], names))
    if "hosts" not in kept:
        kept["hosts"] = pa.table({"node": names})
    wanted = np.unique(np.concatenate([workload.interests(index) for index in chosen])).tolist()
    topics = pa.table(
        {
            "topic": pa.array([workload.topic_names[topic] for topic in wanted], pa.string()),
            "rate": pa.array([float(workload.rates[topic]) for topic in wanted], pa.float64()),
        }
    )
    return Workload.from_tables(kept["subscriptions"], topics, kept.get("churn"), kept["hosts"])
