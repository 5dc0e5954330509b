"""What Rappel tells without a figure: children per tree (§6.2.3), rejoins (§4.3), bootstrap (§5), its tree on
a map (Fig. 6), and how the publisher's load grows.

One feed each, or a small sample of feeds; sizes are ours where the paper gives none.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median
from typing import Any, Literal

import msgspec

from topicweave.data.networks import NetworkSpec
from topicweave.papers.rappel.feeds import ContinuousChurn, Failure, Feeds
from topicweave.papers.rappel.settings import (
    HOUR,
    counted,
    main_source,
    model,
    multi,
    networks,
    samples,
    sized,
)
from topicweave.papers.rappel.trees import between, middle
from topicweave.papers.rappel.workloads import FeedSample, SingleFeed
from topicweave.papers.study import Plan, Results, Row, Scale
from topicweave.runs.run import Result, Run

BETAS = (2, 3, 5, 8, 12)
PERIODS = (150.0, 300.0, 600.0, 1200.0, 2400.0)
JOINING = ("ra-join", "ra-join-ok", "ra-join-forward", "ra-join-deny", "ra-change-parent", "ra-left")
"""The messages that a node sends, and gets, when it looks for a parent."""
STAGGERED = 12
"""After so many joins the paper's new node takes no more care (§5.2)."""
ENOUGH_FEEDS = 6
"""Fewer feeds are covered after a few joins whoever the friends are."""


def _small_feed(scale: Scale, seed: int, network: NetworkSpec, **changes: Any) -> Feeds:
    usual: dict[str, Any] = {
        "workload": SingleFeed(sized(scale, 60, 100, 250)),
        "duration": sized(scale, 1500.0, HOUR, 2 * HOUR),
        "window": sized(scale, 60.0, 120.0, 300.0),
    }
    return Feeds(seed=seed, network=network, **(usual | changes))


def _middles(where: dict[str, Any], result: Result, duration: float, measures: Sequence[str]) -> list[Row]:
    """Medians over the updates of the second half, when all is quiet."""
    steady = between(result["updates"], duration / 2, duration)
    return [Row(where, name, None, middle([one[name] for one in steady])) for name in measures]


