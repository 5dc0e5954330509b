"""Vitis §IV-B to §IV-D, on synthetic subscriptions: figures 4 to 7; and what the paper leaves open, measured."""

from __future__ import annotations

from typing import Any

from topicweave.papers.levels import SIZES, beside
from topicweave.papers.study import Plan, Results, Row, Scale, listed
from topicweave.papers.vitis.lists import CorrelatedLists
from topicweave.papers.vitis.published import BINS
from topicweave.papers.vitis.settings import (
    HELD,
    PATTERNS,
    READINGS,
    TABLE,
    Way,
    at_level,
    everything,
    less,
    lists,
    static,
)
from topicweave.runs.run import Result, Run

FRIENDS = {"smoke": (0, 6, 12), "tenth": (0, 6, 12), "paper": (0, 3, 6, 9, 12)}
TABLES = {"smoke": (15, 25), "tenth": (15, 35), "paper": (15, 20, 25, 30, 35)}
LOOKS = (10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0)
ALPHAS = {"smoke": (0.3, 3.0), "tenth": (0.3, 3.0), "paper": (0.3, 1.0, 2.0, 3.0)}


def fig4(scale: Scale, seed: int) -> Plan:
    """Friends against small-world links in a table of 15."""
    counts = FRIENDS[scale]
    runs: dict[Any, Run] = {
        (pattern, friends): static(
            scale, seed, "vitis", lists(scale, seed, pattern), small_world=TABLE - 2 - friends
        )
        for pattern in PATTERNS
        for friends in counts
    }
    runs["rvr"] = static(scale, seed, "rvr", lists(scale, seed, "random"))

    def rows_of(results: Results) -> list[Row]:
        rvr = results["rvr"]
        rows = everything({"system": "rvr", "table_size": TABLE}, rvr)
        for (pattern, friends), result in ((key, results[key]) for key in runs if key != "rvr"):
            rows += everything({"system": "vitis", "workload": pattern, "friends": friends}, result)
        for pattern in PATTERNS:
            where: dict[str, Any] = {"system": "vitis", "workload": pattern, "friends": "rising"}
            overhead = [results[pattern, friends][HELD] for friends in counts]
            rows.append(Row(where, HELD, "falls with more friends", listed(overhead)))
        most = counts[-1]
        by_pattern = [results[pattern, most][HELD] for pattern in PATTERNS]
        rows.append(
            Row(
                {"system": "vitis", "workload": "random, low, high", "friends": most},
                HELD,
                "falls with correlation",
                listed(by_pattern),
            )
        )
        for reading in READINGS:
            gain = less(results["high", most][reading], rvr[reading])
            share = results["random", most][reading] / rvr[reading]
            where = {"system": "vitis against rvr", "friends": most}
            rows += [
                Row({**where, "workload": "high"}, f"{reading}: less than RVR's by", 0.88, gain),
                Row({**where, "workload": "random"}, f"{reading}: share of RVR's", "below 0.33", share),
            ]
        high = results["high", most]
        rows += [
            Row(
                {"system": "vitis against rvr", "workload": "high", "friends": most},
                "hops_mean",
                "shorter than RVR's",
                f"{high['hops_mean']:.2f} against {rvr['hops_mean']:.2f}",
            ),
        ]
        return at_level(rows)

    return Plan(runs, rows_of)


def share_above(result: Result, key: str, share: float) -> float:
    """The share of nodes whose overhead is above so much."""
    return float(sum(result[key][int(share * BINS) :]))


