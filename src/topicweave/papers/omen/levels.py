"""OMen, and SpiderCast as OMen's figures draw it, by messages and as arrays."""

from __future__ import annotations

from typing import Any, Literal

from topicweave.measures.mending import (
    GROUPS,
    backup_measures,
    backups_along_subscriptions,
    backups_by_subscriptions,
)
from topicweave.papers.levels import beside
from topicweave.papers.omen.by_messages import MendedByMessages
from topicweave.papers.omen.mending import Mended
from topicweave.papers.omen.workloads import SocialSample, SyntheticLists
from topicweave.papers.study import Plan, Row, Scale
from topicweave.runs.run import Result

ROUNDS: dict[Scale, int] = {"smoke": 6, "tenth": 20, "paper": 40}
SIZES: dict[Scale, tuple[int, ...]] = {"smoke": (60,), "tenth": (300,), "paper": (300, 1000)}
OVER_TIME = ("degree_max_mean", "degree_mean_mean", "unrestored_rounds", "partitioned_topics")
AT_A_MOMENT = ("degree_max", "degree_mean", "topic_diameter_mean", "topic_diameter_max")
VIEWS = (
    "local_view_mean",
    "local_view_max",
    "share of local views of at most 80",
    "share of nodes that know fewer than 5 % of all",
)
MESSAGES = ("messages_per_event", "messages_per_join", "messages_per_leave")
RESILIENCE: dict[str, Any] = {"resilience": 1}
SPIDERCAST: dict[str, Any] = {"k_greedy": 3, "k_random": 1}
BY_MESSAGES: dict[str, Any] = {**SPIDERCAST, "bridges": 0}
"""Without the mending of parted topics, which the paper and the arrays have not."""
BY_MESSAGES_OF = {"omen": "messages", "spidercast(3,1)": "spidercast messages"}
"""Runs by messages, by what the rows call the system."""


def levels(scale: Scale, seed: int) -> Plan:
    """The same churn by messages in the simulator, and as arrays."""
    runs: dict[Any, Mended | MendedByMessages] = {}
    for nodes in SIZES[scale]:
        lists = SyntheticLists(nodes, 40, "zipf", 5, 20, seed=seed)
        same: dict[str, Any] = {"workload": lists, "seed": seed, "rounds": ROUNDS[scale], "looks": 4}
        runs["arrays", nodes] = Mended(system="omen", diameters=True, labels=True, backups=True, **same)
        runs["messages", nodes] = MendedByMessages(parameters=RESILIENCE, **same)
        start: dict[str, Any] = {**same, "rounds": 0}
        runs["greedy arrays", nodes] = Mended(system="omen", builder="greedy", backups=True, **start)
        runs["greedy messages", nodes] = MendedByMessages(
            parameters={**RESILIENCE, "builder": "greedy"}, **start
        )
        for begun in STARTS:
            runs["spidercast arrays", begun, nodes] = Mended(
                system="spidercast", diameters=True, start=begun, **SPIDERCAST, **same
            )
        runs["spidercast messages", nodes] = MendedByMessages(
            system="spidercast", parameters=BY_MESSAGES, settle=60.0, pause=10.0, **same
        )

    def rows_of(results: Any) -> list[Row]:
        rows = []
        for nodes in SIZES[scale]:
            arrays, messages = results["arrays", nodes], results["messages", nodes]
            where = {"system": "omen", "workload": "zipf", "nodes": nodes, "rounds": messages["rounds"]}
            rows += beside(where, messages, arrays, (*OVER_TIME, *MESSAGES, "label_messages_per_leave"))
            rows += _by_size(where, messages, arrays)
            rows += _at_the_end(where, messages, arrays, (*AT_A_MOMENT, *VIEWS))
            begins = {**where, "moment": "the start", "builder": "primal-dual"}
            rows += _backups(begins, messages, arrays)
            rows += _backups(
                {**begins, "builder": "greedy"},
                results["greedy messages", nodes],
                results["greedy arrays", nodes],
            )
            messages = results["spidercast messages", nodes]
            for start, told in STARTS.items():
                arrays = results["spidercast arrays", start, nodes]
                there = {**where, "system": "spidercast(3,1)", "arrays start from": told}
                rows += beside(there, messages, arrays, (*OVER_TIME, *MESSAGES))
                rows += _at_the_end(there, messages, arrays, AT_A_MOMENT)
        return rows

    return Plan(runs, rows_of)


def counted(scale: Scale, seed: int) -> Plan:
    """Messages per join and leave as nodes sent them (figure 12), OMen's and SpiderCast's, under the same churn."""
    every = levels(scale, seed).runs
    runs = {
        (system, nodes): every[told, nodes]
        for system, told in BY_MESSAGES_OF.items()
        for nodes in SIZES[scale]
    }

    def rows_of(results: Any) -> list[Row]:
        rows = []
        for (system, nodes), result in results.items():
            where = {"system": system, "workload": "zipf", "nodes": nodes, "rounds": result["rounds"]}
            rows += _sent(where, result)
        return rows

    return Plan(runs, rows_of)


