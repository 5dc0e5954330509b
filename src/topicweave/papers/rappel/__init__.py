"""Rappel (Computer Networks 53, 2009): its figures 1, 5 and 7 to 11 and the filters of §2.2; what it builds
on is here.
"""

from __future__ import annotations

from typing import Any, Literal

from topicweave.data.networks import NetworkSpec
from topicweave.papers.rappel.basics import (
    PERCENTILES,
    FilterErrors,
    InterestLocality,
    MeasuredRoundTrips,
    NetworkCheck,
)
from topicweave.papers.rappel.choices import (
    beta,
    fig6,
    larger,
    newcomers,
    places,
    publisher,
    rejoining,
    returners,
)
from topicweave.papers.rappel.friends import fig9a, fig9b, fig9c, fig10b, fig10c, fig11c, fig11d
from topicweave.papers.rappel.settings import SOURCES
from topicweave.papers.rappel.trees import fig7, fig8a, fig8b, fig10a, fig11a, fig11b
from topicweave.papers.rappel.why import why
from topicweave.papers.study import Plan, Results, Row, Scale, Study
from topicweave.runs.run import Run


def fig1(scale: Scale, seed: int) -> Plan:
    """Interest locality of real subscriptions."""
    users = 100 if scale == "smoke" else 1000
    runs = {source: InterestLocality(source, users, seed=seed) for source in SOURCES}

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for source, result in results.items():
            where = {"workload": source}
            complete = result["complete"]
            rows += [
                Row(where, "users", None, result["users"]),
                *(
                    Row(where, f"completely covered by {friends} best friends", None, complete[friends - 1])
                    for friends in (1, 3)
                ),
            ]
            # The paper's figure is of its own LiveJournal trace of 1.8 million users; ours are other samples.
            paper: float | None = 0.95 if source == "livejournal" else None
            rows.append(Row(where, "completely covered by 6 best friends", paper, complete[5]))
            rows.append(Row(where, "covered by 6 best friends, mean", None, result["covered_mean"][5]))
            rows.append(
                Row(
                    where,
                    "covered by 6, users with many feeds and with few",
                    "does not fall with more feeds",
                    f"{result['six_many_feeds']:.3f}, {result['six_few_feeds']:.3f}",
                )
            )
        return rows

    return Plan(runs, rows_of)


def bloom(scale: Scale, seed: int) -> Plan:
    """False positives of 1,024 bits and three hashes."""
    filters = 100 if scale == "smoke" else 1000

    def rows_of(results: Results) -> list[Row]:
        return [
            Row({"feeds": size}, "false positives", paper, results["bloom"][str(size)])
            for size, paper in ((50, 0.0025), (100, 0.016), (200, 0.087))
        ]

    return Plan({"bloom": FilterErrors(filters=filters, seed=seed)}, rows_of)


def fig5(scale: Scale, seed: int) -> Plan:
    """Round trips of the model beside PlanetLab's, and how well coordinates fit both."""
    hosts = 490 if scale == "smoke" else 1000
    runs: dict[str, Run] = {
        "measured": MeasuredRoundTrips(),
        "planetlab": NetworkCheck(NetworkSpec("planetlab", seed), 490),
        "as": NetworkCheck(NetworkSpec("as", seed), hosts),
        "generated": NetworkCheck(NetworkSpec("generated", seed), hosts),
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        measured = dict(zip(PERCENTILES, results["measured"]["rtt_ms"], strict=True))
        rows.append(Row({"network": "planetlab"}, "round trip, ms, p50", 135.0, measured[50]))
        rows.append(Row({"network": "planetlab"}, "round trip, ms, p95", 325.0, measured[95]))
        for network in ("as", "generated"):
            modelled = dict(zip(PERCENTILES, results[network]["rtt_ms"], strict=True))
            for share in PERCENTILES:
                measure = f"round trip, ms, p{share}, beside PlanetLab's"
                where: dict[str, Any] = {"network": network, "hosts": hosts}
                rows.append(Row(where, measure, measured[share], modelled[share]))
        for network in ("planetlab", "as", "generated"):
            for dimensions, (middle, high) in results[network]["errors"].items():
                where = {"network": network, "dimensions": int(dimensions)}
                rows.append(Row(where, "relative error of coordinates, p50", None, middle))
                rows.append(Row(where, "relative error of coordinates, p90", None, high))
        return rows

    return Plan(runs, rows_of)


def _study(name: str, title: str, section: str, plan: Any) -> Study:
    scales: tuple[Scale, ...] = ("smoke", "tenth", "paper")
    source = f"Rappel (2009) {section}"
    level: Literal["messages", "data"] = "data" if name in ("fig1", "bloom", "fig5", "why") else "messages"
    return Study(f"rappel/{name}", title, source, plan, scales, level)


STUDIES = [
    _study("fig1", "Interest locality: feeds covered by the best friends", "§1, figure 1", fig1),
    _study("bloom", "False positives of subscription filters", "§2.2", bloom),
    _study("fig5", "Round trips of the network model beside PlanetLab's", "§6.1.1, figure 5", fig5),
    _study(
        "fig7",
        "Update latency and stretch while half of the network fails and returns",
        "§6.2.2, figure 7",
        fig7,
    ),
    _study("fig8a", "Stretch against distance", "§6.2.2, figure 8a", fig8a),
    _study("fig8b", "Updates under continuous churn", "§6.2.3, figure 8b", fig8b),
    _study("fig9a", "Feeds covered by friends", "§6.3, figure 9a", fig9a),
    _study("fig9b", "Coverage by the parts of the utility", "§6.3, figure 9b", fig9b),
    _study("fig9c", "Neighbour overlap by the parts of the utility", "§6.3, figure 9c", fig9c),
    _study("fig10a", "One update, beside Scribe", "§6.4, figure 10a", fig10a),
    _study("fig10b", "Data traffic and subscriptions, Scribe", "§6.4, figure 10b", fig10b),
    _study("fig10c", "Data traffic and subscriptions, Rappel", "§6.4, figure 10c", fig10c),
    _study("fig11a", "Periodic rejoins by height", "§6.5, figure 11a", fig11a),
    _study("fig11b", "Control traffic next to the publisher", "§6.5, figure 11b", fig11b),
    _study("fig11c", "Control traffic by network size", "§6.5, figure 11c", fig11c),
    _study("fig11d", "Control traffic and subscriptions", "§6.5, figure 11d", fig11d),
    _study("fig6", "The tree of 25 subscribers follows distance", "§6.2.1, figure 6", fig6),
    _study("beta", "Children per tree", "§6.2.3", beta),
    _study("rejoining", "How often nodes rejoin", "§4.3", rejoining),
    _study("places", "Dimensions and landmarks of coordinates", "§6.1.4", places),
    _study("publisher", "The publisher's control traffic by its subscribers", "figure 11", publisher),
    _study("newcomers", "A new node's friends", "§5.2", newcomers),
    _study("returners", "Friends of an earlier session", "§5.3", returners),
    _study(
        "why", "Friends, Scribe's tables and churn, one thing changed at a time", "§1, §6.2.3 to §6.4", why
    ),
    _study("friends", "Six friends in larger networks", "§3.1.1", larger),
]
