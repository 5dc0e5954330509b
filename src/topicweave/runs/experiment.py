"""One experiment: a system on a workload with a seed, and what to measure.

An experiment is a value: it can be written to a file, sent to another process or a Spark executor, and named by its
contents. Its result is a flat dict of numbers (a few lists), the same on any machine.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pyarrow as pa

from topicweave.blocks.membership import Membership
from topicweave.bulk.magnet.plan import Converged, TopicSample
from topicweave.bulk.omen.plan import Mending
from topicweave.data.feed_workloads import FeedsWorkload
from topicweave.data.mending_workloads import SocialSample, SyntheticLists
from topicweave.errors import BadInput
from topicweave.measures.control import control_per_operation
from topicweave.measures.delivery import Receptions
from topicweave.measures.diameter import topic_diameters
from topicweave.measures.distributions import hops_counts, latency_quantiles
from topicweave.measures.graph import Overlay, TopicGraph, snapshot
from topicweave.measures.overlay import connectivity_measures, degree_measures
from topicweave.measures.similarity import tdi
from topicweave.measures.summary import measure_run
from topicweave.model.ids import Interest
from topicweave.model.workload import Workload
from topicweave.runs.churned import (
    TraceLists,
    UnderChurn,
    VitisWorkload,
    run_under_churn,
)
from topicweave.runs.dissemination import Dissemination, run_dissemination, with_given_rates
from topicweave.runs.events import drawn_events
from topicweave.runs.feed_basics import FeedBasics
from topicweave.runs.feeds import FeedsRun, run_feeds
from topicweave.runs.model_workload import ModelWorkload
from topicweave.runs.trial import Trial, planned_churn, run_trial
from topicweave.sim.churn import always_up, exponential, from_workload
from topicweave.sim.latency_choice import parse_latency
from topicweave.sim.simulation import Simulation
from topicweave.systems.registry import find_system
from topicweave.telemetry.tables import Tables
from topicweave.telemetry.writer import MemoryTelemetry
from topicweave.workloads import generate

DRAIN = 10.0
"""Seconds given to the last event to arrive."""

Result = dict[str, Any]


class GeneratedWorkload(msgspec.Struct, frozen=True, tag="generated"):
    """A synthetic workload (SpiderCast §3.1)."""

    nodes: int
    topics: int = 100
    popularity: str = "rss"
    min_size: int = 10
    max_size: int = 10
    seed: int = 0

    def load(self) -> Workload:
        return generate(self.nodes, self.topics, self.popularity, self.min_size, self.max_size, self.seed)


class StoredWorkload(msgspec.Struct, frozen=True, tag="stored"):
    """A workload in a folder; `fingerprint` is its contents', so that a changed folder is another workload."""

    folder: str
    fingerprint: str = ""

    def load(self) -> Workload:
        return Workload.load(self.folder)


class ChurnModel(msgspec.Struct, frozen=True):
    """Nodes come and go for exponentially distributed times, with a new interest each time (SpiderCast §3.8)."""

    mean_up: float
    mean_down: float
    snapshots: int = 5
    """The duration is cut into so many equal parts; the overlay is looked at after each."""
    grace: float = 2.0
    """Nodes that joined less than this before a snapshot are not counted."""


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """What to run, for how long, and what to look at."""

    system: str
    parameters: dict[str, Any] = {}
    workload: (
        GeneratedWorkload
        | StoredWorkload
        | SyntheticLists
        | SocialSample
        | ModelWorkload
        | TopicSample
        | VitisWorkload
        | FeedsWorkload
    )
    membership: str = "full"
    seed: int = 0
    settle: float = 20.0
    """Virtual seconds until the overlay is looked at; with churn, the whole duration."""
    events: int = 0
    """How many events to publish after that, by random subscribers on topics by their rates."""
    churn: ChurnModel | None = None
    mending: Mending | None = None
    """Instead of a simulation: rounds of churn on a whole overlay (see `topicweave.bulk.omen.mending`)."""
    dissemination: Dissemination | None = None
    """Measure how events spread, and nothing that takes long at ten thousand nodes and topics (Vitis §IV)."""
    under_churn: UnderChurn | None = None
    """The same while nodes come and go; the workload is then a `TraceLists`."""
    feeds: FeedsRun | None = None
    """Feeds over a network with true distances (Rappel §6; see `topicweave.runs.feeds`)."""
    feed_basics: FeedBasics | None = None
    """What Rappel builds on, measured without a simulation: interest locality, filters, networks, coordinates."""
    converged: Converged | None = None
    """What the trees of Magnet and its strawman cost at rest (see `topicweave.bulk.magnet.engine`)."""
    trial: Trial | None = None
    """All that a comparison of systems tells of one (see `topicweave.runs.trial`)."""
    diameters: bool = False
    tdi: int = 0
    """Measure tdi(d) for this d."""
    histogram: bool = False
    """Keep the degree of every node and, of events, the distributions of hops and latency, for figures."""
    live: bool = False
    """Live nodes over real sockets instead of the simulator; see `topicweave.runs.live_run`."""


