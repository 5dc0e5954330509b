"""A trial: what somebody who has to choose a system wants to know of it, from one run on their workload.

Three acts. The overlay settles and is looked at. Events are published (while nodes come and go, if so asked),
and it is measured who got them and at what cost. Then a share of the nodes, the best connected one among
them, crashes without a word, and probes on some topics, every second, show how long it takes until everybody
left is served again.
"""

from __future__ import annotations

import math
import random
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from topicweave.blocks.membership import Membership
from topicweave.blocks.views import Directory
from topicweave.errors import BadInput
from topicweave.measures.columns import names_array
from topicweave.measures.control import total, traffic_by_kind
from topicweave.measures.course import course
from topicweave.measures.delivery import Receptions, deliveries, latency_measures, of_those_there
from topicweave.measures.distributions import hops_counts, latency_quantiles, noise_quantiles
from topicweave.measures.footprint import deep_size
from topicweave.measures.interests import Interests
from topicweave.measures.summary import measure_run
from topicweave.measures.uptime import Uptime
from topicweave.model.event import Event, EventId
from topicweave.model.ids import TopicId
from topicweave.model.workload import Workload
from topicweave.runs.events import DRAIN, PUBLISHING, drawn_events
from topicweave.runs.likeness import cost_by_likeness
from topicweave.runs.picture import picture
from topicweave.runs.run import Result
from topicweave.runs.simulated import Simulated
from topicweave.sim.churn import Change, Churn, always_up, exponential, from_workload
from topicweave.sim.faults import lossy
from topicweave.sim.host import Host
from topicweave.sim.latency_choice import parse_latency, refuse_unknown
from topicweave.sim.settling import settle
from topicweave.sim.simulation import Simulation
from topicweave.telemetry.tables import Tables
from topicweave.telemetry.writer import MemoryTelemetry

SESSIONS = "sessions"
CHURN_SPREAD, CHURN_PARTS = 60.0, 12
"""Seconds over which events are published where nodes come and go, so that they do meanwhile; and in how many
parts that time is looked at.
"""
GRACE = 10.0
"""Seconds after which a newcomer is expected to receive what is published."""
BEFORE = 3
"""Probes before the crash: what the system reached without one."""
PROBED_TOPICS = 20
REPAIRED = 0.99
"""Of what was reached before the crash."""
WEIGHED_NODES = 20
RANGES = (
    ("settle", 0, math.inf),
    ("settle_limit", 0, math.inf),
    ("counted_from", 0, math.inf),
    ("events", 0, math.inf),
    ("loss", 0, 1),
    ("crash", 0, 0.9),
    ("repair_seconds", 0, math.inf),
)
"""Of the fields that are numbers: the least and the most."""


