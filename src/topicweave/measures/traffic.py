"""Measures of event traffic: who received what it wanted, and what it did not.

All are defined over counts. Counts come from a run's tables (`Receptions.traffic`), from an engine that spreads
events as arrays and counts as it goes (`topicweave.bulk`), or from the tasks of Spark (`topicweave.pipeline`), so
every world's numbers mean the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

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

    @property
    def sums(self) -> TrafficSums:
        wanted, relayed, all_wanted, unwanted = (
            int(counts.sum())
            for counts in (self.first_wanted, self.first_unwanted, self.all_wanted, self.all_unwanted)
        )
        crossed = np.flatnonzero(self.hops)
        return TrafficSums(
            receptions=all_wanted + unwanted,
            unwanted=unwanted,
            firsts=wanted + relayed,
            relayed=relayed,
            hops=int((crossed * self.hops[crossed]).sum()),
            hops_max=int(crossed.max(initial=0)),
            relays=self.relays,
            topics=self.topics,
        )


class TrafficSums(NamedTuple):
    """Receptions of all nodes together. Tasks that each hold a part add theirs up."""

    receptions: int
    """With repetitions."""
    unwanted: int
    """Of these: at nodes that did not want the event."""
    firsts: int
    relayed: int
    """Of these: at nodes that did not want the event."""
    hops: int
    """Links crossed until wanted first receptions."""
    hops_max: int
    relays: int
    """As in `Traffic`; so are topics."""
    topics: int

    @property
    def deliveries(self) -> int:
        """First receptions that were wanted."""
        return self.firsts - self.relayed

    @property
    def noise(self) -> float:
        """The share of first receptions that the receiver did not want, over all nodes together."""
        return ratio(self.relayed, self.firsts)

    @property
    def noise_all(self) -> float:
        """The share of all receptions, repetitions included, that the receiver did not want."""
        return ratio(self.unwanted, self.receptions)

    @property
    def duplicates(self) -> float:
        """Repeated receptions (at anybody, wanted or not) per wanted first reception."""
        return ratio(self.receptions - self.firsts, self.deliveries)

    @property
    def relays_per_topic(self) -> float:
        """Distinct nodes, other than its publishers, that were handed an event of a topic without wanting it.

        Mean over the topics with at least one event.
        """
        return ratio(self.relays, self.topics)

    @property
    def hops_measures(self) -> dict[str, float]:
        """hops_mean and hops_max: links crossed until each wanted first reception."""
        return {
            "hops_mean": ratio(self.hops, self.deliveries),
            "hops_max": float(self.hops_max) if self.deliveries else math.nan,
        }

    def measures(self, node_mean: float, node_mean_all: float) -> dict[str, float]:
        """All of the above; given `noise_node_mean`, without repetitions and with them."""
        return {
            "noise": self.noise,
            "noise_node_mean": node_mean,
            "noise_all": self.noise_all,
            "noise_all_node_mean": node_mean_all,
            "duplicates": self.duplicates,
            "relays_per_topic": self.relays_per_topic,
            **self.hops_measures,
        }


def unwanted_shares(unwanted: IntArray, received: IntArray) -> FloatArray:
    """Of each node's receptions those that it did not want; nan where there is no reception."""
    shares: FloatArray = np.full(len(received), np.nan)
    np.divide(unwanted, received, out=shares, where=received > 0)
    return shares


def noise_by_node(traffic: Traffic, repetitions: bool = False) -> FloatArray:
    """Each node's own noise (with repetitions: noise_all); nan where there is no reception."""
    wanted = traffic.all_wanted if repetitions else traffic.first_wanted
    unwanted = traffic.all_unwanted if repetitions else traffic.first_unwanted
    return unwanted_shares(unwanted, wanted + unwanted)


def noise_node_mean(traffic: Traffic, repetitions: bool = False) -> float:
    """`noise_by_node`, averaged over the nodes that received anything."""
    shares = noise_by_node(traffic, repetitions)
    return mean(shares[~np.isnan(shares)])


def traffic_measures(traffic: Traffic) -> dict[str, float]:
    """See `TrafficSums.measures`."""
    return traffic.sums.measures(noise_node_mean(traffic), noise_node_mean(traffic, repetitions=True))