def run_experiment(experiment: Experiment) -> Result:
    """Carry out an experiment."""
    if experiment.feed_basics is not None:
        return experiment.feed_basics.run()
    workload = experiment.workload.load()
    with seldom_collected():
        return _run(experiment, workload)


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Let Python look for cyclic garbage rarely.

    A large simulation is millions of live objects and next to no cyclic garbage, through all of which Python would go again
    and again: at 3,000 nodes of Vitis that was more than a third of the time.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _run(experiment: Experiment, workload: Workload) -> Result:
    if experiment.feeds is not None:
        return run_feeds(
            experiment.system, experiment.parameters, workload, experiment.feeds, experiment.seed
        )
    if experiment.mending is not None:
        from topicweave.bulk.omen.mending import run_mending

        return run_mending(experiment.system, workload, experiment.mending, experiment.seed)
    if experiment.converged is not None:
        if experiment.converged.level == "messages":
            from topicweave.bulk.magnet.settled import run_settled as run_trees
        else:
            from topicweave.bulk.magnet.engine import run_converged as run_trees

        return run_trees(experiment.system, workload, experiment.converged, experiment.seed)
    if experiment.trial is not None:
        trial = experiment.trial
        simulation, telemetry = _simulate(
            experiment,
            workload,
            churn=planned_churn(trial, workload, experiment.settle, experiment.seed),
            latency=parse_latency(trial.latency, workload, experiment.seed),
        )
        return run_trial(simulation, telemetry, trial, experiment.settle, experiment.events, experiment.seed)
    if experiment.dissemination is not None:
        if experiment.dissemination.level == "cycles":
            from topicweave.bulk.vitis.engine import run_cycled

            return run_cycled(
                experiment.system,
                with_given_rates(experiment.parameters, workload),
                workload,
                experiment.dissemination,
                experiment.settle,
                experiment.seed,
            )
        simulation, telemetry = _simulate(experiment, workload)
        return run_dissemination(
            simulation, telemetry, experiment.dissemination, experiment.settle, experiment.seed
        )
    if experiment.live:
        from topicweave.runs.live_run import run_live

        return run_live(experiment, workload, DRAIN)
    if experiment.under_churn is not None:
        if not isinstance(experiment.workload, TraceLists):
            raise BadInput("under_churn: the workload must be a TraceLists")
        simulation, telemetry = _simulate(experiment, workload, churn=from_workload(workload))
        return run_under_churn(
            simulation, telemetry, experiment.workload, experiment.under_churn, experiment.seed
        )
    subscriptions = workload.tables()["subscriptions"]
    if experiment.churn is not None:
        result = _run_with_churn(experiment, workload, experiment.churn)
    else:
        result = _run_static(experiment, workload, subscriptions)
    if experiment.tdi:
        result[f"tdi_{experiment.tdi}"] = tdi(subscriptions, experiment.tdi)
    return result


def _simulate(experiment: Experiment, workload: Workload, **more: Any) -> tuple[Simulation, MemoryTelemetry]:
    system = find_system(experiment.system)
    telemetry = MemoryTelemetry(
        run=experiment.system,
        node_names=dict(zip(workload.node_ids, workload.node_names, strict=True)),
        topic_names=dict(zip(workload.topic_ids, workload.topic_names, strict=True)),
    )
    simulation = Simulation(
        workload,
        system,
        system.settings(**with_given_rates(experiment.parameters, workload)),
        seed=experiment.seed,
        membership=Membership.parse(experiment.membership),
        telemetry=telemetry,
        # What these measure has nothing to do with control traffic.
        count_control=experiment.dissemination is None and experiment.under_churn is None,
        **more,
    )
    return simulation, telemetry