class Trial(Simulated, frozen=True, kw_only=True, tag="trial"):
    """What happens to the system."""

    settle: float = 20.0
    """Virtual seconds until the overlay is looked at, or more: until it has settled."""
    settle_limit: float = 0.0
    """How long to wait for that at most; 0: not at all. Where nodes come and go meanwhile (`trace`), nothing
    settles.
    """
    counted_from: float = 0.0
    """Virtual seconds before which an overlay is not looked at, though it may have settled: so that systems compare."""
    events: int = 200
    latency: str = "50ms"
    loss: float = 0.0
    """The share of messages that get lost, of all that are sent, drawn for each."""
    churn: str = ""
    """Nothing: everybody stays. `trace`: the workload's own, from the start; `sessions`: the same, once the
    overlay has settled. `600/60`: seconds up and away, exponentially distributed.
    """
    crash: float = 0.1
    """The share of nodes that crashes after the events; 0 leaves that out, and so do no events."""
    repair_seconds: int = 20
    """How long probes go on after the crash."""

    def __post_init__(self) -> None:
        for name, least, most in RANGES:
            value = getattr(self, name)
            if not least <= value <= most or value == math.inf:
                raise ValueError(f"{name} {value:g}: choose a number from {least:g} to {most:g}")
        Membership.parse(self.membership)
        refuse_unknown(self.latency)
        if self.churn not in ("", "trace", SESSIONS):
            _up_and_away(self.churn)

    def run(self) -> Result:
        """Numbers, and lists for figures."""
        workload = self.workload.load()
        churn = planned_churn(self.churn, workload, self.seed)
        simulation, telemetry = self.simulate(
            workload,
            churn=churn if self.churn == "trace" else Churn(churn.up_at_start, ()),
            latency=parse_latency(self.latency, workload, self.seed),
            faults=lossy(self.loss),
        )
        settled_after = math.nan
        if self.settle_limit and self.churn != "trace":
            settled_after = settle(simulation, self.settle, self.settle_limit)
        else:
            simulation.run(self.settle)
        simulation.run(max(simulation.now, self.counted_from))
        if self.churn != "trace":
            now = simulation.now
            simulation.plan([Change(now + change.time, change.node, change.up) for change in churn.changes])
        simulation.snapshot()
        result: Result = {
            "nodes": len(simulation.up()),
            "settle_seconds": simulation.now,
            "settled_after": settled_after,
            "degrees": [simulation.node(index).degree for index in simulation.up()],
            "memory_bytes": _memory(simulation, self.seed),
            **simulation.gauges(),
        }
        result |= self._spread(simulation, telemetry)
        if self.crash and self.events and len(simulation.up()) > 2:
            result |= crash_and_probe(simulation, self.crash, self.repair_seconds, self.seed)
        result["virtual_seconds"] = simulation.now
        result["kernel_events"] = simulation.kernel.events
        return result

    def _spread(self, simulation: Simulation, telemetry: MemoryTelemetry) -> Result:
        """Publish, and measure who got what at what cost."""
        workload, events = simulation.workload, self.events
        lasts = CHURN_SPREAD if self.churn else PUBLISHING
        start = simulation.now
        for number, (publisher, topic) in enumerate(drawn_events(workload, events, self.seed)):
            simulation.at(start + lasts * number / events, simulation.publish, publisher, topic)
        population = _watched(simulation, start, lasts) if self.churn else []
        simulation.run(start + lasts + DRAIN)
        simulation.flush_control()
        tables = telemetry.tables()
        changes = _churn_table(workload, simulation) if self.churn else None
        grace = GRACE if self.churn else 0.0
        result: Result = measure_run(
            tables,
            workload.tables()["subscriptions"],
            nodes=workload.node_names,
            churn=changes,
            start=start,
            end=simulation.now,
            grace=grace,
            window=DRAIN,
        )
        receptions = Receptions.of(tables.publishes, tables.deliveries)
        everyone = names_array(workload.node_names)
        uptime = None if changes is None else Uptime(everyone, changes)
        _, result["deliveries_expected"] = deliveries(
            receptions,
            Interests.of(workload.tables()["subscriptions"], everyone),
            uptime,
            grace=grace,
            window=DRAIN,
        )
        joining = total(traffic_by_kind(tables.control, end=start).values()).per(workload.nodes)
        result |= {"joining_messages": joining.messages, "joining_bytes": joining.bytes}
        timed = receptions
        if uptime is not None:
            timed = of_those_there(receptions, everyone, uptime, grace)
            result |= latency_measures(timed)
        # A system that finds others by itself has no membership to tell apart: that is not one that costs nothing.
        by_itself = simulation.system.needs == "nothing"
        for sort in ("messages", "bytes"):
            kinds = (f"control_{sort}.{kind}" for kind in sorted(simulation.membership_kinds))
            taken = sum(result.get(kind, 0.0) for kind in kinds)
            result[f"membership_{sort}"] = math.nan if by_itself else taken
        if population and events:
            result["churn_curve"] = _churn_curve(tables, workload, changes, population, grace)
        if events:
            result["hops_counts"] = hops_counts(receptions)
            result["latency_quantiles"] = latency_quantiles(timed)
            result["noise_quantiles"] = noise_quantiles(receptions)
            result["cost_by_likeness"] = cost_by_likeness(simulation, receptions, self.seed)
        result["picture"] = picture(tables, workload, receptions, self.seed)
        return result


