"""Rappel, figures of the trees: 7, 8, 10a, 11a, 11b.

Latencies are one way. `as` is the AS model, `planetlab` the measured matrix.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from topicweave.papers.rappel.feeds import Failure, Feeds
from topicweave.papers.rappel.settings import (
    HOUR,
    churned_run,
    counted,
    model,
    networks,
    no_noise,
    one_feed,
    sized,
    sizes,
    static_run,
)
from topicweave.papers.rappel.workloads import SingleFeed
from topicweave.papers.study import Plan, Results, Row, Scale
from topicweave.runs.run import Result


def half_fails(scale: Scale) -> Failure:
    return Failure(0.5, 1200.0, 1800.0) if scale == "smoke" else Failure(0.5, 2 * HOUR, 3 * HOUR)


def between(updates: Sequence[Result], start: float, end: float) -> list[Result]:
    return [update for update in updates if start <= update["time"] < end]


def middle(values: Sequence[float]) -> float:
    known = sorted(value for value in values if not math.isnan(value))
    return known[len(known) // 2] if known else math.nan


def fig7(scale: Scale, seed: int) -> Plan:
    """One feed; half of the subscribers fail at once, and return."""
    subscribers = sized(scale, 60, 100, 250)
    found = networks(scale, seed)
    runs = {
        kind: Feeds(
            workload=SingleFeed(subscribers),
            seed=seed,
            network=network,
            duration=sized(scale, 3000.0, 4 * HOUR, 4 * HOUR),
            window=sized(scale, 60.0, 300.0, 300.0),
            failure=half_fails(scale),
        )
        for kind, network in found.items()
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        failure = half_fails(scale)
        for kind, result in results.items():
            updates = result["updates"]
            where: dict[str, Any] = {"network": kind, "nodes": subscribers}
            steady = between(updates, failure.start / 2, failure.start)
            late = middle([one["latency_p95"] for one in steady])
            rows += [no_noise(where, result), *_at_rest(where, steady)]
            error = result["coordinates"]["relative_error_p50"]
            rows.append(Row(where, "relative error of coordinates, p50", None, error))
            for what, moment, until in (
                ("failure", failure.start, failure.end),
                ("return", failure.end, math.inf),
            ):
                rows += _after({**where, "after": what}, updates, moment, until, late)
                if scale != "smoke":
                    calm = all(_calm(one, late) for one in between(updates, moment + 1200.0, until))
                    rows.append(Row({**where, "after": what}, "calm ever after 1200 s", None, str(calm)))
            served = between(updates, failure.end + 300.0, math.inf)
            rows.append(
                Row(
                    where,
                    "subscribers that got each update from 5 min after the return on",
                    f"all {subscribers}",
                    min((one["reached"] for one in served), default=0),
                )
            )
        return rows

    return Plan(runs, rows_of)


def _at_rest(where: dict[str, Any], steady: Sequence[Result]) -> list[Row]:
    """Latency and stretch before anybody fails, by network: the paper prints latency on one, stretch on the other."""
    half, late, stretch = (
        middle([one[measure] for one in steady]) for measure in ("latency_p50", "latency_p95", "stretch_p50")
    )
    latency = "latency (one way), {} of the subscribers, s"
    rows = [
        Row(where, latency.format("half"), "about 0.1", half),
        Row(where, latency.format("95%"), "within 0.5", late),
        Row(where, "measured stretch, p50", "2 to 4", stretch),
    ]
    for share, paper in (("p50", 1.15), ("p95", 1.25)):
        measured = middle([one[f"coordinate_stretch_{share}"] for one in steady])
        rows.append(Row(where, f"coordinate stretch, {share}", paper, measured))
    return rows


def _after(
    where: dict[str, Any], updates: Sequence[Result], moment: float, until: float, late: float
) -> list[Row]:
    """How latency rises when half fail or return at a moment, and when it has fallen again."""
    after = between(updates, moment, until)
    spike = max((one["latency_p95"] for one in after[:20]), default=math.nan)
    median = middle([one["latency_p50"] for one in after[:20]])
    faded = next((one["time"] - moment for one in after if _calm(one, late)), math.inf)
    return [
        Row(where, "worst p95 latency in 20 updates, s", None, spike),
        Row(where, "latency (one way), half of the subscribers, s", None, median),
        Row(where, "first calm update after, s", "two rejoin periods (1200 s)", faded),
    ]


def _calm(update: Result, steady: float) -> bool:
    return bool(update["latency_p95"] <= max(2 * steady, 0.5))


def fig8a(scale: Scale, seed: int) -> Plan:
    """Stretch against distance."""
    runs = {kind: static_run(scale, network, seed) for kind, network in networks(scale, seed).items()}

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for kind, result in results.items():
            parts = result["final"]["by_distance"]
            where: dict[str, Any] = {"network": kind, "nodes": one_feed(scale).subscribers}
            rows.append(no_noise(where, result))
            rows += [
                Row(
                    {**where, "tenth by distance": number},
                    "coordinate stretch, p50",
                    None,
                    part["stretch_p50"],
                )
                for number, part in enumerate(parts, start=1)
            ]
            near, far = parts[0]["stretch_p50"], parts[-1]["stretch_p50"]
            rows.append(
                Row(
                    where,
                    "coordinate stretch, nearest and farthest tenth",
                    "the farthest have low stretch",
                    f"{near:.2f}, {far:.2f}",
                )
            )
            final = result["final"]
            rows.append(Row(where, "height of the tree, mean", None, final["height_mean"]))
            rows.append(Row(where, "height of the tree, max", None, final["height_max"]))
            last = result["updates"][-1]
            rows.append(Row(where, "latency (one way), p50, s", None, last["latency_p50"]))
            rows.append(Row(where, "latency (one way), p95, s", None, last["latency_p95"]))
        return rows

    return Plan(runs, rows_of)


def fig8b(scale: Scale, seed: int) -> Plan:
    """Updates at ten observers while all others come and go, beside a static network."""
    runs = {
        "static": static_run(scale, model(scale, seed), seed),
        "churned": churned_run(scale, seed),
    }

    def rows_of(results: Results) -> list[Row]:
        static, churned = results["static"]["observed"], results["churned"]["observed"]
        where: dict[str, Any] = {"network": "as", "nodes": one_feed(scale).subscribers}
        more = churned["latency_p50"] - static["latency_p50"]
        return [
            no_noise({**where, "churn": "continuous"}, results["churned"]),
            Row(where, "updates at observers", 2200, churned["count"]),
            Row(where, "of these pulled", None, churned["pulled"]),
            Row(where, "updates that observers never got", "none", churned["missing"]),
            Row(where, "updates within 1 s", 0.85, churned["within_1s"]),
            Row(where, "median later than in the static network by, s", 0.2, more),
            Row(where, "latest update, s", "about 45", churned["max"]),
            Row(where, "latency, static, p50, s", None, static["latency_p50"]),
            *(
                Row({**where, "churn": name}, measure, None, told[key])
                for name, told in (("none", static), ("continuous", churned))
                for measure, key in (
                    ("subscribers up, mean", "up"),
                    ("height of observers in the tree", "height"),
                )
            ),
            Row(where, "latency, churned, p95, s", None, churned["latency_p95"]),
        ]

    return Plan(runs, rows_of)


def fig10a(scale: Scale, seed: int) -> Plan:
    """One update to some subscribers, alone and among many who want nothing, beside Scribe."""
    subscribers, others = sized(scale, (60, 200), (50, 450), (500, 4500))
    network = model(scale, seed, fluctuates=False)
    systems: tuple[Literal["rappel", "scribe"], ...] = ("rappel", "scribe")
    settle = {"rappel": 1800.0, "scribe": 60.0}
    runs = {
        (system, extra): Feeds(
            system=system,
            workload=SingleFeed(subscribers, extra),
            seed=seed,
            network=network,
            duration=settle[system],
            window=60.0 if system == "rappel" else 1.0,
            update_every=0.0,
            last_update_of_all=True,
        )
        for system in systems
        for extra in (0, others)
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for (system, extra), result in results.items():
            where: dict[str, Any] = {"system": system, "subscribers": subscribers, "others": extra}
            update = result["updates"][-1]
            rows.append(Row(where, "subscribers reached", f"all {subscribers}", update["reached"]))
            rows.append(Row(where, "latency (one way), p50, s", None, update["latency_p50"]))
            rows.append(Row(where, "latency (one way), p95, s", None, update["latency_p95"]))
            rows.append(
                Row(
                    where,
                    "most copies sent by one node",
                    5 if system == "rappel" else None,
                    result["sends_max"],
                )
            )
            busiest = result["sent_by_busiest"]
            rows.append(Row(where, "share of copies that the busiest tenth sends", None, busiest))
            if system == "rappel":
                rows.append(no_noise(where, result))
            elif extra:
                rows.append(
                    Row(
                        where,
                        "carriers that do not subscribe",
                        "some (paper: 40 for 464 subscribers)",
                        result["carriers_unwanted"],
                    )
                )
        for extra in (0, others):
            ours, theirs = (
                results[system, extra]["updates"][-1]["latency_p50"] for system in ("rappel", "scribe")
            )
            rows.append(
                Row(
                    {"others": extra},
                    "latency p50, Rappel and Scribe, s",
                    "low, but Scribe is faster",
                    f"{ours:.3f}, {theirs:.3f}",
                )
            )
        return rows

    return Plan(runs, rows_of)


def fig11a(scale: Scale, seed: int) -> Plan:
    """Periodic rejoin requests by height in the tree."""
    small, large = sizes(scale)
    runs = {size: counted(scale, seed, size) for size in (small, large)}

    def rows_of(results: Results) -> list[Row]:
        rows = []
        top: dict[int, float] = {}
        for size, result in results.items():
            levels = [level for level in result["control"]["rejoins_by_height"] if level["nodes"] >= 3]
            for level in levels:
                where = {"nodes": size, "height": level["height"]}
                rows += [
                    Row(where, "rejoin requests per node and minute", None, level["per_minute"]),
                    Row(where, "nodes at this height", None, level["nodes"]),
                ]
            rates = [level["per_minute"] for level in levels]
            top[size] = max(rates, default=math.nan)
            half = len(rates) // 2
            rows.append(
                Row(
                    {"nodes": size},
                    "rejoin requests: upper half of the tree, lower half",
                    "fall with height",
                    f"{sum(rates[:half]):.3f}, {sum(rates[half:]):.3f}",
                )
            )
        rows.append(
            Row(
                {"nodes": f"{small}, {large}"},
                "most rejoin requests per node and minute",
                "alike",
                f"{top[small]:.3f}, {top[large]:.3f}",
            )
        )
        return rows

    return Plan(runs, rows_of)


def fig11b(scale: Scale, seed: int) -> Plan:
    """Control traffic of subscribers next to the publisher, under churn, by kind."""
    runs = {"churned": churned_run(scale, seed)}

    def rows_of(results: Results) -> list[Row]:
        control = results["churned"]["control"]
        where: dict[str, Any] = {"nodes": one_feed(scale).subscribers, "churn": "continuous"}
        rows = [
            Row(
                {**where, "height": level["height"]},
                "control messages per second, p50",
                "mostly under 2" if level["height"] == 1 else None,
                level["rate"],
            )
            for level in control["rate_by_height"][:4]
        ]
        rows += [
            Row({**where, "kind": kind}, "messages sent per node and second", None, rate)
            for kind, rate in control["kinds"].items()
        ]
        rows.append(Row(where, "bytes per message", 50, control["bytes_per_message"]))
        return rows

    return Plan(runs, rows_of)