def _run_static(experiment: Experiment, workload: Workload, subscriptions: pa.Table) -> Result:
    churn = from_workload(workload) if len(workload.churn) else always_up(workload.nodes)
    simulation, telemetry = _simulate(experiment, workload, churn=churn)
    simulation.run(experiment.settle)
    simulation.snapshot()
    if experiment.events:
        publish_events(simulation, experiment.events, experiment.seed)
        simulation.run(simulation.now + DRAIN)
        # Bring the control traffic up to date; the overlay is measured as it was before the events.
        simulation.flush_control()
    tables = telemetry.tables()
    up = sorted(workload.node_names[index] for index in simulation.up())
    result: Result = {
        "nodes": len(up),
        "virtual_seconds": simulation.now,
        "kernel_events": simulation.kernel.events,
    }
    if experiment.events:
        churn_table = workload.tables().get("churn")
        result |= measure_run(
            tables, subscriptions, nodes=workload.node_names, churn=churn_table, window=DRAIN
        )
    else:
        result |= _overlay_measures(tables, subscriptions, pa.array(up), experiment.diameters)
    if experiment.histogram:
        result["degrees"] = [simulation.node(index).degree for index in simulation.up()]
        if experiment.events:
            receptions = Receptions.of(tables.publishes, tables.deliveries)
            result["hops_counts"] = hops_counts(receptions)
            result["latency_quantiles"] = latency_quantiles(receptions)
    return result | simulation.gauges()


def publish_events(simulation: Simulation, events: int, seed: int) -> None:
    """Schedule events over the next seconds: topics by their rates, publishers among those who want the topic."""
    for number, (publisher, topic) in enumerate(drawn_events(simulation.workload, events, seed)):
        simulation.at(simulation.now + 5.0 * number / events, simulation.publish, publisher, topic)
    simulation.run(simulation.now + 5.0)


def _overlay_measures(
    tables: Tables, subscriptions: pa.Table, nodes: pa.Array, diameters: bool, time: float | None = None
) -> Result:
    overlay = Overlay.of(snapshot(tables.links, time), nodes)
    topics = TopicGraph.of(overlay, subscriptions)
    result: Result = {**degree_measures(overlay), **connectivity_measures(topics)}
    if diameters:
        per_topic = topic_diameters(topics)
        result["topic_diameter_max"] = int(per_topic.max(initial=0))
        result["topic_diameter_mean"] = float(per_topic.mean()) if len(per_topic) else 0.0
    return result


def _run_with_churn(experiment: Experiment, workload: Workload, model: ChurnModel) -> Result:
    """Snapshots of the overlay while nodes come and go; nodes get a new interest with every life."""
    lives = _interests_of_lives(experiment, workload)
    simulation, telemetry = _simulate(
        experiment,
        workload,
        churn=exponential(workload.nodes, model.mean_up, model.mean_down, experiment.settle, experiment.seed),
        interest_of_life=lives,
    )
    views = []
    step = experiment.settle / model.snapshots
    operations_before = 0
    for number in range(1, model.snapshots + 1):
        simulation.run(number * step)
        simulation.snapshot()
        if number == 1:
            # The first part includes the start, when everybody joins at once.
            operations_before = simulation.churn_operations
        views.append(_snapshot_under_churn(simulation, telemetry.tables(), model.grace))
    tables = telemetry.tables()
    traffic = control_per_operation(
        tables.control,
        simulation.system.control_kinds,
        simulation.churn_operations - operations_before,
        start=step,
    )
    return {
        "nodes": sum(view["nodes"] for view in views) / len(views),
        "degree_mean": sum(view["degree_mean"] for view in views) / len(views),
        "degree_max": max(view["degree_max"] for view in views),
        "partitioned_topics": max(view["partitioned_topics"] for view in views),
        "snapshots": views,
        "churn_operations": simulation.churn_operations,
        "messages_per_operation": traffic.messages,
        "bytes_per_operation": traffic.bytes,
    }


def _snapshot_under_churn(simulation: Simulation, tables: Tables, grace: float) -> Result:
    settled = [
        index for index in simulation.up() if simulation.hosts[index].up_since <= simulation.now - grace
    ]
    names = simulation.workload.node_names
    rows = [
        (names[index], topic) for index in settled for topic in sorted(simulation.node(index).subscriptions)
    ]
    current = pa.table({"node": [name for name, _ in rows], "topic": [f"{topic:016x}" for _, topic in rows]})
    nodes = pa.array(sorted(names[index] for index in settled))
    measures = _overlay_measures(tables, current, nodes, diameters=False, time=simulation.now)
    return {"time": simulation.now, "nodes": len(settled), **measures}


def _interests_of_lives(experiment: Experiment, workload: Workload) -> Any:
    """Every life of a node takes the list of another node of a larger workload of the same kind."""
    spec = experiment.workload
    assert isinstance(spec, GeneratedWorkload)
    pool = msgspec.structs.replace(spec, nodes=20 * spec.nodes).load()

    def interest(index: int, life: int) -> Interest:
        place = (index + life * workload.nodes) % pool.nodes
        return frozenset(pool.topic_ids[topic] for topic in pool.interests(place).tolist())

    return interest
