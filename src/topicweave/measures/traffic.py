"""Measures of event traffic: who received what it wanted, and what it did not.

All are defined over counts. Counts come from a run's tables (`Receptions.traffic`) or from an engine that
spreads events as arrays and counts as it goes (`topicweave.bulk`), so every world's numbers mean the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from topicweave.measures.columns import mean, ratio
from topicweave.model.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class Traffic:
    """Receptions of events, counted. A publisher's own event is no reception; one that comes back to it is a
    repetition.
    """

    first_wanted: IntArray
    """By node: first receptions of events that it wanted."""
    first_unwanted: IntArray
    all_wanted: IntArray
    """By node: the same with repetitions."""
    all_unwanted: IntArray
    hops: IntArray
    """How many wanted first receptions came over 0, 1, 2, … links."""
    relays: int
    """Pairs of a topic and a node, other than its publishers, that was handed an event of it without wanting it."""
    topics: int
    """Topics with at least one event."""


def noise(traffic: Traffic) -> float:
    """The share of first receptions that the receiver did not want, over all nodes together."""
    unwanted = int(traffic.first_unwanted.sum())
    return ratio(unwanted, int(traffic.first_wanted.sum()) + unwanted)


def noise_all(traffic: Traffic) -> float:
    """The share of all receptions, repetitions included, that the receiver did not want."""
    unwanted = int(traffic.all_unwanted.sum())
    return ratio(unwanted, int(traffic.all_wanted.sum()) + unwanted)


def noise_by_node(traffic: Traffic, repetitions: bool = False) -> FloatArray:
    """`noise` (with repetitions: `noise_all`) of each node; nan where there is no reception."""
    wanted = traffic.all_wanted if repetitions else traffic.first_wanted
    unwanted = traffic.all_unwanted if repetitions else traffic.first_unwanted
    received = wanted + unwanted
    shares: FloatArray = np.full(len(received), np.nan)
    np.divide(unwanted, received, out=shares, where=received > 0)
    return shares


def noise_node_mean(traffic: Traffic, repetitions: bool = False) -> float:
    """`noise_by_node`, averaged over the nodes that received anything."""
    shares = noise_by_node(traffic, repetitions)
    return mean(shares[~np.isnan(shares)])


def duplicates(traffic: Traffic) -> float:
    """Repeated receptions (at anybody, wanted or not) per wanted first reception."""
    deliveries = int(traffic.first_wanted.sum())
    first = deliveries + int(traffic.first_unwanted.sum())
    return ratio(int(traffic.all_wanted.sum()) + int(traffic.all_unwanted.sum()) - first, deliveries)


def relays_per_topic(traffic: Traffic) -> float:
    """Distinct nodes, other than its publishers, that were handed an event of a topic without wanting it.

    Mean over the topics with at least one event.
    """
    return ratio(traffic.relays, traffic.topics)


def hops_measures(traffic: Traffic) -> dict[str, float]:
    """hops_mean and hops_max: links crossed until each wanted first reception."""
    crossed = np.flatnonzero(traffic.hops)
    return {
        "hops_mean": ratio(int((crossed * traffic.hops[crossed]).sum()), int(traffic.hops.sum())),
        "hops_max": float(crossed[-1]) if len(crossed) else float("nan"),
    }


def traffic_measures(traffic: Traffic) -> dict[str, float]:
    """All of the above."""
    return {
        "noise": noise(traffic),
        "noise_node_mean": noise_node_mean(traffic),
        "noise_all": noise_all(traffic),
        "noise_all_node_mean": noise_node_mean(traffic, repetitions=True),
        "duplicates": duplicates(traffic),
        "relays_per_topic": relays_per_topic(traffic),
        **hops_measures(traffic),
    }
