"""What is published in a run of Vitis §IV, on which lists, and how overhead is spread over nodes: the same by
messages and as arrays.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from topicweave.model.workload import Workload

BINS = 20
"""Of the histogram of overhead over nodes: 5% each."""


def subscription_statistics(workload: Workload) -> dict[str, float]:
    """How many want how much: what the paper gives of its Twitter graph (Figure 9)."""
    wants = np.array([len(workload.interests(node)) for node in range(workload.nodes)])
    wanted_by = np.array([len(workload.subscribers(topic)) for topic in range(workload.topics)])
    return {
        "subscriptions": float(wants.sum()),
        "topics": float(workload.topics),
        **_spread("subscriptions of a node", wants),
        **_spread("subscribers of a topic", wanted_by),
    }


def _spread(what: str, counts: Any) -> dict[str, float]:
    return {
        f"{what}, mean": float(counts.mean()),
        f"{what}, standard deviation": float(counts.std()),
        f"{what}, median": float(np.median(counts)),
        f"{what}, most": float(counts.max()),
    }


def planned_events(workload: Workload, events: int | None, seed: int) -> list[tuple[int, int]]:
    """(topic, publisher), one after another: `events` by the topics' rates, or one on each; publishers want
    the topic.
    """
    rng = random.Random(f"dissemination/{seed}")
    wanted = [topic for topic in range(workload.topics) if len(workload.subscribers(topic))]
    if events is None:
        topics = rng.sample(wanted, len(wanted))
    else:
        topics = rng.choices(wanted, weights=[float(workload.rates[topic]) for topic in wanted], k=events)
    return [(topic, rng.choice(workload.subscribers(topic).tolist())) for topic in topics]


def histogram(shares: Any) -> list[float]:
    """The share of nodes in each twentieth of overhead; nodes that received nothing have none."""
    counts, _ = np.histogram(np.nan_to_num(shares), bins=BINS, range=(0.0, 1.0))
    return [float(share) for share in counts / max(len(shares), 1)]
