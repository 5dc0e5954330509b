"""Which events a run publishes: the same in whichever world it runs."""

from __future__ import annotations

import random
from collections.abc import Iterator

from topicweave.model.workload import Workload

PUBLISHING = 5.0
"""Seconds over which events are published."""
DRAIN = 10.0
"""Seconds given to the last event to arrive."""


def drawn_events(workload: Workload, events: int, seed: int) -> Iterator[tuple[int, int]]:
    """Who publishes on which topic: topics by their rates, publishers among those who want the topic."""
    rng = random.Random(f"events/{seed}")
    wanting = [
        (topic, rate)
        for topic, rate in enumerate(workload.rates.tolist())
        if rate > 0 and len(workload.subscribers(topic))
    ]
    if wanting:
        for topic in rng.choices([t for t, _ in wanting], weights=[r for _, r in wanting], k=events):
            yield rng.choice(workload.subscribers(topic).tolist()), topic
