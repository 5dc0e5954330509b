"""What Rappel builds on, measured without a simulation: interest locality (Fig. 1), filters (§2.2), networks
(Fig. 5), coordinates.
"""

from __future__ import annotations

import random
from typing import ClassVar

import msgspec
import numpy as np
import numpy.typing as npt

from topicweave.blocks.bloom import bloom_of, may_contain
from topicweave.blocks.vivaldi import Vivaldi, place, relative_errors
from topicweave.data.as_network import spread_out
from topicweave.data.networks import NetworkSpec, measured_slices
from topicweave.model.arrays import IndexArray
from topicweave.papers.rappel.workloads import LANDMARKS, FeedGraph, data_set_of, subscriptions_of
from topicweave.runs.run import Result

PERCENTILES = (5, 25, 50, 75, 95)


class InterestLocality(msgspec.Struct, frozen=True, tag="interest-locality", forbid_unknown_fields=True):
    """Fig. 1: how much of a user's subscriptions the best few others cover, chosen greedily."""

    source: FeedGraph
    users: int = 1000
    most_friends: int = 10
    least_feeds: int = 5
    seed: int = 0

    @property
    def data_sets(self) -> tuple[str, ...]:
        return (data_set_of(self.source),)

    def run(self) -> Result:
        feeds, covered = self.coverings()
        shares = covered / feeds[:, None]
        many = feeds > np.median(feeds)
        return {
            "users": len(feeds),
            "feeds_median": float(np.median(feeds)),
            "complete": [float(np.mean(shares[:, friends] == 1.0)) for friends in range(self.most_friends)],
            "covered_mean": [float(np.mean(shares[:, friends])) for friends in range(self.most_friends)],
            "six_few_feeds": float(np.mean(shares[~many, 5])),
            "six_many_feeds": float(np.mean(shares[many, 5])) if many.any() else float("nan"),
        }

    def coverings(self, among: float = 1.0) -> tuple[IndexArray, IndexArray]:
        """For users drawn at random: their feeds, and how many of these the first 1, 2, … friends cover. Friends
        are chosen among a random share of all users.
        """
        workload = subscriptions_of(self.source)
        friends = np.random.default_rng(self.seed).random(workload.nodes) < among
        followers = [workload.subscribers(feed) for feed in range(workload.topics)]
        followers = [some[friends[some]] for some in followers]
        counts = np.diff(workload.offsets)
        eligible = np.flatnonzero(counts >= self.least_feeds).tolist()
        rng = random.Random(f"locality/{self.source}/{self.seed}")
        chosen = rng.sample(eligible, min(self.users, len(eligible)))
        covered = [self._cover(one, workload.interests(one), followers, workload.nodes) for one in chosen]
        return counts[chosen], np.array(covered)

    def _cover(self, user: int, feeds: IndexArray, followers: list[IndexArray], users: int) -> list[int]:
        """How many feeds are covered by the first 1, 2, … friends."""
        open_ = list(feeds)
        total, counts = 0, []
        for _ in range(self.most_friends):
            if open_:
                wanting = np.bincount(np.concatenate([followers[feed] for feed in open_]), minlength=users)
                wanting[user] = 0
                friend = int(wanting.argmax())
                if wanting[friend]:
                    total += int(wanting[friend])
                    open_ = [feed for feed in open_ if friend not in _Set(followers[feed])]
            counts.append(total)
        return counts


class _Set:
    """Membership in a sorted array."""

    def __init__(self, values: IndexArray) -> None:
        self._values = values

    def __contains__(self, value: int) -> bool:
        at = int(np.searchsorted(self._values, value))
        return at < len(self._values) and bool(self._values[at] == value)


class FilterErrors(msgspec.Struct, frozen=True, tag="filter-errors", forbid_unknown_fields=True):
    """§2.2: how often a filter shows a feed that is not in it."""

    sizes: tuple[int, ...] = (50, 100, 200)
    filters: int = 200
    tries: int = 5000
    seed: int = 0

    def run(self) -> Result:
        rng = random.Random(f"bloom/{self.seed}")
        result: Result = {}
        for size in self.sizes:
            wrong = 0
            for _ in range(self.filters):
                bloom = bloom_of(rng.getrandbits(64) for _ in range(size))
                wrong += sum(may_contain(bloom, rng.getrandbits(64)) for _ in range(self.tries))
            result[str(size)] = wrong / (self.filters * self.tries)
        return result


class NetworkCheck(msgspec.Struct, frozen=True, tag="network-check", forbid_unknown_fields=True):
    """Fig. 5: the round trips of a model beside PlanetLab's; and the relative error of coordinates by dimensions."""

    network: NetworkSpec
    hosts: int = 490
    dimensions: tuple[int, ...] = (2, 3, 4, 5, 6, 7)

    def run(self) -> Result:
        rtt = self.network.round_trips(self.hosts)
        apart = np.triu_indices(self.hosts, 1)
        result: Result = {"rtt_ms": np.percentile(rtt[apart], PERCENTILES).tolist()}
        result["errors"] = {
            str(count): np.percentile(
                self._errors(np.array(rtt, np.float64) / 2000.0, count), (50, 90)
            ).tolist()
            for count in self.dimensions
        }
        return result

    def _errors(self, one_way: npt.NDArray[np.float64], dimensions: int) -> npt.NDArray[np.float64]:
        """Landmarks find their places by Vivaldi, everybody else by the landmarks, as nodes do."""
        marks = spread_out(one_way, LANDMARKS, int(np.median(one_way, axis=1).argmin()))
        rng = random.Random(f"landmarks/{self.network.seed}")
        nodes = [Vivaldi(rng, dimensions) for _ in marks]
        for _ in range(40):
            for one, node in enumerate(nodes):
                for other, peer in enumerate(nodes):
                    if one != other:
                        node.update(one_way[marks[one], marks[other]], peer.position, peer.error)
        places = [node.position for node in nodes]
        return relative_errors(np.array([place(places, row[marks]) for row in one_way]), one_way)


class MeasuredRoundTrips(msgspec.Struct, frozen=True, tag="measured-round-trips", forbid_unknown_fields=True):
    """PlanetLab's round trips: medians in time."""

    data_sets: ClassVar[tuple[str, ...]] = ("planetlab",)

    def run(self) -> Result:
        medians = np.median(measured_slices(), axis=0)
        apart = np.triu_indices(len(medians), 1)
        return {"rtt_ms": np.percentile(medians[apart], PERCENTILES).tolist()}
