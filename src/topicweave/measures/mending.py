"""Measures of mending (OMen §6.3 to §6.8): backup sets, local views, degrees over time, messages per churn event.

All are defined over plain arrays, which an engine or the nodes in the simulator fill.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from topicweave.measures.columns import mean, ratio
from topicweave.model.arrays import BoolArray, FloatArray, IntArray

FEW, MANY = 5, 100
"""Of how many a node is a backup: below the first and above the second the paper counts nodes (Figures 3 and 4)."""
GROUPS = ("short", "middling", "long")
"""Nodes by the length of their lists, in three groups of a size."""


class BackupArcs(NamedTuple):
    """An arc leads from a node to each of its backups (§6.3)."""

    sizes: IntArray
    """By node: how many backups it has."""
    incoming: IntArray
    """By node: of how many it is a backup."""

    @classmethod
    def of(cls, kept: Mapping[Any, Collection[Any]]) -> BackupArcs:
        """Of the backups of each node, in this order; backups that are no nodes themselves do not count.

        >>> BackupArcs.of({"a": "bc", "b": "a", "c": "a"}).incoming.tolist()
        [2, 1, 1]
        """
        incoming = dict.fromkeys(kept, 0)
        sizes = dict.fromkeys(kept, 0)
        for node, chosen in kept.items():
            for peer in chosen:
                if peer in incoming:
                    incoming[peer] += 1
                    sizes[node] += 1
        return cls(np.array(list(sizes.values()), np.int64), np.array(list(incoming.values()), np.int64))


def backup_measures(sizes: Sequence[int] | IntArray, incoming: Sequence[int] | IntArray) -> dict[str, float]:
    """Of the two columns of `BackupArcs`."""
    of, many = np.asarray(incoming, np.int64), np.asarray(incoming, np.int64) > MANY
    return {
        "backup_size": mean(np.asarray(sizes, np.int64)),
        "backup_in_degree lowest": float(of.min()),
        "backup_in_degree highest": float(of.max()),
        "backup_in_degree highest / mean": ratio(float(of.max()), mean(of)),
        f"share of nodes with backup_in_degree below {FEW}": mean(of < FEW),
        f"share of nodes with backup_in_degree above {MANY}": mean(many),
        f"share of all backups that are nodes with backup_in_degree above {MANY}": ratio(
            int(of[many].sum()), int(of.sum())
        ),
    }


def backups_by_subscriptions(lists: Sequence[int], sizes: Sequence[int]) -> dict[str, dict[str, float]]:
    """By group: backups per node, and per subscription."""
    long, many = np.array(lists, float), np.array(sizes, float)
    return {
        name: {
            "backup_size": mean(many[group]),
            "backup_size / subscriptions": mean(many[group] / long[group]),
        }
        for name, group in zip(GROUPS, _thirds(long), strict=True)
    }


def backups_along_subscriptions(lists: Sequence[int], sizes: Sequence[int]) -> float:
    """How nearly the sizes of backup sets lie on a rising line over those of lists (Pearson); 0 if all are alike."""
    long, many = np.array(lists, float), np.array(sizes, float)
    return float(np.corrcoef(long, many)[0, 1]) if many.std() and long.std() else 0.0


def view_measures(sizes: Sequence[int]) -> dict[str, float]:
    """Of how many nodes each local view holds (§6.4)."""
    held = np.asarray(sizes, np.int64)
    return {
        "local_view_mean": mean(held),
        "local_view_max": float(held.max()),
        "share of local views of at most 80": mean(held <= 80),
        "share of nodes that know fewer than 5 % of all": mean(held < 0.05 * len(held)),
    }


def degrees_over_time(looks: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Of looks at an overlay, in each of which stand its degree_max and degree_mean: the means of both.

    >>> degrees_over_time([{"degree_max": 4, "degree_mean": 2.0}, {"degree_max": 6, "degree_mean": 3.0}])
    {'degree_max_mean': 5.0, 'degree_mean_mean': 2.5}
    """
    return {
        f"{name}_mean": mean(np.array([look[name] for look in looks]))
        for name in ("degree_max", "degree_mean")
    }


class MendedEvents(NamedTuple):
    """Churn events, and what was sent for each; without gossip and failure detection (§6.8)."""

    joins: BoolArray
    """By event: whether the node came."""
    lists: IntArray
    """By event: how many topics it wants."""
    messages: FloatArray
    """By event: for coordination and new links."""
    label_messages: FloatArray
    """By event: to spread the labels of parts."""


def messages_per_churn(mended: MendedEvents) -> dict[str, Any]:
    """messages_per_event, with labels and without any event nan; for joins and leaves apart, where there are some,
    messages_per_… and label_messages_per_…, each without the other, and messages_by_size_…: subscriptions and
    messages, means of three groups of events from few subscriptions to many.
    """
    told: dict[str, Any] = {"messages_per_event": mean(mended.messages + mended.label_messages)}
    for name, chosen in (("join", mended.joins), ("leave", ~mended.joins)):
        if not chosen.any():
            continue
        messages, lists = mended.messages[chosen], mended.lists[chosen]
        told[f"messages_per_{name}"] = mean(messages)
        told[f"label_messages_per_{name}"] = mean(mended.label_messages[chosen])
        told[f"messages_by_size_{name}"] = [
            (mean(lists[group]), mean(messages[group])) for group in _thirds(lists) if len(group)
        ]
    return told


def _thirds(lists: npt.NDArray[Any]) -> list[npt.NDArray[np.intp]]:
    return np.array_split(np.argsort(lists, kind="stable"), len(GROUPS))