def planned_churn(churn: str, workload: Workload, seed: int) -> Churn:
    """Who comes and goes: from the start (`trace`), or from when the overlay has settled (`sessions`, or a
    drawn one).
    """
    if not churn:
        return always_up(workload.nodes)
    if churn == "trace":
        if not workload.churn.size:
            raise BadInput(
                "churn 'trace': this workload has no table of joins and leaves; say '600/60', for instance"
            )
        return from_workload(workload)
    if churn == SESSIONS:
        up_at_start, changes, _ = from_workload(workload)
        # Whoever comes at the trace's first moment is there while the overlay settles.
        first = {change.node for change in changes if change.time == 0.0 and change.up}
        return Churn(up_at_start | first, tuple(change for change in changes if change.time > 0.0))
    up, away = _up_and_away(churn)
    # Whoever is away at first is away until its first return.
    return exponential(workload.nodes, up, away, CHURN_SPREAD + DRAIN, seed)


def _up_and_away(churn: str) -> tuple[float, float]:
    up, _, away = churn.partition("/")
    try:
        seconds = float(up), float(away)
    except ValueError:
        seconds = (0.0, 0.0)
    if not all(0.0 < one < math.inf for one in seconds):
        raise BadInput(f"churn {churn!r}: say 'trace', or seconds up and away as in '600/60'")
    return seconds


def _watched(simulation: Simulation, start: float, spread: float) -> list[tuple[float, int, float]]:
    """Run on through the churn: (time, nodes that are up, their mean number of links), part by part."""
    population = []
    for part in range(CHURN_PARTS + 1):
        simulation.run(start + part * spread / CHURN_PARTS)
        up = simulation.up()
        links = [simulation.node(index).degree for index in up]
        population.append((simulation.now, len(up), sum(links) / len(links) if links else 0.0))
    return population


def _churn_curve(
    tables: Tables,
    workload: Workload,
    changes: pa.Table | None,
    population: list[tuple[float, int, float]],
    grace: float,
) -> list[list[float | None]]:
    """(seconds since the start, nodes, links per node, share served) of each part; None where nobody was to
    be served.
    """
    everyone = names_array(workload.node_names)
    interests = Interests.of(workload.tables()["subscriptions"], everyone)
    edges = [time for time, _, _ in population]
    parts = course(tables, interests, Uptime(everyone, changes), edges, grace=grace, window=DRAIN)
    return [
        [time - edges[0], nodes, links, None if np.isnan(part["hit_ratio"]) else part["hit_ratio"]]
        for (time, nodes, links), part in zip(population, parts, strict=False)
    ]


def _churn_table(workload: Workload, simulation: Simulation) -> pa.Table:
    names = workload.node_names
    changes = simulation.churn.changes
    away = sorted(set(range(workload.nodes)) - simulation.churn.up_at_start - {c.node for c in changes})
    # A node that never comes is told apart from one that always was there by leaving before everything.
    rows = [(-1.0, names[node], "leave") for node in away]
    rows += [(change.time, names[change.node], "join" if change.up else "leave") for change in changes]
    return pa.table(
        {
            "time": pa.array([time for time, _, _ in rows], pa.float64()),
            "node": pa.array([node for _, node, _ in rows], pa.string()),
            "change": pa.array([change for _, _, change in rows], pa.string()),
        }
    )


def _memory(simulation: Simulation, seed: int) -> float:
    """Bytes that a node keeps, on average over a sample; what belongs to the simulator is left out."""
    up = simulation.up()
    chosen = random.Random(f"weighed/{seed}").sample(up, min(WEIGHED_NODES, len(up)))
    left_out = (Host, Directory, random.Random, type(simulation.parameters))
    sizes = [deep_size(simulation.node(index), left_out) for index in sorted(chosen)]
    return sum(sizes) / len(sizes) if sizes else float("nan")


