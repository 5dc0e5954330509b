"""Finding topics by patterns, measured: which share of the matching names is found, after how long, and what
it takes. See docs/patterns.md.

Every topic of the workload is a name that one of its subscribers publishes on. A name without levels is put
below a zone. Some nodes watch patterns: a zone of their own, and one wildcard in the middle. What they find
is compared with all names that match, one by one.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from topicweave.blocks.membership import Membership
from topicweave.blocks.topic_directory.messages import KINDS
from topicweave.blocks.topic_names import NameDirectory, NamesParameters
from topicweave.measures.control import traffic_by_kind
from topicweave.model.ids import NodeId, TopicId
from topicweave.model.patterns import matches
from topicweave.model.workload import Workload
from topicweave.runs.run import OnSystem, Result
from topicweave.sim.churn import Churn
from topicweave.sim.simulation import Simulation
from topicweave.systems.naming import with_names
from topicweave.systems.registry import find_system
from topicweave.systems.system import System
from topicweave.telemetry.writer import MemoryTelemetry

JOINING, IDLE, SPREADING = 10.0, 15.0, 15.0
"""Seconds: nodes join; the ring alone is measured; names are announced."""
MENDED = 30.0
"""Seconds from a crash until everything should be found again."""


def leveled(topic: str, number: int, zones: int) -> str:
    """A topic's name, with levels.

    >>> leveled("a/b", 3, 10), leveled("t13", 13, 10)
    ('a/b', 'zone/3/device/t13/temperature')
    """
    return topic if "/" in topic else f"zone/{number % zones}/device/{topic}/temperature"


def pattern_for(name: str, wide: bool) -> str:
    """A pattern that matches a name and others: all below its first two levels, or one level left open.

    >>> [pattern_for("zone/3/device/t13/temperature", wide) for wide in (False, True)]
    ['zone/3/#', 'zone/3/device/+/temperature']
    >>> pattern_for("a/b", wide=False), pattern_for("a/b", wide=True)
    ('a/#', 'a/+')
    """
    levels = name.split("/")
    if not wide:
        return "/".join([*levels[: min(2, len(levels) - 1)], "#"])
    open_one = max(1, len(levels) - 2) if len(levels) > 2 else 1
    return "/".join("+" if place == open_one else level for place, level in enumerate(levels))


class _Sight(NamedTuple):
    """A pattern of a watcher."""

    node: NodeId
    pattern: str


class NamesObserved:
    """What is published, who watches, and what each was told, when."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self.directories: dict[NodeId, NameDirectory] = {}
        self.published: dict[str, NodeId] = {}
        self.sights: dict[_Sight, dict[str, float]] = {}
        self.forgotten: dict[tuple[_Sight, str], float] = {}
        self.incomplete = 0

    def publish(self, node: NodeId, name: str) -> None:
        self.published[name] = node
        self.directories[node].publishes(name)

    def end(self, name: str) -> None:
        self.directories[self.published.pop(name)].ends(name)

    def watch(self, node: NodeId, pattern: str) -> None:
        names = self.directories[node]
        self.sights.setdefault(_Sight(node, pattern), {})

        def found(pattern: str, name: str, _topic: TopicId, _age: float, _by: NodeId | None) -> None:
            self.sights[_Sight(node, pattern)][name] = self._simulation.now

        def gone(pattern: str, name: str, _topic: TopicId) -> None:
            sight = _Sight(node, pattern)
            del self.sights[sight][name]
            self.forgotten[sight, name] = self._simulation.now

        def incomplete(_pattern: str, _prefix: str, _why: str) -> None:
            self.incomplete += 1

        names.on_found, names.on_gone, names.on_incomplete = found, gone, incomplete
        names.watch(pattern)

    def crashed(self, nodes: Iterable[NodeId]) -> list[str]:
        """Names that nobody publishes on any more."""
        down = set(nodes)
        self.sights = {sight: names for sight, names in self.sights.items() if sight.node not in down}
        lost = [name for name, node in self.published.items() if node in down]
        for name in lost:
            del self.published[name]
        return lost

    def shares(self, unless: Iterable[str] = ()) -> tuple[float, int]:
        """Of all that watchers should know, the share that they do; and how much they know that is not there."""
        excused = set(unless)
        expected = found = odd = 0
        for sight, names in self.sights.items():
            right = {name for name in self.published if matches(sight.pattern, name)}
            expected += len(right)
            found += len(right & names.keys())
            odd += len(names.keys() - right - excused)
        return found / expected if expected else 1.0, odd

    def found_after(self, names: Iterable[str], start: float) -> list[float]:
        """Seconds from a moment until each watcher found each of these names; infinite if it has not."""
        return sorted(
            told.get(name, float("inf")) - start
            for name in names
            for sight, told in self.sights.items()
            if matches(sight.pattern, name)
        )

    def gone_after(self, names: Iterable[str], start: float) -> list[float]:
        return sorted(
            self.forgotten.get((sight, name), float("inf")) - start
            for name in names
            for sight in self.sights
            if matches(sight.pattern, name)
        )


