"""OMen's nodes in the simulator under the churn of §6: links of a LowODA overlay to begin with, then one
event after another.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from topicweave.bulk.omen.churn import ChurnSource, churn_sequence, data_sets
from topicweave.designs import DEFAULT_RHO, Instance, low_oda
from topicweave.measures.columns import names_array
from topicweave.measures.control import control_per_operation
from topicweave.measures.diameter import topic_diameters
from topicweave.measures.graph import Overlay, TopicGraph, snapshot
from topicweave.measures.overlay import connectivity_measures, degree_measures
from topicweave.model.workload import Workload
from topicweave.papers.levels import beside
from topicweave.papers.omen.mending import Mended
from topicweave.papers.omen.workloads import SocialSample, SyntheticLists
from topicweave.papers.study import Plan, Row, Scale, at_most, reported
from topicweave.runs.run import OnSystem, Result
from topicweave.sim.churn import Change, Churn
from topicweave.sim.simulation import Simulation
from topicweave.systems.omen import OMEN, OMenNode
from topicweave.telemetry.writer import MemoryTelemetry


class MendedByMessages(OnSystem, frozen=True, kw_only=True, tag="mending-messages"):
    """What `Mended` does as arrays."""

    system: Literal["omen"] = "omen"
    rounds: int
    churn: ChurnSource = "random"
    looks: int = 4
    """How often the overlay is looked at, besides the start."""
    rho: float = DEFAULT_RHO
    settle: float = 20.0
    """Seconds for gossip to build the first backup sets."""
    pause: float = 30.0
    """Seconds from one event to the next: the trace's idle time is left out."""

    @property
    def data_sets(self) -> tuple[str, ...]:
        return data_sets(self.churn)

    def run(self) -> Result:
        workload = self.workload.load()
        up, happenings = churn_sequence(self.churn, workload.nodes, self.rounds, self.seed)
        changes = tuple(
            Change(self.settle + self.pause * number, happening.node, happening.joins)
            for number, happening in enumerate(happenings)
        )
        telemetry = self.telemetry(workload)
        simulation = Simulation(
            workload,
            OMEN,
            OMEN.settings(**self.parameters),
            seed=self.seed,
            churn=Churn(frozenset(up), changes),
            telemetry=telemetry,
        )
        _link(simulation, workload, sorted(up), self.rho)
        simulation.run(self.settle - 1.0)
        looks = [_look(simulation, telemetry, 0)]
        every = max(1, len(happenings) // self.looks)
        for number in range(1, len(happenings) + 1):
            # Just before the next event comes.
            simulation.run(self.settle + self.pause * number - 1.0)
            if number % every == 0:
                looks.append(_look(simulation, telemetry, number))
        traffic = control_per_operation(
            telemetry.tables().control, OMEN.control_kinds, len(happenings), start=self.settle
        )
        return {
            "nodes": len(up),
            "rounds": len(happenings),
            "looks": looks,
            "degree_max_mean": float(np.mean([look["degree_max"] for look in looks])),
            "degree_mean_mean": float(np.mean([look["degree_mean"] for look in looks])),
            "partitioned_topics": int(looks[-1]["partitioned_topics"]),
            "messages_per_event": traffic.messages,
            "kernel_events": simulation.kernel.events,
        }


def _link(simulation: Simulation, workload: Workload, nodes: list[int], rho: float) -> None:
    """Ask for the links of a LowODA overlay; they stand before the first heartbeat."""
    simulation.run(0.0)
    interests = [frozenset(workload.interests(node).tolist()) for node in nodes]
    for one, other in low_oda(Instance.of_lists(interests, workload.topics), rho=rho).tolist():
        node = simulation.node(nodes[one])
        assert isinstance(node, OMenNode)
        node.links_kept.ask(workload.node_ids[nodes[other]])


def _look(simulation: Simulation, telemetry: MemoryTelemetry, number: int) -> dict[str, Any]:
    simulation.snapshot()
    workload = simulation.workload
    names = names_array(workload.node_names[index] for index in simulation.up())
    overlay = Overlay.of(snapshot(telemetry.tables().links), names)
    topics = TopicGraph.of(overlay, workload.tables()["subscriptions"])
    degrees = degree_measures(overlay)
    diameters = topic_diameters(topics)
    gauges = simulation.gauges()
    return {
        "round": number,
        "nodes": len(names),
        "degree_max": degrees["degree_max"],
        "degree_mean": degrees["degree_mean"],
        "partitioned_topics": connectivity_measures(topics)["partitioned_topics"],
        "local_view_mean": gauges["local_view"],
        "backup_size": gauges["backup_size"],
        "topic_diameter_mean": float(diameters.mean()),
        "topic_diameter_max": int(diameters.max(initial=0)),
    }


ROUNDS: dict[Scale, int] = {"smoke": 6, "tenth": 20, "paper": 40}
SIZES: dict[Scale, tuple[int, ...]] = {"smoke": (60,), "tenth": (300,), "paper": (300, 1000)}
AT_THE_END = ("degree_max", "degree_mean", "local_view_mean", "topic_diameter_mean", "topic_diameter_max")


def levels(scale: Scale, seed: int) -> Plan:
    """The same churn by messages in the simulator, and as arrays."""
    runs: dict[Any, Mended | MendedByMessages] = {}
    for nodes in SIZES[scale]:
        lists = SyntheticLists(nodes, 40, "zipf", 5, 20, seed=seed)
        rounds = ROUNDS[scale]
        runs["arrays", nodes] = Mended(
            system="omen",
            workload=lists,
            seed=seed,
            rounds=rounds,
            looks=4,
            diameters=True,
            labels=True,
            backups=True,
        )
        runs["messages", nodes] = MendedByMessages(
            workload=lists, seed=seed, rounds=rounds, parameters={"resilience": 1}
        )

    def judge(results: Any) -> list[Row]:
        rows = []
        for nodes in SIZES[scale]:
            arrays, messages = results["arrays", nodes], results["messages", nodes]
            where = {"system": "omen", "workload": "zipf", "nodes": nodes, "rounds": messages["rounds"]}
            rows += beside(
                where,
                messages,
                arrays,
                ("degree_max_mean", "degree_mean_mean", "partitioned_topics", "messages_per_event"),
            )
            last = {"arrays": dict(arrays["looks"][-1]), "messages": dict(messages["looks"][-1])}
            rows += beside({**where, "moment": "the end"}, last["messages"], last["arrays"], AT_THE_END)
            sizes = arrays["backup_sizes"]
            backups = {"backup_size": sum(sizes) / len(sizes)}
            rows += beside({**where, "moment": "the start"}, messages["looks"][0], backups, ["backup_size"])
        return rows

    return Plan(runs, judge)


def trace(scale: Scale, seed: int) -> Plan:
    """The Google trace by messages, its idle time squeezed: all events at 200 nodes, the first 200 at 1,000;
    and as arrays.

    Messages are counted as they are sent; as arrays they are worked out from the shadow set and its new links.
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
        runs["messages", nodes] = MendedByMessages(parameters={"resilience": 1}, **same)

    def judge(results: Any) -> list[Row]:
        rows = []
        for nodes in sizes:
            arrays, messages = results["arrays", nodes], results["messages", nodes]
            where = {"system": "omen", "nodes": nodes}
            rows += beside(where, messages, arrays, OVER_THE_TRACE)
            rows += [
                reported({**where, "level": level}, measure, None, float(result[measure]))
                for level, result in (("messages", messages), ("arrays", arrays))
                for measure in ("degree_max_mean", "degree_mean_mean", "messages_per_event", "rounds")
            ]
            parted = float(messages["partitioned_topics"])
            rows.append(at_most({**where, "level": "messages"}, "partitioned_topics", 0, parted))
        return rows

    return Plan(runs, judge)


OVER_THE_TRACE = ("degree_max_mean", "degree_mean_mean", "partitioned_topics", "messages_per_event")