# After a crash.


class _Probe(NamedTuple):
    second: int
    event: EventId
    expected: frozenset[int]


def crash_and_probe(simulation: Simulation, crash: float, seconds: int, seed: int) -> Result:
    """Crash a share of the nodes; the share of probes that arrives, second by second, and how long it took to mend."""
    rng = random.Random(f"repair/{seed}")
    got: dict[EventId, set[int]] = {}

    def delivered(host: Host, event: Event) -> None:
        got.setdefault(event.id, set()).add(host.index)

    # What is measured is this crash, and not whoever else would go meanwhile.
    simulation.end_churn()
    simulation.on_delivery(delivered)
    wanting = _wanting(simulation)
    shared = sorted(topic for topic, subscribers in wanting.items() if len(subscribers) > 1)
    topics = rng.sample(shared, min(PROBED_TOPICS, len(shared)))
    probes: list[_Probe] = []
    for second in range(-BEFORE, seconds):
        if second == 0:
            for index in _victims(simulation, crash, rng):
                simulation.stop(index, orderly=False)
        probes += _publish_probes(simulation, topics, second, rng)
        simulation.run(simulation.now + 1.0)
    simulation.run(simulation.now + DRAIN / 2)
    alive = set(simulation.up())
    curve: list[tuple[int, float]] = []
    for second in range(-BEFORE, seconds):
        pairs = [
            (probe.expected & alive, got.get(probe.event, set()))
            for probe in probes
            if probe.second == second
        ]
        expected = sum(len(wanting) for wanting, _ in pairs)
        if expected:
            curve.append((second, sum(len(wanting & reached) for wanting, reached in pairs) / expected))
    return {"repair_time": repair_time(curve), "repair_curve": [list(point) for point in curve]}


def repair_time(curve: list[tuple[int, float]]) -> float:
    """Seconds from the crash until every later probe reached (nearly) as many as those before it did.

    inf if the last one did not; nan if nothing could be probed.

    >>> repair_time([(-1, 1.0), (0, 0.8), (1, 0.9), (2, 1.0), (3, 1.0)])
    2.0
    """
    before = [share for second, share in curve if second < 0]
    after = [(second, share) for second, share in curve if second >= 0]
    if not before or not after:
        return float("nan")
    enough = REPAIRED * sum(before) / len(before)
    missed = [second for second, share in after if share < enough]
    if not missed:
        return 0.0
    return float("inf") if missed[-1] == after[-1][0] else float(missed[-1] + 1)


def _victims(simulation: Simulation, share: float, rng: random.Random) -> list[int]:
    """The node with the most links, since sooner or later it is that one; the others at random."""
    up = simulation.up()
    hub = max(up, key=lambda index: (simulation.node(index).degree, -index))
    others = [index for index in up if index != hub]
    return [hub, *rng.sample(others, max(0, min(len(others) - 1, round(share * len(up)) - 1)))]


def _wanting(simulation: Simulation) -> dict[TopicId, list[int]]:
    """Who is to be served, by topic: a newcomer is not yet."""
    wanting: dict[TopicId, list[int]] = {}
    for index in simulation.up():
        if simulation.now - simulation.hosts[index].up_since < GRACE:
            continue
        for topic in simulation.node(index).subscriptions:
            wanting.setdefault(topic, []).append(index)
    return wanting


def _publish_probes(
    simulation: Simulation, topics: list[TopicId], second: int, rng: random.Random
) -> list[_Probe]:
    """One event on each topic that still has two subscribers, by one of them."""
    wanting = _wanting(simulation)
    place = {topic_id: topic for topic, topic_id in enumerate(simulation.workload.topic_ids)}
    probes = []
    for topic in topics:
        if len(wanting.get(topic, ())) > 1:
            publisher = rng.choice(wanting[topic])
            receipt = simulation.publish(publisher, place[topic])
            probes.append(_Probe(second, receipt.event.id, frozenset(wanting[topic]) - {publisher}))
    return probes