def beta(scale: Scale, seed: int) -> Plan:
    """How many children a node may have, under churn."""
    runs = {
        most: _small_feed(
            *(scale, seed, model(scale, seed)),
            parameters={"beta": most},
            churn=ContinuousChurn(sized(scale, 1.0, 1.0, 1.5)) if scale != "smoke" else None,
        )
        for most in BETAS
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for most, result in results.items():
            where: dict[str, Any] = {"beta": most}
            rows += _middles(
                where, result, runs[most].duration, ("latency_p50", "latency_p95", "stretch_p50")
            )
            rows.append(Row(where, "height of the tree, mean", None, result["final"]["height_mean"]))
        return rows

    return Plan(runs, rows_of)


def rejoining(scale: Scale, seed: int) -> Plan:
    """How often nodes look for a better parent: what the tree gains, and what it costs; at rest, and under as
    much churn as in figure 8b.
    """
    churn = ContinuousChurn(1.5) if scale == "paper" else None
    runs = {
        (period, told): _small_feed(
            *(scale, seed, model(scale, seed)),
            parameters={"rejoin_period": period},
            control=True,
            churn=coming,
        )
        for told, coming in (("", None), ("continuous", churn))
        for period in PERIODS
        if not told or coming
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for (period, told), result in results.items():
            where: dict[str, Any] = {"rejoin_period": period} | ({"churn": told} if told else {})
            rows += _middles(
                where, result, runs[period, told].duration, ("coordinate_stretch_p50", "latency_p50")
            )
            control = result["control"]
            rows.append(Row(where, "control messages per second, p50", None, control["messages"]["rate_p50"]))
            joins = sum(rate for kind, rate in control["kinds"].items() if kind in JOINING)
            rows.append(Row(where, "messages of joins per node and second", None, joins))
        return rows

    return Plan(runs, rows_of)


def places(scale: Scale, seed: int) -> Plan:
    """Dimensions of coordinates, and landmarks that are spread out or drawn at random (figure 7 at rest)."""
    ways: tuple[Literal["spread", "random"], ...] = ("spread", "random")
    runs = {
        (kind, dimensions, way): _small_feed(
            *(scale, seed, msgspec.structs.replace(network, landmarks=way)),
            parameters={"dimensions": dimensions},
            duration=sized(scale, 900.0, 1800.0, HOUR),
        )
        for kind, network in networks(scale, seed).items()
        for dimensions in (2, 3, 5)
        for way in ways
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for (kind, dimensions, way), result in results.items():
            where = {"network": kind, "dimensions": dimensions, "landmarks": way}
            rows += _middles(
                where,
                result,
                runs[kind, dimensions, way].duration,
                ("coordinate_stretch_p50", "coordinate_stretch_p95", "stretch_p50"),
            )
            error = result["coordinates"]["relative_error_p50"]
            rows.append(Row(where, "relative error of coordinates, p50", None, error))
        return rows

    return Plan(runs, rows_of)


def fig6(scale: Scale, seed: int) -> Plan:
    """The tree of 25 subscribers, three children each: how near parents are."""
    runs = {
        (kind, number): _small_feed(
            *(scale, 10 * seed + number, network),
            workload=SingleFeed(25),
            parameters={"beta": 3},
            duration=sized(scale, 1200.0, HOUR, HOUR),
        )
        for number in range(sized(scale, 1, 3, 3))
        for kind, network in networks(scale, 10 * seed + number).items()
    }

    def rows_of(results: Results) -> list[Row]:
        return [
            Row(
                {"network": kind, "sample": number},
                "distance to the parent / between subscribers",
                None,
                result["final"]["parent_distance"],
            )
            for (kind, number), result in results.items()
        ]

    return Plan(runs, rows_of)


def publisher(scale: Scale, seed: int) -> Plan:
    """Control messages of the publisher of a single feed, by its subscribers."""
    counts = sized(scale, (25, 50, 100), (62, 125, 250), (125, 250, 500, 1000, 2000))
    runs = {count: counted(scale, seed, count) for count in counts}

    def rows_of(results: Results) -> list[Row]:
        measures = {
            "the publisher's control messages per second": "publisher",
            "rejoin requests at the publisher per minute": "publisher_rejoins",
        }
        return [
            Row({"nodes": count}, measure, None, result["control"][key])
            for count, result in results.items()
            for measure, key in measures.items()
        ]

    return Plan(runs, rows_of)


def _coming(scale: Scale, seed: int, share: float, returning: float, keeps_memory: bool) -> Feeds:
    """Some nodes of a small sample go and come back when all is quiet."""
    source = main_source(scale)
    start, away, follow = sized(scale, (600.0, 120.0, 300.0), *(((1800.0, 600.0, 600.0),) * 2))
    workload = samples("smoke", seed)[source] if scale == "smoke" else FeedSample("twitter", 560, 40, seed)
    return Feeds(
        workload=workload,
        seed=seed,
        network=model(scale, seed, fluctuates=False),
        duration=start + away + follow + 10.0,
        window=sized(scale, 60.0, 300.0, 300.0),
        update_every=0.0,
        failure=Failure(share, start, start + away, returning, keeps_memory),
        follow=follow,
    )


def newcomers(scale: Scale, seed: int) -> Plan:
    """A tenth of the nodes comes anew: how many trees they have joined when their friends cover what they
    will cover.
    """
    runs: dict[str, Run] = {"new": _coming(scale, seed, 0.1, 1.0, keeps_memory=False)}

    def rows_of(results: Results) -> list[Row]:
        joined, shares = [], []
        for one in results["new"]["followed"]:
            looks = one["looks"]
            if one["feeds"] < ENOUGH_FEEDS or not looks or not looks[-1][1]:
                continue
            good = next(trees for _, covered, trees in looks if covered >= 0.9 * looks[-1][1])
            joined.append(good)
            shares.append(looks[-1][1] / one["feeds"])
        where = {"feeds": f"{ENOUGH_FEEDS} or more"}
        if not joined:
            return []
        return [
            Row(
                where,
                "trees joined when friends cover nine tenths of their last, median",
                None,
                median(joined),
            ),
            Row(
                where,
                "share with such friends after 12 trees",
                None,
                fmean(float(trees <= STAGGERED) for trees in joined),
            ),
            Row(where, "share covered in the end, mean", None, fmean(shares)),
            Row(where, "newcomers", None, len(joined)),
        ]

    return Plan(runs, rows_of)


def returners(scale: Scale, seed: int) -> Plan:
    """Most nodes go, a few come back with their old friends in mind: what they cover a minute later, by how
    many of these live.
    """
    runs: dict[str, Run] = {"back": _coming(scale, seed, 0.8, 0.25, keeps_memory=True)}

    def rows_of(results: Results) -> list[Row]:
        by_living: dict[str, list[float]] = {}
        for one in results["back"]["followed"]:
            if one["before"] and len(one["looks"]) > 12:
                living = "none" if not one["living"] else "one" if one["living"] == 1 else "more"
                last = max(1, one["looks"][-1][1])
                by_living.setdefault(living, []).append(one["looks"][12][1] / last)
        return [
            Row({"living friends": living}, measure, None, value)
            for living, shares in sorted(by_living.items())
            for measure, value in (
                ("covered after a minute / in the end, mean", fmean(shares)),
                ("nodes", float(len(shares))),
            )
        ]

    return Plan(runs, rows_of)


def larger(scale: Scale, seed: int) -> Plan:
    """Six friends in larger and larger networks."""
    counts = sized(scale, (60, 120), (280, 560), (560, 2000, 5582, 10_000))
    base = multi(scale, seed, main_source(scale))
    runs = {
        count: msgspec.structs.replace(
            base, workload=msgspec.structs.replace(base.workload, subscribers=count)
        )
        for count in counts
    }

    def rows_of(results: Results) -> list[Row]:
        return [
            Row({"subscribers": count}, "covered share, mean", None, result["friends"]["share_mean"])
            for count, result in results.items()
        ]

    return Plan(runs, rows_of)
