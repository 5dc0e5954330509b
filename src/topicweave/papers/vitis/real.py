"""Vitis §IV-E and §IV-F, on real data: figures 10 to 12."""

from __future__ import annotations

from typing import Any

from topicweave.papers.study import Plan, Results, Row, Scale
from topicweave.papers.vitis.churned import UnderChurn
from topicweave.papers.vitis.lists import CorrelatedLists
from topicweave.papers.vitis.settings import (
    AS_PRINTED,
    READINGS,
    TABLE,
    at_level,
    everything,
    less,
    static,
)
from topicweave.papers.vitis.workloads import FollowersSample, TraceLists
from topicweave.runs.run import Result, Run


def _samples(scale: Scale, seed: int) -> dict[str, FollowersSample]:
    """§IV-E; the paper's Twitter graph of 2.4 million users is not public, these are."""
    nodes = {"smoke": 250, "tenth": 1000, "paper": 10_000}[scale]
    graphs = ("epinions",) if scale == "smoke" else ("epinions", "twitter")
    return {graph: FollowersSample(graph, nodes, seed) for graph in graphs}


def fig10(scale: Scale, seed: int) -> Plan:
    """Subscriptions of a real social graph: Vitis, RVR and OPT."""
    sizes = {"smoke": (15,), "tenth": (15, 35), "paper": (15, 35)}[scale]
    samples = _samples(scale, seed)
    runs: dict[Any, Run] = {
        (graph, system, size): static(scale, seed, system, sample, table_size=size)
        for graph, sample in samples.items()
        for system in ("vitis", "rvr", "opt")
        for size in sizes
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for (graph, system, size), result in results.items():
            where = {"system": system, "workload": graph, "table_size": size}
            found = everything(where, result)
            if system == "opt":
                hit = result["hit_ratio"]
                found[0] = Row(where, "hit_ratio", 0.8 if size == 35 else "below 1", hit)
            rows += found
        for graph in samples:
            rows += sample_statistics(graph, results[graph, "vitis", sizes[0]])
            for size in sizes:
                vitis, rvr = results[graph, "vitis", size], results[graph, "rvr", size]
                where = {"system": "vitis against rvr", "workload": graph, "table_size": size}
                faster = rvr["hops_mean"] / vitis["hops_mean"]
                paper = {15: 0.30, 35: 0.40}.get(size)
                rows += [
                    *(
                        Row(
                            where, f"{reading}: less than RVR's by", paper, less(vitis[reading], rvr[reading])
                        )
                        for reading in READINGS
                    ),
                    Row(where, "delay: times shorter than RVR's", 1.5, faster),
                ]
        return at_level(rows)

    return Plan(runs, rows_of)


def sample_statistics(graph: str, result: Result) -> list[Row]:
    """What a sample looks like, as the paper's Figure 9 does for the whole of its graph."""
    where = {"workload": graph}
    found = {"nodes": result["nodes"], **result["workload"]}
    return [Row(where, f"sample: {name}", None, value) for name, value in found.items()]


def fig11(scale: Scale, seed: int) -> Plan:
    """The degree that OPT needs when nothing bounds it."""
    samples = _samples(scale, seed)
    runs = {graph: static(scale, seed, "opt", sample, table_size=0) for graph, sample in samples.items()}

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for graph, result in results.items():
            degrees = result["degrees"]
            where = {"system": "opt", "workload": graph}
            over = sum(1 for degree in degrees if degree > TABLE) / len(degrees)
            tail = degrees[-1] / max(1.0, sum(degrees) / len(degrees))
            rows += [
                Row(where, "hit_ratio", 1.0, result["hit_ratio"]),
                Row(where, "share of nodes of degree above 15", "above 0.67", over),
                Row(
                    where,
                    "share of nodes of degree above 200",
                    0.003,
                    sum(1 for degree in degrees if degree > 200) / len(degrees),
                ),
                Row(where, "degree_max", 708, degrees[-1]),
                Row(where, "largest degree over the mean", "heavy tail", tail),
            ]
        return at_level(rows)

    return Plan(runs, rows_of)


def churned(system: str, trace: TraceLists, seed: int, **how: Any) -> UnderChurn:
    """Alg. 1 has one period, of a second here, for exchanges and heartbeats."""
    parameters: dict[str, Any] = {**AS_PRINTED, "spreading": {"inline": 1}, "heartbeat_period": 1.0}
    if system == "vitis":
        parameters["rates"] = "equal"
    return UnderChurn(system=system, parameters=parameters, workload=trace, seed=seed, **how)


def departures(scale: Scale, seed: int) -> Plan:
    """A small network under the trace: who goes falls silent, or says goodbye."""
    nodes = 150 if scale == "smoke" else 400
    lists = CorrelatedLists(nodes, nodes // 2, "random", min(50, nodes // 8), 4, seed=seed)
    trace = TraceLists(lists, hours=2.0, quiet=40.0, duration=120.0 if scale == "smoke" else 240.0, seed=seed)
    runs = {
        (system, way): churned(system, trace, seed, departures=way)
        for system in ("vitis", "rvr")
        for way in ("crash", "goodbye")
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for (system, way), result in results.items():
            where = {"system": system, "departures": way, "nodes": nodes}
            parts = result["parts"]
            rows.append(Row(where, "worst hit_ratio", None, min(part["hit_ratio"] for part in parts)))
            rows += [
                Row(where, measure, None, sum(part[measure] for part in parts) / len(parts))
                for measure in ("hit_ratio", "noise", "noise_all", "hops_mean")
            ]
        return rows

    return Plan(runs, rows_of)


OPT_KNOWS: dict[str, dict[str, Any]] = {
    "full": {"membership": "full"},
    "gossip": {"membership": "gossip"},
    "gossip with T-Man": {"membership": "gossip", "tman": 50},
}
"""All three systems of §IV have Newscast and T-Man; figures 10 and 11 let OPT's nodes know all others."""


def opt(scale: Scale, seed: int) -> Plan:
    """OPT with K = 2 and 3, bounded and not; over Newscast with T-Man, over Newscast alone, and with
    everybody known.
    """
    nodes = {"smoke": 150, "tenth": 500, "paper": 1000}[scale]
    samples = {graph: FollowersSample(graph, nodes, seed) for graph in _samples(scale, seed)}
    runs: dict[Any, Run] = {
        (graph, k, size, membership): static(
            *(scale, seed, "opt", sample), table_size=size, coverage=k, **how
        )
        for graph, sample in samples.items()
        for k in (2, 3)
        for size in (0, 15, 35)
        for membership, how in OPT_KNOWS.items()
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for (graph, k, size, membership), result in results.items():
            degrees = result["degrees"]
            where = {
                "system": "opt",
                "workload": graph,
                "nodes": len(degrees),
                "K": k,
                "table_size": size,
                "membership": membership,
            }
            over = sum(1 for degree in degrees if degree > TABLE) / len(degrees)
            rows += [
                Row(where, "hit_ratio", None, result["hit_ratio"]),
                Row(where, "hops_mean", None, result["hops_mean"]),
                Row(where, "share of nodes of degree above 15", None, over),
                Row(where, "degree_max", None, degrees[-1]),
            ]
        return at_level(rows)

    return Plan(runs, rows_of)


def fig12(scale: Scale, seed: int) -> Plan:
    """Churn by a real trace, with a flash crowd in the middle, by messages. Who goes falls silent; heartbeats
    come every second.

    The trace is squeezed thirtyfold: at its own pace almost nothing happens within what can be simulated. The
    paper's trace has 4,000 hosts; here 1,500 hosts of another stand for them, over three hours of it;
    `fig12_4000` has as many hosts as the paper.
    """
    if scale == "paper":
        paper = CorrelatedLists(1500, 750, "random", 50, 15, seed=seed)
        return _over_trace(TraceLists(paper, hours=3.0, quiet=40.0, duration=360.0, seed=seed), seed)
    if scale == "tenth":
        tenth = CorrelatedLists(400, 200, "random", 50, 4, seed=seed)
        return _over_trace(TraceLists(tenth, hours=2.0, quiet=40.0, duration=240.0, seed=seed), seed)
    small = CorrelatedLists(150, 100, "random", 10, 10, seed=seed)
    return _over_trace(TraceLists(small, hours=1.0, quiet=30.0, duration=120.0, seed=seed), seed)


def fig12_4000(scale: Scale, seed: int) -> Plan:
    """Figure 12 with the paper's 4,000 hosts over one hour of the trace, squeezed as there: so many hosts for
    three hours would take the simulator hours.
    """
    hosts = {"smoke": 60, "tenth": 400, "paper": 4000}[scale]
    lists = CorrelatedLists(hosts, hosts // 2, "random", min(50, hosts // 4), hosts // 20, seed=seed)
    return _over_trace(TraceLists(lists, hours=1.0, quiet=40.0, duration=120.0, seed=seed), seed)


def _over_trace(trace: TraceLists, seed: int) -> Plan:
    runs = {system: churned(system, trace, seed) for system in ("vitis", "rvr")}

    def rows_of(results: Results) -> list[Row]:
        rows: list[Row] = []
        worst = {}
        for system, result in results.items():
            for part in result["parts"]:
                where = {"system": system, "from": round(part["start"])}
                rows += [
                    Row(where, measure, None, part[measure])
                    for measure in ("nodes", "hit_ratio", "noise", "noise_all", "hops_mean")
                ]
            worst[system] = min(part["hit_ratio"] for part in result["parts"])
        rows += [
            Row({"system": "vitis"}, "worst hit_ratio", 0.99, worst["vitis"]),
            Row({"system": "rvr"}, "worst hit_ratio", 0.87, worst["rvr"]),
        ]
        return rows

    return Plan(runs, rows_of)