def fig5(scale: Scale, seed: int) -> Plan:
    """How overhead is distributed over nodes."""
    runs = {
        "rvr": static(scale, seed, "rvr", lists(scale, seed, "random")),
        **{pattern: static(scale, seed, "vitis", lists(scale, seed, pattern)) for pattern in PATTERNS},
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for name, result in results.items():
            where = {"system": "rvr" if name == "rvr" else "vitis", "workload": name}
            for key in ("overhead_by_node", "overhead_by_node_all"):
                rows += [
                    Row(where, f"{key}, twentieths", None, listed(result[key])),
                    Row(where, f"{key} above 0.2", None, share_above(result, key, 0.2)),
                ]
        for pattern in PATTERNS:
            for key in ("overhead_by_node", "overhead_by_node_all"):
                rvr = share_above(results["rvr"], key, 0.2)
                share = share_above(results[pattern], key, 0.2) / rvr if rvr else 0.0
                rows.append(
                    Row(
                        {"system": "vitis against rvr", "workload": pattern},
                        f"{key}: nodes above 0.2, share of RVR's",
                        "below 0.33",
                        share,
                    )
                )
        return at_level(rows)

    return Plan(runs, rows_of)


def fig6(scale: Scale, seed: int) -> Plan:
    """Larger routing tables."""
    sizes = TABLES[scale]
    runs: dict[Any, Run] = {
        (pattern, size): static(scale, seed, "vitis", lists(scale, seed, pattern), table_size=size)
        for pattern in PATTERNS
        for size in sizes
    }
    runs |= {
        ("rvr", size): static(scale, seed, "rvr", lists(scale, seed, "random"), table_size=size)
        for size in sizes
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for (name, size), result in results.items():
            where = {"system": "rvr" if name == "rvr" else "vitis", "workload": name, "table_size": size}
            rows += everything(where, result)
        for pattern in PATTERNS:
            result = results[pattern, TABLE]
            rows.append(
                Row(
                    {"system": "vitis", "workload": pattern, "table_size": TABLE},
                    "paths asked for per topic, by second",
                    None,
                    settling_curve(result),
                )
            )
        for name in (*PATTERNS, "rvr"):
            ends = [results[name, size][HELD] for size in (sizes[0], sizes[-1])]
            where = {"system": "rvr" if name == "rvr" else "vitis", "workload": name, "table_size": "rising"}
            rows.append(Row(where, HELD, "falls from the smallest to the largest", listed(ends)))
        faster = [
            size for size in sizes if results["random", size]["hops_mean"] < results["rvr", size]["hops_mean"]
        ]
        rows.append(
            Row(
                {"system": "vitis against rvr", "workload": "random", "table_size": "rising"},
                "hops_mean: shorter than RVR's at",
                "from above 30 on",
                ", ".join(str(size) for size in faster) or "no size",
            )
        )
        return at_level(rows)

    return Plan(runs, rows_of)


def settling_curve(result: Result) -> str:
    """When relay paths have become few; by messages nobody looks."""
    per_node = result["workload"]["topics"] / result["nodes"]
    curve = [(time, paths / per_node) for time, _, paths in result["settling"] if time in LOOKS]
    return ", ".join(f"{time:.0f}: {paths:.2f}" for time, paths in curve) or "not looked at"


def fig7(scale: Scale, seed: int) -> Plan:
    """Skewed publication rates, known to the nodes."""
    alphas = ALPHAS[scale]
    events = {"smoke": 200, "tenth": 500, "paper": 5000}[scale]
    runs: dict[Any, Run] = {
        (pattern, alpha): static(
            scale, seed, "vitis", lists(scale, seed, pattern, alpha), events=events, rates="given"
        )
        for pattern in PATTERNS
        for alpha in alphas
    }
    runs |= {
        ("rvr", alpha): static(scale, seed, "rvr", lists(scale, seed, "random", alpha), events=events)
        for alpha in alphas
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for (name, alpha), result in results.items():
            where = {"system": "rvr" if name == "rvr" else "vitis", "workload": name, "alpha": alpha}
            rows += everything(where, result)
        for measure in (HELD, "hops_mean"):
            gaps = [
                abs(results["random", alpha][measure] - results["high", alpha][measure])
                for alpha in (alphas[0], alphas[-1])
            ]
            rows.append(
                Row(
                    {"system": "vitis", "workload": "random against high", "alpha": "0.3 and 3"},
                    f"{measure}: difference",
                    "random approaches high",
                    listed(gaps),
                )
            )
        return at_level(rows)

    return Plan(runs, rows_of)


OPEN_READINGS: dict[str, dict[str, Any]] = {
    "as built": {},
    "hops + 1 < d, as Alg. 5 prints it": {"gateway_hops": 4},
    "small-world targets drawn at every selection": {"redraw_targets": True},
    "relays do not hand on to interested neighbours": {"relays_hand_on": False},
}
"""Ways to read what the paper leaves open: the settings that differ."""


def readings(scale: Scale, seed: int) -> Plan:
    """Every way to read the paper, beside the one that is built."""
    runs = {
        name: static(scale, seed, "vitis", lists(scale, seed, "random"), **settings)
        for name, settings in OPEN_READINGS.items()
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for name, result in results.items():
            where = {"system": "vitis", "workload": "random", "reading": name}
            rows += [
                *everything(where, result),
                Row(where, "hops_max", None, result["hops_max"]),
            ]
        return at_level(rows)

    return Plan(runs, rows_of)


COMPARED = (
    *READINGS,
    "hit_ratio",
    "hops_mean",
    "hops_max",
    "degree_mean",
    "degree_max",
    "clusters_per_topic",
    "relays_per_topic",
    "requested_paths",
)
"""What figures use of a run."""


def levels(scale: Scale, seed: int) -> Plan:
    """The same workloads by messages in the simulator, and cycle by cycle."""
    settings = [("vitis", pattern) for pattern in PATTERNS] + [("rvr", "random")]
    ways: tuple[Way, ...] = ("messages", "cycles")
    points = [(nodes, system, pattern) for nodes in SIZES[scale] for system, pattern in settings]
    runs = {
        (level, nodes, system, pattern): static(
            *(scale, seed, system, _smaller(nodes, pattern, seed)),
            level=level,
            settle=60.0,
            watch_every=10.0,
        )
        for level in ways
        for nodes, system, pattern in points
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for nodes, system, pattern in points:
            messages, cycles = (results[level, nodes, system, pattern] for level in ways)
            where = {"system": system, "workload": pattern, "nodes": nodes}
            rows += beside(where, messages, cycles, COMPARED)
            if system == "vitis":
                rows += _paths_over_time(where, messages, cycles)
            for key in ("overhead_by_node", "overhead_by_node_all"):
                one, other = ({key: share_above(result, key, 0.2)} for result in (messages, cycles))
                rows += beside({**where, "overhead": "above 0.2"}, one, other, [key])
                rows.append(_in_the_same_twentieth(where, key, messages, cycles))
        return rows

    return Plan(runs, rows_of)


def _paths_over_time(where: dict[str, Any], messages: Result, cycles: Result) -> list[Row]:
    """Relay paths asked for while the overlay settles (figure 6)."""
    measure, rows = "paths asked for", []
    for (second, _, one), (_, _, other) in zip(messages["settling"], cycles["settling"], strict=True):
        rows += beside({**where, "second": second}, {measure: one}, {measure: other}, [measure])
    return rows


def _in_the_same_twentieth(where: dict[str, Any], key: str, messages: Result, cycles: Result) -> Row:
    """How much of the two distributions of overhead over nodes lies in the same place (figure 5)."""
    common = sum(map(min, messages[key], cycles[key]))
    measure = f"{key}, nodes in the same twentieth, arrays over messages"
    return Row(where, measure, None, common)


def _smaller(nodes: int, pattern: str, seed: int) -> CorrelatedLists:
    """§IV-A with fewer nodes; everybody wants a tenth of all topics, and so half of two buckets of ten, as there."""
    topics = 100 if nodes < 200 else 300 if nodes < 1000 else nodes // 2
    return CorrelatedLists(nodes, topics, pattern, topics // 10, 10, seed=seed)


def ring(scale: Scale, seed: int) -> Plan:
    """How soon the ring is right, by whom nodes exchange their tables with."""
    runs = {
        share: static(
            scale, seed, "vitis", lists(scale, seed, "random"), watch_every=3.0, ring_partners=share
        )
        for share in (0.0, 0.5)
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for share, result in results.items():
            where = {"system": "vitis", "ring_partners": share}
            rows += [
                Row({**where, "second": time}, "ring links that are right", None, right)
                for time, right, _ in result["settling"]
            ]
            rows += [
                Row({**where, "second": time}, "paths asked for per node", None, paths)
                for time, _, paths in result["settling"]
            ]
        right = [time for time, share, _ in results[0.5]["settling"] if share == 1.0]
        rows.append(
            Row(
                {"system": "vitis", "ring_partners": 0.5},
                "second at which the whole ring is right",
                "within a few tens of rounds",
                right[0] if right else "not yet",
            )
        )
        return at_level(rows)

    return Plan(runs, rows_of)
