"""Why Rappel's figures come out as they do.

Figure 1 with fewer users to choose friends among, and by how many feeds a user wants; friends, Scribe and churn in
networks of a tenth of the paper's size, with one thing changed at a time.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from topicweave.papers.rappel.feeds import ContinuousChurn, Feeds
from topicweave.papers.rappel.locality import LocalityWithin
from topicweave.papers.rappel.settings import HOUR, main_source, model, multi, multi_scribe, sized
from topicweave.papers.rappel.workloads import SingleFeed
from topicweave.papers.study import Plan, Results, Row, Scale
from topicweave.runs.run import Result, Run

SHARES = (0.125, 0.25, 0.5, 1.0)
GROUPS = ((5, 10), (11, 20), (21, 40), (41, 10**6))
MANY = 9
"""Feeds, from which on the paper tells of how many are covered at least."""
PER_NODE = 30.0 / 5000.0
"""Joins per minute and node in figure 8b."""
UP = 0.6
"""About the share of nodes that are up under such churn."""


def why(scale: Scale, seed: int) -> Plan:
    """Figure 1 by parts; friends over time and with one choice changed; Scribe's tables; churn and chance."""
    parts = (_locality, _friends, _tables, _delays)
    return Plan.of_parts({part.__name__: part(scale, seed) for part in parts})


def _locality(scale: Scale, seed: int) -> Plan:
    """Six best friends out of a part of the users, and by the length of lists."""
    users = sized(scale, 60, 300, 1000)
    runs = {share: LocalityWithin("livejournal", share, users, seed=seed) for share in SHARES}

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for share, result in results.items():
            where: dict[str, Any] = {"workload": "livejournal", "friends among": share}
            feeds, covered = np.array(result["feeds"]), np.array(result["covered"])
            rows += [
                Row(where, "completely covered by 6 best friends", None, float(np.mean(covered == feeds))),
                Row(where, "covered by 6 best friends, mean", None, float(np.mean(covered / feeds))),
            ]
            for low, high in GROUPS:
                some = (feeds >= low) & (feeds <= high)
                if some.any():
                    told = f"{low} to {high}" if high < GROUPS[-1][1] else f"{low} and more"
                    rows += [
                        Row(
                            {**where, "feeds": told},
                            "completely covered by 6 best friends",
                            None,
                            float(np.mean(covered[some] == feeds[some])),
                        ),
                        Row({**where, "feeds": told}, "users", None, int(some.sum())),
                    ]
        return rows

    return Plan(runs, rows_of)


def _friends(scale: Scale, seed: int) -> Plan:
    """Figures 9a to 9c: what friends cover after one hour and two, with fewer friends, with interest alone, and
    if neighbours in trees are not heard of with every ping.
    """
    small: Scale = "smoke" if scale == "smoke" else "tenth"
    many = {source: source for source in ("livejournal", "twitter")} if scale != "smoke" else {}
    first, last = many.get("livejournal", "communities"), many.get("twitter", "communities")
    base = multi(small, seed, first)
    longer = msgspec.structs.replace(base, duration=2 * base.duration)
    changes: dict[str, dict[str, Any]] = {
        "six friends": {},
        "four friends": {"alpha": 4},
        "four friends, interest alone": {"alpha": 4, "utility": "interest"},
        "six friends, neighbours do not vote": {"neighbours_vote": False},
    }
    runs = {("six friends, twice as long", first): longer}
    runs |= {(name, last): multi(small, seed, last, **changed) for name, changed in changes.items()}

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for (name, source), result in results.items():
            where: dict[str, Any] = {"workload": source, "change": name, "level": "messages"}
            for look in result["coverage"]:
                if look["time"] in (base.duration, 2 * base.duration):
                    rows += _covered({**where, "at, s": look["time"]}, look)
            found = result["friends"]
            rows += _covered(where, found)
            least = [part["covered_min"] for part in found["by_feeds"] if part["feeds"] >= MANY]
            if least:
                rows.append(Row(where, f"least feeds covered of nodes with {MANY} or more", None, min(least)))
            for told, key in (
                ("nodes", "overlap_above_1"),
                ("nodes with several feeds", "overlap_above_1_multi"),
            ):
                rows.append(Row(where, f"{told} with neighbour overlap above 1", None, found[key]))
        return rows

    return Plan(runs, rows_of)


def _covered(where: dict[str, Any], look: Result) -> list[Row]:
    return [
        Row(where, f"{told} perfectly covered", None, look[key])
        for told, key in (("nodes", "perfect"), ("nodes with several feeds", "perfect_multi"))
    ]


def _tables(scale: Scale, seed: int) -> Plan:
    """Figures 10a and 10b: Scribe's trees by how many peers a node measures for a place of its table."""
    small: Scale = "smoke" if scale == "smoke" else "tenth"
    many = multi_scribe(small, seed, main_source(scale))
    subscribers, others = sized(scale, (60, 200), (50, 450), (50, 450))
    one = Feeds(
        system="scribe",
        workload=SingleFeed(subscribers, others),
        seed=seed,
        network=model(scale, seed, fluctuates=False),
        duration=60.0,
        window=1.0,
        update_every=0.0,
        last_update_of_all=True,
    )
    runs: dict[Any, Run] = {
        ("many", choices): msgspec.structs.replace(many, parameters={"choices": choices})
        for choices in (4, 16)
    }
    for choices in (4, 64):
        runs["one", choices] = msgspec.structs.replace(one, parameters={"choices": choices})

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for (feeds, choices), result in results.items():
            where = {"system": "scribe", "peers measured": choices, "feeds": feeds, "level": "messages"}
            if feeds == "many":
                rows.append(Row(where, "nodes that send nothing on", None, result["forward_nothing"]))
                continue
            rows += [
                Row(where, "carriers that do not subscribe", None, result["carriers_unwanted"]),
                Row(where, "latency (one way), p50, s", None, result["updates"][-1]["latency_p50"]),
            ]
        return rows

    return Plan(runs, rows_of)


def _delays(scale: Scale, seed: int) -> Plan:
    """Figure 8b: what churn adds to observers' latency, beside what the size and the places of observers do."""
    nodes = sized(scale, 60, 200, 500)
    runs: dict[Any, Run] = {}
    for number in range(sized(scale, 1, 3, 3)):
        drawn = 10 * seed + number
        static = Feeds(
            workload=SingleFeed(nodes),
            seed=drawn,
            network=model(scale, drawn),
            duration=sized(scale, 900.0, HOUR, HOUR),
            window=sized(scale, 60.0, 300.0, 300.0),
        )
        churn = ContinuousChurn(nodes * PER_NODE)
        runs["none", nodes, number] = static
        runs["continuous", nodes, number] = msgspec.structs.replace(static, churn=churn)
        fewer = SingleFeed(round(nodes * UP))
        runs["none", fewer.subscribers, number] = msgspec.structs.replace(static, workload=fewer)

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for (churn, count, number), result in results.items():
            where = {
                "workload": f"one feed, sample {number}",
                "nodes": count,
                "churn": churn,
                "level": "messages",
            }
            told = result["observed"]
            rows += [
                Row(where, measure, None, told[key])
                for measure, key in (
                    ("latency of observers, p50, s", "latency_p50"),
                    ("updates within 1 s", "within_1s"),
                    ("subscribers up, mean", "up"),
                )
            ]
        return rows

    return Plan(runs, rows_of)
