"""The runs that Rappel's studies share: networks, workloads, durations, by scale.

At smoke scale the network and the subscriptions are generated and small; at a tenth and at paper scale they
are real data. Void updates are off, as in the paper's runs. Runs are shared between figures: one that a study
has done is not done again for another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from topicweave.data.networks import NetworkSpec
from topicweave.papers.rappel.feeds import ContinuousChurn, Feeds
from topicweave.papers.rappel.workloads import (
    CommunityFeeds,
    FeedGraph,
    FeedSample,
    FeedsWorkload,
    SingleFeed,
)
from topicweave.papers.study import Row, Scale
from topicweave.runs.run import Result

T = TypeVar("T")

HOUR = 3600.0
SOURCES: tuple[FeedGraph, ...] = ("livejournal", "twitter", "github")


def sized(scale: Scale, smoke: T, tenth: T, paper: T) -> T:
    return {"smoke": smoke, "tenth": tenth, "paper": paper}[scale]


def model(scale: Scale, seed: int, fluctuates: bool = True) -> NetworkSpec:
    """The AS model."""
    real = scale != "smoke"
    return NetworkSpec("as" if real else "generated", seed, fluctuates and real)


def networks(scale: Scale, seed: int) -> dict[str, NetworkSpec]:
    """The AS model, and the measured matrix where there is real data."""
    found = {"as": model(scale, seed)}
    if scale != "smoke":
        found["planetlab"] = NetworkSpec("planetlab", seed)
    return found


def no_noise(where: Mapping[str, Any], result: Result) -> Row:
    return Row(where, "noise (receptions)", 0, result["noise"])


def one_feed(scale: Scale) -> SingleFeed:
    return SingleFeed(sized(scale, 200, 500, 5000))


def static_run(scale: Scale, network: NetworkSpec, seed: int) -> Feeds:
    """The run that figures 8a and 8b share with the benchmark."""
    return Feeds(
        workload=one_feed(scale),
        seed=seed,
        network=network,
        duration=sized(scale, 2400.0, 4 * HOUR, 4 * HOUR),
        window=sized(scale, 60.0, 300.0, 600.0),
    )


def churned_run(scale: Scale, seed: int) -> Feeds:
    churn = ContinuousChurn(sized(scale, 2.0, 3.0, 30.0))
    return msgspec.structs.replace(static_run(scale, model(scale, seed), seed), churn=churn, control=True)


def samples(scale: Scale, seed: int) -> dict[str, FeedsWorkload]:
    """Several feeds, real ones where there is data."""
    if scale == "smoke":
        return {"communities": CommunityFeeds(seed=seed)}
    subscribers, feeds = sized(scale, (0, 0), (560, 40), (5582, 100))
    return {source: FeedSample(source, subscribers, feeds, seed) for source in SOURCES}


def main_source(scale: Scale) -> str:
    """Where one workload must do: the one whose subscribers want the most feeds, as the paper's do."""
    return sized(scale, "communities", "twitter", "twitter")


def multi(scale: Scale, seed: int, source: str, **parameters: Any) -> Feeds:
    """Static distances, as in §6.4, so that Scribe can be set beside it; one update of every feed at the end."""
    return Feeds(
        parameters=parameters,
        workload=samples(scale, seed)[source],
        seed=seed,
        network=model(scale, seed, fluctuates=False),
        duration=sized(scale, 900.0, HOUR, HOUR),
        window=sized(scale, 60.0, 300.0, 300.0),
        update_every=0.0,
        last_update_of_all=True,
        control=True,
        series_every=sized(scale, 300.0, 600.0, 300.0),
    )


def multi_scribe(scale: Scale, seed: int, source: str) -> Feeds:
    return Feeds(
        system="scribe",
        workload=samples(scale, seed)[source],
        seed=seed,
        network=model(scale, seed, fluctuates=False),
        duration=90.0,
        window=1.0,
        update_every=0.0,
        last_update_of_all=True,
    )


def sizes(scale: Scale) -> tuple[int, int]:
    return sized(scale, (100, 200), (500, 1000), (5000, 10_000))


def counted(scale: Scale, seed: int, subscribers: int) -> Feeds:
    """One feed, no updates, control messages counted."""
    return Feeds(
        workload=SingleFeed(subscribers),
        seed=seed,
        network=model(scale, seed),
        duration=sized(scale, 1800.0, HOUR, HOUR),
        window=sized(scale, 60.0, 300.0, 600.0),
        update_every=0.0,
        control=True,
    )
