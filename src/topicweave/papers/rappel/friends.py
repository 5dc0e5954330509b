"""Rappel, figures of the friends and of several feeds at once: 9, 10b, 10c, 11c, 11d.

At paper scale three samples of real subscriptions, drawn as §6.1.2 says, stand in for the paper's LiveJournal trace.
"""

from __future__ import annotations

from typing import Any

from topicweave.papers.rappel.feeds import Feeds
from topicweave.papers.rappel.settings import (
    counted,
    main_source,
    multi,
    multi_scribe,
    no_noise,
    samples,
    sizes,
)
from topicweave.papers.study import Plan, Results, Row, Scale
from topicweave.runs.run import Run


def fig9a(scale: Scale, seed: int) -> Plan:
    """Feeds covered by six (and four) friends."""
    runs = {(source, 6): multi(scale, seed, source) for source in samples(scale, seed)}
    runs[main_source(scale), 4] = multi(scale, seed, main_source(scale), alpha=4)

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for (source, alpha), result in results.items():
            where: dict[str, Any] = {"workload": source, "alpha": alpha}
            friends = result["friends"]
            rows.append(no_noise(where, result))
            rows.append(Row(where, "nodes", None, result["nodes"]))
            paper = 0.91 if alpha == 6 else None
            rows.append(Row(where, "nodes perfectly covered", paper, friends["perfect"]))
            paper = 0.73 if alpha == 4 else None
            rows.append(
                Row(where, "nodes with several feeds perfectly covered", paper, friends["perfect_multi"])
            )
            for low, high in ((1, 1), (2, 3), (4, 6), (7, 12), (13, 10**6)):
                parts = [part for part in friends["by_feeds"] if low <= part["feeds"] <= high]
                if parts:
                    nodes = sum(part["nodes"] for part in parts)
                    perfect = sum(part["nodes"] * part["perfect"] for part in parts) / nodes
                    at = {**where, "feeds": f"{low} to {high}" if high < 10**6 else f"{low} and more"}
                    rows += [
                        Row(at, "nodes perfectly covered", None, perfect),
                        Row(at, "nodes", None, nodes),
                    ]
            many = [part["covered_min"] for part in friends["by_feeds"] if part["feeds"] >= 9]
            if many and alpha == 6:
                rows.append(
                    Row(where, "least feeds covered of nodes with 9 or more", "at least 6", min(many))
                )
            rows += [
                Row({**where, "at, s": point["time"]}, "nodes perfectly covered", None, point["perfect"])
                for point in result["coverage"]
            ]
        return rows

    return Plan(runs, rows_of)


def parts_of_utility(scale: Scale, seed: int) -> dict[str, Run]:
    source = main_source(scale)
    return {
        "both": multi(scale, seed, source),
        "interest": multi(scale, seed, source, utility="interest"),
        "distance": multi(scale, seed, source, utility="distance"),
    }


SHARE = "covered share of nodes with several feeds"


def fig9b(scale: Scale, seed: int) -> Plan:
    """Coverage with both parts of the utility, and with each alone."""

    def rows_of(results: Results) -> list[Row]:
        rows = []
        # As in the paper: who wants one feed alone has all or nothing.
        shares = {part: result["friends"]["share_mean_multi"] for part, result in results.items()}
        for part, result in results.items():
            where = {"utility": part, "workload": main_source(scale)}
            rows.append(Row(where, f"{SHARE}, mean", None, shares[part]))
            rows.append(
                Row(
                    where,
                    "nodes with several feeds perfectly covered",
                    None,
                    result["friends"]["perfect_multi"],
                )
            )
        rows.append(
            Row(
                {"workload": main_source(scale)},
                f"{SHARE}: both parts, interest alone",
                "comparable",
                f"{shares['both']:.3f}, {shares['interest']:.3f}",
            )
        )
        return rows

    return Plan(parts_of_utility(scale, seed), rows_of)