def quantile(values: list[float], share: float) -> float:
    """Of values in order; of none, nothing.

    >>> quantile([1.0, 2.0, 3.0], 0.5), quantile([], 0.5)
    (2.0, 0.0)
    """
    return values[min(len(values) - 1, int(share * len(values)))] if values else 0.0


class Patterned(OnSystem, frozen=True, kw_only=True, tag="patterns"):
    """Names and patterns beside a system: found, forgotten, found again after a crash."""

    membership: str = "directory"
    settle: float = 30.0
    zones: int = 20
    watchers: int = 20
    """Nodes that watch two patterns each."""
    fresh: int = 40
    """Names that are new, and as many that end, once all is quiet."""
    crash: float = 0.1
    observe: float = 60.0
    """Seconds over which traffic is measured."""
    names: NamesParameters = NamesParameters()

    def run(self) -> Result:
        workload = self.workload.load()
        system = find_system(self.system)
        telemetry = self.telemetry(workload)
        return self.measured(workload, system, system.settings(**self.given(workload)), telemetry)

    def measured(
        self, workload: Workload, system: System, settings: object, telemetry: MemoryTelemetry
    ) -> Result:
        made: dict[NodeId, NameDirectory] = {}
        simulation = Simulation(
            workload,
            with_names(system, made.__setitem__, self.names),
            settings,
            seed=self.seed,
            membership=Membership.parse(self.membership),
            churn=Churn(frozenset(range(workload.nodes)), (), start_window=JOINING),
            telemetry=telemetry,
        )
        simulation.seeds = (0, 1, 2)
        observed = NamesObserved(simulation)
        observed.directories = made
        rng = random.Random(f"patterns/{self.seed}")
        simulation.run(self.settle)
        result = {"nodes": workload.nodes, **_prefixed("ring", self._traffic(simulation, telemetry, IDLE))}
        result |= self._first(simulation, observed, rng)
        result |= _prefixed("all", self._traffic(simulation, telemetry, self.observe))
        result |= self._news(simulation, observed, rng)
        result |= self._crash(simulation, observed, rng)
        result |= {"incomplete": observed.incomplete, **simulation.gauges()}
        return result

    def _traffic(
        self, simulation: Simulation, telemetry: MemoryTelemetry, seconds: float
    ) -> dict[str, float]:
        """Messages and bytes of the ring and all that it carries, per node and second."""
        simulation.flush_control()
        start = simulation.now
        simulation.run(start + seconds)
        simulation.flush_control()
        by_kind = traffic_by_kind(telemetry.tables().control, start=start, end=simulation.now)
        used = [traffic for kind, traffic in by_kind.items() if kind in KINDS]
        node_seconds = len(simulation.up()) * seconds
        return {
            "messages": sum(one.messages for one in used) / node_seconds,
            "bytes": sum(one.bytes for one in used) / node_seconds,
        }

    def _first(self, simulation: Simulation, observed: NamesObserved, rng: random.Random) -> Result:
        workload, start = simulation.workload, simulation.now
        publishers: dict[int, int] = {}
        for index in range(workload.nodes):
            for topic in workload.interests(index).tolist():
                publishers.setdefault(topic, index)
        ids = workload.node_ids
        for topic, index in publishers.items():
            observed.publish(ids[index], leveled(workload.topic_names[topic], topic, self.zones))
        names = list(observed.published)
        for index in rng.sample(range(workload.nodes), min(self.watchers, workload.nodes)):
            for wide in (False, True):
                observed.watch(ids[index], pattern_for(rng.choice(names), wide))
        simulation.run(start + SPREADING)
        after = observed.found_after(names, start)
        share, odd = observed.shares()
        return {
            "names": len(names),
            "found": share,
            "odd": odd,
            "first_found_p50": quantile(after, 0.5),
            "first_found_p95": quantile(after, 0.95),
        }

    def _news(self, simulation: Simulation, observed: NamesObserved, rng: random.Random) -> Result:
        """New names, then the end of as many."""
        start = simulation.now
        fresh = self._publish_fresh(simulation, observed, rng, "new")
        simulation.run(start + SPREADING)
        found = observed.found_after(fresh, start)
        start = simulation.now
        for name in fresh:
            observed.end(name)
        simulation.run(start + SPREADING)
        gone = observed.gone_after(fresh, start)
        share, odd = observed.shares()
        return {
            "found_p50": quantile(found, 0.5),
            "found_p95": quantile(found, 0.95),
            "gone_p50": quantile(gone, 0.5),
            "gone_p95": quantile(gone, 0.95),
            "found_quiet": share,
            "odd_quiet": odd,
        }

    def _publish_fresh(
        self, simulation: Simulation, observed: NamesObserved, rng: random.Random, word: str
    ) -> list[str]:
        """Names that patterns match already, but for one level."""
        models, up = sorted(observed.published), simulation.up()
        made = []
        for number in range(self.fresh):
            levels = rng.choice(models).split("/")
            levels[max(1, len(levels) - 2)] = f"{word}{number}"
            made.append("/".join(levels))
            observed.publish(simulation.hosts[rng.choice(up)].name, made[-1])
        return made

    def _crash(self, simulation: Simulation, observed: NamesObserved, rng: random.Random) -> Result:
        """A share of the nodes crashes; half a minute later there are new names; then the names of the crashed pass."""
        start = simulation.now
        down = rng.sample(simulation.up(), round(self.crash * len(simulation.up())))
        for index in down:
            simulation.stop(index, orderly=False)
        lost = observed.crashed(simulation.hosts[index].name for index in down)
        for index in down:
            del observed.directories[simulation.hosts[index].name]
        simulation.run(start + MENDED)
        share, odd = observed.shares(unless=lost)
        moment = simulation.now
        fresh = self._publish_fresh(simulation, observed, rng, "later")
        simulation.run(moment + SPREADING)
        found = observed.found_after(fresh, moment)
        simulation.run(start + self.names.lasts * self.names.renew + MENDED)
        gone = observed.gone_after(lost, start)
        share_end, odd_end = observed.shares()
        return {
            "found_after_crash": share,
            "odd_after_crash": odd,
            "crash_found_p50": quantile(found, 0.5),
            "crash_found_p95": quantile(found, 0.95),
            "crash_gone_p50": quantile(gone, 0.5),
            "crash_gone_max": quantile(gone, 1.0),
            "found_end": share_end,
            "odd_end": odd_end,
        }


def _prefixed(word: str, values: Mapping[str, float]) -> dict[str, float]:
    return {f"{word}_{name}": value for name, value in values.items()}
