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


def in_short(workload: Workload) -> dict[str, Any]:
    """What decides how much nodes have to say to each other."""
    sizes = np.diff(workload.offsets)
    audiences = np.bincount(workload.topic_index, minlength=workload.topics)
    wanted = audiences[audiences > 0]
    return {
        "nodes": workload.nodes,
        "topics": int(wanted.size),
        "topics_per_node": float(sizes.mean()) if workload.nodes else 0.0,
        "subscribers_per_topic": float(wanted.mean()) if wanted.size else 0.0,
        "lonely_topics": int((wanted == 1).sum()),
        "shared_subscriptions": 1.0 - float((wanted == 1).sum()) / max(1, workload.topic_index.size),
    }


def told_sample(whole: Workload, sample: Workload) -> str:
    """What a sample kept of company, in a line."""
    before, after = in_short(whole), in_short(sample)

    def lonely(short: dict[str, Any]) -> str:
        return f"{short['lonely_topics'] / max(1, short['topics']):.0%}"

    return (
        f"sample of {after['nodes']:,} nodes by common interests (in brackets the whole, {before['nodes']:,} nodes): "
        f"{after['subscribers_per_topic']:.1f} subscribers per topic ({before['subscribers_per_topic']:.1f}), "
        f"{lonely(after)} of {after['topics']:,} topics with one subscriber ({lonely(before)} of {before['topics']:,}), "
        f"{after['shared_subscriptions']:.0%} of subscriptions shared with somebody "
        f"({before['shared_subscriptions']:.0%}), "
        f"{after['topics_per_node']:.1f} topics per node ({before['topics_per_node']:.1f})"
    )


def _histogram(counts: Any) -> list[list[int]]:
    """(value, how often), by value."""
    values, times = np.unique(counts, return_counts=True)
    return [[int(value), int(time)] for value, time in zip(values, times, strict=True)]