def _sent(where: dict[str, Any], result: Result) -> list[Row]:
    """Messages per event, and by the length of the list of who came or went."""
    rows = [Row(where, measure, None, float(result[measure])) for measure in MESSAGES]
    for event in ("join", "leave"):
        by_size = result.get(f"messages_by_size_{event}", [])
        for group, (_, sent) in zip(GROUPS, by_size, strict=False):
            rows.append(Row({**where, "event": event, "lists": group}, "messages", None, sent))
    return rows


STARTS: dict[Literal["LowODA", "own"], str] = {
    "LowODA": "LowODA's overlay",
    "own": "links of their own choice",
}


def _at_the_end(
    where: dict[str, Any], messages: Result, arrays: Result, measures: tuple[str, ...]
) -> list[Row]:
    return beside({**where, "moment": "the end"}, messages["looks"][-1], arrays["looks"][-1], measures)


def _by_size(where: dict[str, Any], messages: Result, arrays: Result) -> list[Row]:
    """Messages per join and leave of nodes with short, middling and long lists."""
    rows = []
    for event in ("join", "leave"):
        told = f"messages_by_size_{event}"
        if told not in messages:
            continue
        for group, one, other in zip(GROUPS, messages[told], arrays[told], strict=False):
            place = {**where, "event": event, "lists": group}
            rows += beside(place, {"messages": one[1]}, {"messages": other[1]}, ["messages"])
    return rows


def _backups(where: dict[str, Any], messages: Result, arrays: Result) -> list[Row]:
    """Backup sets before the first event."""
    nodes, engine = _measured_backups(messages), _measured_backups(arrays)
    rows = beside(where, nodes, engine, nodes)
    one, other = (
        backups_by_subscriptions(result["list_sizes"], result["backup_sizes"])
        for result in (messages, arrays)
    )
    for group in GROUPS:
        rows += beside({**where, "lists": group}, one[group], other[group], one[group])
    return rows


def _measured_backups(result: Result) -> dict[str, float]:
    lists, sizes = result["list_sizes"], result["backup_sizes"]
    along = backups_along_subscriptions(lists, sizes)
    return {
        **backup_measures(sizes, result["backup_in_degrees"]),
        "correlation of backup_size with subscriptions": along,
    }


def trace(scale: Scale, seed: int) -> Plan:
    """The Google trace by messages, its idle time squeezed: all events at 200 nodes, the first 200 at 1,000;
    and as arrays.

    Messages are counted as they are sent, SpiderCast's too; as arrays they are worked out from the shadow set
    and its new links.
    """
    churn: Literal["google", "random"] = "random" if scale == "smoke" else "google"
    sizes = {60: 6} if scale == "smoke" else {200: 1_000_000, 1000: 200}
    lists: dict[int, SyntheticLists | SocialSample] = {
        nodes: SyntheticLists(nodes, 40, "zipf", 5, 20, seed=seed)
        if scale == "smoke"
        else SocialSample("facebook", nodes, seed)
        for nodes in sizes
    }
    runs: dict[Any, Mended | MendedByMessages] = {}
    for nodes, rounds in sizes.items():
        same: dict[str, Any] = {"workload": lists[nodes], "seed": seed, "rounds": rounds, "churn": churn}
        runs["arrays", nodes] = Mended(system="omen", looks=4, labels=True, diameters=True, **same)
        runs["messages", nodes] = MendedByMessages(parameters=RESILIENCE, **same)
        runs["spidercast messages", nodes] = MendedByMessages(
            system="spidercast", parameters=BY_MESSAGES, settle=60.0, pause=10.0, **same
        )

    def rows_of(results: Any) -> list[Row]:
        rows = []
        for nodes in sizes:
            arrays, messages = results["arrays", nodes], results["messages", nodes]
            where = {"system": "omen", "nodes": nodes}
            rows += beside(where, messages, arrays, OVER_THE_TRACE)
            rows += [
                Row({**where, "level": level}, measure, None, float(result[measure]))
                for level, result in (("messages", messages), ("arrays", arrays))
                for measure in ("degree_max_mean", "degree_mean_mean", "rounds")
            ]
            rows += _sent({**where, "level": "arrays"}, arrays)
            for system, told in BY_MESSAGES_OF.items():
                rows += _sent({"system": system, "nodes": nodes, "level": "messages"}, results[told, nodes])
            parted = float(messages["partitioned_topics"])
            rows.append(Row({**where, "level": "messages"}, "partitioned_topics", 0, parted))
        return rows

    return Plan(runs, rows_of)


OVER_THE_TRACE = (*OVER_TIME, "messages_per_event")