def fig9c(scale: Scale, seed: int) -> Plan:
    """How often a neighbour serves in several roles."""

    def rows_of(results: Results) -> list[Row]:
        rows = []
        above = {part: result["friends"]["overlap_above_1"] for part, result in results.items()}
        for part, result in results.items():
            where = {"utility": part, "workload": main_source(scale)}
            paper = 0.8 if part == "both" else None
            rows.append(Row(where, "nodes with neighbour overlap above 1", paper, above[part]))
            rows.append(Row(where, "neighbour overlap, p50", None, result["friends"]["overlap"]["ratio_p50"]))
        rows.append(
            Row(
                {"workload": main_source(scale)},
                "overlap above 1: both parts, interest alone",
                "much worse without distance",
                f"{above['both']:.3f}, {above['interest']:.3f}",
            )
        )
        return rows

    return Plan(parts_of_utility(scale, seed), rows_of)


def _traffic(run: Feeds, source: str) -> Plan:
    """Data messages of every node for one update of each feed."""

    def rows_of(results: Results) -> list[Row]:
        result = results[run.system]
        where: dict[str, Any] = {"system": run.system, "workload": source}
        rows = [
            Row(where, "deliveries", f"all {result['expected']}", result["reached"]),
            *(
                Row(where, measure, None, value)
                for measure, value in (
                    ("data messages per node, p50", result["data_messages"]["messages_p50"]),
                    ("data messages per node, p95", result["data_messages"]["messages_p95"]),
                    ("nodes that send nothing on", result["forward_nothing"]),
                    ("most copies sent by one node", result["sends_max"]),
                    ("share of copies that the busiest tenth sends", result["sent_by_busiest"]),
                    ("correlation of data traffic and subscriptions", result["data_correlation"]),
                    ("correlation of copies sent and subscriptions", result["sent_correlation"]),
                )
            ),
        ]
        if run.system == "rappel":
            return [*rows, no_noise(where, result)]
        return [*rows, Row(where, "noise (receptions)", "relays need not subscribe", result["noise"])]

    return Plan({run.system: run}, rows_of)


def fig10b(scale: Scale, seed: int) -> Plan:
    """Data traffic of Scribe's nodes against their subscriptions."""
    source = main_source(scale)
    return _traffic(multi_scribe(scale, seed, source), source)


def fig10c(scale: Scale, seed: int) -> Plan:
    """Data traffic of Rappel's nodes against their subscriptions."""
    source = main_source(scale)
    return _traffic(multi(scale, seed, source), source)


def fig11c(scale: Scale, seed: int) -> Plan:
    """Control traffic over all nodes, by network."""
    small, large = sizes(scale)
    source = main_source(scale)
    runs: dict[Any, Run] = {
        (1, small): counted(scale, seed, small),
        (1, large): counted(scale, seed, large),
        (source, samples(scale, seed)[source].nodes): multi(scale, seed, source),
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for (feeds, size), result in results.items():
            control = result["control"]
            where = {"feeds": feeds, "nodes": size}
            rate = control["messages"]["rate_p50"]
            rows.append(Row(where, "control messages per second, p50", "under 2", rate))
            rows.append(Row(where, "control messages per second, p95", None, control["messages"]["rate_p95"]))
            rows.append(
                Row(where, "control bytes per second, p50", "about 100", control["bytes"]["rate_p50"])
            )
        return rows

    return Plan(runs, rows_of)


def fig11d(scale: Scale, seed: int) -> Plan:
    """Control traffic against subscriptions."""
    source = main_source(scale)
    runs = {source: multi(scale, seed, source)}

    def rows_of(results: Results) -> list[Row]:
        control = results[source]["control"]
        where: dict[str, Any] = {"workload": source}
        slope = control["per_subscription"]
        rows = [
            Row(where, "control messages per second and further subscription", "0.15 to 0.4", slope),
            Row(where, "correlation of control messages and subscriptions", None, control["correlation"]),
        ]
        rows += [
            Row({**where, "feeds": part["feeds"]}, "control messages per second", None, part["rate"])
            for part in control["by_subscriptions"]
            if part["nodes"] >= 5
        ]
        return rows

    return Plan(runs, rows_of)
