"""What a workload is like, in numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from topicweave.model.workload import Workload


def facts(workload: Workload) -> dict[str, Any]:
    sizes = np.diff(workload.offsets)
    audiences = np.bincount(workload.topic_index, minlength=workload.topics)
    return {
        "nodes": workload.nodes,
        "topics": workload.topics,
        "subscriptions": int(workload.topic_index.size),
        "topics_per_node": float(sizes.mean()) if workload.nodes else 0.0,
        "topics_per_node_min": int(sizes.min(initial=workload.topics)),
        "topics_per_node_max": int(sizes.max(initial=0)),
        "subscribers_per_topic": float(audiences.mean()) if workload.topics else 0.0,
        "subscribers_per_topic_max": int(audiences.max(initial=0)),
        "lonely_topics": int((audiences == 1).sum()),
        "changes": int(workload.churn.size),
        "list_sizes": _histogram(sizes),
        "audiences": _histogram(audiences[audiences > 0]),
    }


def _histogram(counts: Any) -> list[list[int]]:
    """(value, how often), by value."""
    values, times = np.unique(counts, return_counts=True)
    return [[int(value), int(time)] for value, time in zip(values, times, strict=True)]
