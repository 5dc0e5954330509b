"""Feeds over a network with true distances: the runs behind Rappel's figures 7 to 11.

Landmarks and publishers are up from the start; subscribers come one after another within a window once the landmarks have their places.
Then updates are published while nodes fail, return or come and go, and everything the figures need is written down. Latencies and
distances here are one way, in seconds.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from topicweave.blocks.bloom import may_contain
from topicweave.data.availability import host_sessions
from topicweave.data.feed_workloads import LANDMARKS
from topicweave.data.networks import BuiltNetwork, NetworkSpec
from topicweave.model.event import Event, EventId
from topicweave.model.ids import NodeId
from topicweave.model.workload import Workload
from topicweave.port import EventMessage
from topicweave.sim.churn import Change, Churn
from topicweave.sim.faults import Crash, Fault
from topicweave.sim.host import Host
from topicweave.sim.simulation import Simulation
from topicweave.systems.rappel import RappelNode
from topicweave.systems.registry import find_system
from topicweave.telemetry.writer import MemoryTelemetry

Result = dict[str, Any]
FloatArray = npt.NDArray[np.float64]

LANDMARKS_READY = 30.0
PAYLOAD = bytes(1024)
"""§6.1.5: updates of 1 KB."""


class Failure(msgspec.Struct, frozen=True):
    """A share of the subscribers stops at once and comes back, with what they knew (Fig. 7)."""

    share: float
    start: float
    end: float


class ContinuousChurn(msgspec.Struct, frozen=True):
    """Subscribers follow hosts of a real availability trace, its time stretched so that so many join per minute (Fig. 8b)."""

    joins_per_minute: float
    observers: int = 10
    """The first subscribers stay up."""


class FeedsRun(msgspec.Struct, frozen=True):
    """What happens, and what to write down."""

    network: NetworkSpec = NetworkSpec()
    duration: float = 14_400.0
    window: float = 600.0
    """Within which the subscribers start."""
    update_every: float = 60.0
    """Each feed publishes so often; 0: not at all."""
    update_from: float = 0.0
    last_update_of_all: bool = False
    """One update of every feed at the end."""
    failure: Failure | None = None
    churn: ContinuousChurn | None = None
    control: bool = False
    """Count control messages, over the last third of the run."""
    series_every: float = 0.0
    """Follow the friends' coverage over time."""


def run_feeds(
    system: str, parameters: dict[str, Any], workload: Workload, spec: FeedsRun, seed: int
) -> Result:
    """Carry out one run."""
    return _Run(system, parameters, workload, spec, seed).carry_out()


class _Run:
    def __init__(
        self, system: str, parameters: dict[str, Any], workload: Workload, spec: FeedsRun, seed: int
    ) -> None:
        self.spec = spec
        self.workload = workload
        self.feeds = workload.topics
        self.first = LANDMARKS + self.feeds
        """The first subscriber."""
        found = find_system(system)
        self.network: BuiltNetwork = spec.network.build(workload.nodes, LANDMARKS)
        settings: dict[str, Any] = {
            "publishers": {
                topic: workload.node_ids[LANDMARKS + number]
                for number, topic in enumerate(workload.topic_ids)
            }
        }
        if system == "rappel":
            settings |= {"landmarks": tuple(workload.node_ids[:LANDMARKS]), "void_period": 0.0}
        self.telemetry = (
            MemoryTelemetry(
                run=system,
                node_names=dict(zip(workload.node_ids, workload.node_names, strict=True)),
                topic_names=dict(zip(workload.topic_ids, workload.topic_names, strict=True)),
            )
            if spec.control
            else None
        )
        churn, faults = self._comings_and_goings(random.Random(f"feeds/{seed}"))
        self.simulation = Simulation(
            workload,
            found,
            found.settings(**{**settings, **parameters}),
            seed=seed,
            latency=self.network.latency,
            churn=churn,
            faults=faults,
            telemetry=self.telemetry,
        )
        self.index = {node_id: index for index, node_id in enumerate(workload.node_ids)}
        self.published: dict[EventId, float] = {}
        self.up_then: dict[EventId, npt.NDArray[np.bool_]] = {}
        """Who was up when an update was published: what others pull when they come back is late for good reason."""
        self.delays: dict[EventId, dict[int, float]] = {}
        self.noise = 0
        self.receptions: npt.NDArray[np.int64] = np.zeros(workload.nodes, np.int64)
        self.sends: npt.NDArray[np.int64] = np.zeros(workload.nodes, np.int64)
        self.simulation.on_delivery(self._delivered)
        self.simulation.on_reception(self._received)
        self.pulled: set[tuple[EventId, int]] = set()
        self.rejoins_before: dict[int, int] = {}

    # What happens.

    def _comings_and_goings(self, rng: random.Random) -> tuple[Churn, list[Fault]]:
        spec = self.spec
        subscribers = range(self.first, self.workload.nodes)
        changes = [Change(LANDMARKS_READY + rng.random() * spec.window, index, True) for index in subscribers]
        faults: list[Fault] = []
        if spec.failure is not None:
            failing = rng.sample(list(subscribers), round(spec.failure.share * len(subscribers)))
            faults = [Crash(spec.failure.start, spec.failure.end, index, True) for index in failing]
        if spec.churn is not None:
            settled = LANDMARKS_READY + spec.window
            staying = self.first + spec.churn.observers
            changes = [change for change in changes if change.node < staying]
            for index, sessions in zip(
                range(staying, self.workload.nodes), self._sessions(rng, settled), strict=False
            ):
                (first, _), *later = sessions
                changes.append(Change(first, index, True))
                ends = [end for _, end in sessions]
                starts = [start for start, _ in later]
                faults += [
                    Crash(end, max(start, end), index, True)
                    for end, start in zip(ends, [*starts, spec.duration + 1.0], strict=True)
                    if end < spec.duration
                ]
        return Churn(frozenset(range(self.first)), tuple(sorted(changes))), faults

    def _sessions(self, rng: random.Random, settled: float) -> Iterator[list[tuple[float, float]]]:
        """Sessions of hosts of the trace, stretched in time to the churn wanted; those up at first start within the window."""
        assert self.spec.churn is not None
        hosts = [sessions for sessions in host_sessions() if sessions]
        rng.shuffle(hosts)
        hosts = hosts[: self.workload.nodes]
        length = max(end for sessions in hosts for _, end in sessions)
        joins = sum(len(sessions) for sessions in hosts) * (self.workload.nodes - self.first) / len(hosts)
        wanted = self.spec.churn.joins_per_minute / 60.0
        scale = joins / length / wanted  # virtual seconds per second of the trace
        for sessions in hosts:
            stretched = [
                (
                    settled + start * scale
                    if start > 0
                    else LANDMARKS_READY + rng.random() * self.spec.window,
                    settled + end * scale,
                )
                for start, end in sessions
            ]
            # A host that left before it had come is none of those that come and go.
            if there := [(start, end) for start, end in stretched if end > start]:
                yield there

    def carry_out(self) -> Result:
        spec, simulation = self.spec, self.simulation
        result: Result = {"updates": [], "coverage": []}
        moments: list[tuple[float, int, str]] = []
        if spec.update_every > 0:
            count = int((spec.duration - spec.update_from) / spec.update_every)
            moments += [(spec.update_from + (n + 1) * spec.update_every, n, "update") for n in range(count)]
        if spec.series_every > 0:
            moments += [
                ((n + 1) * spec.series_every, n, "coverage")
                for n in range(int(spec.duration / spec.series_every))
            ]
        counted_from = spec.duration * 2 / 3
        if spec.control:
            moments.append((counted_from, 0, "count"))
        snapshots: dict[EventId, Result] = {}
        for moment, _, what in sorted(moments):
            simulation.run(min(moment, spec.duration))
            if what == "update":
                for feed in range(self.feeds):
                    event = self._publish(feed)
                    if event is not None and self.feeds == 1:
                        snapshots[event.id] = self._tree_stretch(feed)
            elif what == "coverage":
                result["coverage"].append({"time": simulation.now, **self._coverage()})
            else:
                simulation.flush_control()
                self.rejoins_before = self._rejoins()
        simulation.run(spec.duration)
        if spec.control:
            result["control"] = self._control(spec.duration - counted_from)
        if spec.last_update_of_all:
            self.receptions[:] = 0
            self.sends[:] = 0
            for feed in range(self.feeds):
                event = self._publish(feed)
                if event is not None and self.feeds == 1:
                    snapshots[event.id] = self._tree_stretch(feed)
            simulation.run(simulation.now + 60.0)
            result |= self._traffic()
        else:
            simulation.run(simulation.now + 60.0)
        if self.feeds == 1:
            result["updates"] = [self._update_row(name, snapshots[name]) for name in self.published]
            result["final"] = self._final(next(reversed(self.published)) if self.published else None)
        if self.spec.churn is not None or self.feeds == 1:
            result["observed"] = self._observed()
        result["noise"] = self.noise
        result["kernel_events"] = simulation.kernel.events
        result["nodes"] = self.workload.nodes
        result["churn_operations"] = simulation.churn_operations
        if self._is_rappel():
            result["friends"] = self._friends()
            result["coordinates"] = self._coordinate_error()
        return result

    def _is_rappel(self) -> bool:
        return self.simulation.system.name == "rappel"

    def _publish(self, feed: int) -> Event | None:
        publisher = LANDMARKS + feed
        if self.simulation.hosts[publisher].node is None:
            return None
        event = self.simulation.publish(publisher, feed, PAYLOAD).event
        self.published[event.id] = self.simulation.now
        up = self.up_then[event.id] = np.zeros(self.workload.nodes, np.bool_)
        up[self.simulation.up()] = True
        self.delays[event.id] = {}
        return event

    def _delivered(self, host: Host, event: Event) -> None:
        delays = self.delays.get(event.id)
        if delays is not None and host.index >= self.first and self.up_then[event.id][host.index]:
            delays.setdefault(host.index, self.simulation.now - self.published[event.id])

    def _received(self, host: Host, sender: NodeId, message: EventMessage) -> None:
        wanted = host.node is not None and message.event.topic in host.node.subscriptions
        self.noise += not wanted
        self.receptions[host.index] += 1
        self.sends[self.index[sender]] += 1
        if getattr(message, "pulled", False):
            self.pulled.add((message.event.id, host.index))

    # What is measured.

    def _nodes(self) -> dict[int, RappelNode]:
        found = {}
        for index in self.simulation.up():
            node = self.simulation.node(index)
            if index >= self.first and isinstance(node, RappelNode):
                found[index] = node
        return found

    def _tree_stretch(self, feed: int) -> Result:
        """Of every subscriber that is in the tree: the way down the tree over the direct distance, in coordinates; and its height."""
        if not self._is_rappel():
            return {}
        topic = self.workload.topic_ids[feed]
        root = self.simulation.node(LANDMARKS + feed)
        assert isinstance(root, RappelNode)
        ways: dict[NodeId, tuple[float, int]] = {root.id: (0.0, 0)}
        layer = [root]
        nodes = {node.id: node for node in self._nodes().values()}
        while layer:
            deeper = []
            for node in layer:
                tree = node.trees.trees.get(topic)
                way, height = ways[node.id]
                for child in tree.children if tree is not None else ():
                    other = nodes.get(child)
                    if other is not None and child not in ways:
                        step = math.dist(node.place.coordinate, other.place.coordinate)
                        ways[child] = (way + step, height + 1)
                        deeper.append(other)
            layer = deeper
        stretch: dict[int, float] = {}
        heights: dict[int, int] = {}
        direct: dict[int, float] = {}
        for node_id, node in nodes.items():
            if node_id in ways:
                index = self.index[node_id]
                away = math.dist(node.place.coordinate, root.place.coordinate)
                direct[index] = away
                stretch[index] = ways[node_id][0] / max(away, 1e-4)
                heights[index] = ways[node_id][1]
        up = sum(1 for index in self.simulation.up() if index >= self.first)
        return {"stretch": stretch, "height": heights, "direct": direct, "up": up}

    def _update_row(self, name: EventId, snapshot: Result) -> Result:
        """One update: when, how many of those up it reached, how fast; stretch measured and in coordinates."""
        publisher, time = LANDMARKS, self.published[name]
        delays = self.delays[name]
        seconds = np.array(list(delays.values()))
        direct = np.array(
            [self.network.latency.delay(publisher, index, time) for index in delays], dtype=np.float64
        )
        row: Result = {"time": time, "reached": len(delays), "up": snapshot.get("up", 0)}
        row |= quantiles("latency", seconds)
        row |= quantiles("stretch", seconds / np.maximum(direct, 5e-4))
        row |= quantiles("coordinate_stretch", np.array(list(snapshot.get("stretch", {}).values())))
        return row

    def _final(self, name: EventId | None) -> Result:
        """The last update: distance against stretch in ten parts of equal size (Fig. 8a), latencies, heights."""
        if name is None:
            return {}
        snapshot = self._tree_stretch(0)
        delays = self.delays[name]
        result: Result = {
            "latencies": np.percentile(list(delays.values()) or [0.0], range(0, 101, 2)).tolist()
        }
        if snapshot:
            order = sorted(snapshot["direct"], key=snapshot["direct"].__getitem__)
            tenths = [part.tolist() for part in np.array_split(np.array(order, np.int64), 10)]
            result["by_distance"] = [
                {
                    "distance": float(np.mean([snapshot["direct"][index] for index in part])),
                    "stretch_p50": float(np.median([snapshot["stretch"][index] for index in part])),
                    "stretch_p95": float(np.percentile([snapshot["stretch"][index] for index in part], 95)),
                }
                for part in tenths
                if part
            ]
            heights = list(snapshot["height"].values())
            result["height_max"] = max(heights, default=0)
            result["height_mean"] = float(np.mean(heights)) if heights else 0.0
        return result

    def _observed(self) -> Result:
        """Updates at the observers: how late, and how many were pulled (Fig. 8b)."""
        observers = self.spec.churn.observers if self.spec.churn is not None else 10
        chosen = range(self.first, self.first + observers)
        settled = LANDMARKS_READY + self.spec.window + 600.0
        late: list[float] = []
        missing = pulled = 0
        for name, time in self.published.items():
            if time < settled or time > self.spec.duration - 60.0:
                continue
            for index in chosen:
                delay = self.delays[name].get(index)
                if delay is None:
                    missing += 1
                else:
                    late.append(delay)
                    pulled += (name, index) in self.pulled
        seconds = np.array(late)
        result: Result = {"count": len(late), "missing": missing, "pulled": pulled}
        result["within_1s"] = float(np.mean(seconds <= 1.0)) if late else math.nan
        result["max"] = float(seconds.max()) if late else math.nan
        result["latencies"] = np.percentile(seconds, range(0, 101, 2)).tolist() if late else []
        return result | quantiles("latency", seconds)

    def _traffic(self) -> Result:
        """Data messages per node for one update of each feed, against its subscriptions (Fig. 10b, c)."""
        wanted = np.diff(self.workload.offsets)[self.first :]
        messages = (self.receptions + self.sends)[self.first :]
        subscribers = wanted > 0
        correlation = (
            float(np.corrcoef(wanted[subscribers], messages[subscribers])[0, 1])
            if np.ptp(wanted[subscribers]) and np.ptp(messages[subscribers])
            else math.nan
        )
        return {
            "data_messages": quantiles("messages", messages.astype(np.float64)),
            "data_correlation": correlation,
            "forward_nothing": float(np.mean(self.sends[self.first :] == 0)),
            "sends_max": int(self.sends.max()),
            "carriers_unwanted": int(np.count_nonzero((self.receptions[self.first :] > 0) & ~subscribers)),
            "by_subscriptions": [
                {"feeds": int(feeds), "messages": float(messages[wanted == feeds].mean())}
                for feeds in np.unique(wanted)
            ],
            "reached": sum(len(delays) for delays in list(self.delays.values())[-self.feeds :]),
            "expected": int(wanted.sum()),
        }

    def _rejoins(self) -> dict[int, int]:
        return {index: node.trees.rejoins_received for index, node in self._nodes().items()}

    def _control(self, seconds: float) -> Result:
        """Control messages over the last part, per node and second, sent and received; by kind; against subscriptions; rejoins by height."""
        assert self.telemetry is not None
        before = self.simulation.now - seconds
        self.simulation.flush_control()
        table = self.telemetry.tables().control
        names = {name: index for index, name in enumerate(self.workload.node_names)}
        sent = np.zeros(self.workload.nodes)
        size = np.zeros(self.workload.nodes)
        kinds: dict[str, float] = {}
        rows = zip(
            *(table[column].to_pylist() for column in ("time", "node", "kind", "messages", "bytes")),
            strict=True,
        )
        for time, node, kind, messages, length in rows:
            if time > before + 1.0:
                sent[names[node]] += messages
                size[names[node]] += length
                kinds[kind] = kinds.get(kind, 0.0) + messages
        up = [index for index in self.simulation.up() if index >= self.first]
        wanted = np.diff(self.workload.offsets)
        # Every ping has its ack and every request its reply, so a node receives as many messages as it sends.
        rate, data = 2.0 * sent[up] / seconds, 2.0 * size[up] / seconds
        many = wanted[up]
        slope = float(np.polyfit(many, rate, 1)[0]) if len(set(many.tolist())) > 2 else math.nan
        return {
            "messages": quantiles("rate", rate),
            "bytes": quantiles("rate", data),
            "bytes_per_message": float(size[up].sum() / max(sent[up].sum(), 1)),
            "kinds": {kind: count / seconds / len(up) for kind, count in sorted(kinds.items())},
            "per_subscription": slope,
            "by_subscriptions": [
                {
                    "feeds": int(feeds),
                    "nodes": int((many == feeds).sum()),
                    "rate": float(rate[many == feeds].mean()),
                }
                for feeds in np.unique(many)
            ],
            "rejoins_by_height": self._rejoins_by_height(seconds),
            "rate_by_height": self._rate_by_height(dict(zip(up, rate.tolist(), strict=True))),
        }

    def _heights(self) -> dict[int, int]:
        """Of a single feed's tree."""
        if self.feeds != 1:
            return {}
        topic = self.workload.topic_ids[0]
        trees = ((index, node.trees.trees.get(topic)) for index, node in self._nodes().items())
        return {index: tree.height for index, tree in trees if tree is not None and tree.joined}

    def _rate_by_height(self, rate: dict[int, float]) -> list[Result]:
        rows: dict[int, list[float]] = {}
        for index, height in self._heights().items():
            rows.setdefault(height, []).append(rate[index])
        return [
            {"height": height, "nodes": len(rates), "rate": float(np.median(rates))}
            for height, rates in sorted(rows.items())
        ]

    def _rejoins_by_height(self, seconds: float) -> list[Result]:
        rows: dict[int, list[float]] = {}
        nodes = self._nodes()
        for index, height in self._heights().items():
            count = nodes[index].trees.rejoins_received - self.rejoins_before.get(index, 0)
            rows.setdefault(height, []).append(count / seconds * 60.0)
        return [
            {"height": height, "nodes": len(rates), "per_minute": float(np.mean(rates))}
            for height, rates in sorted(rows.items())
        ]

    def _coverage(self) -> Result:
        """How many nodes are covered by their friends: all feeds (true, not by filter), and of those with several feeds."""
        return _summary(self._covered())

    def _covered(self) -> list[tuple[int, int]]:
        """(feeds wanted, of these covered by friends) of every node up."""
        interests = {node.id: node.subscriptions for node in self._nodes().values()}
        interests |= {
            self.workload.node_ids[LANDMARKS + feed]: {topic}
            for feed, topic in enumerate(self.workload.topic_ids)
        }
        found = []
        for node in self._nodes().values():
            if node.subscriptions:
                covered: set[int] = set()
                for friend in node.friendship.friends:
                    covered |= node.subscriptions & interests.get(friend, set())
                found.append((len(node.subscriptions), len(covered)))
        return found

    def _friends(self) -> Result:
        pairs = self._covered()
        result = _summary(pairs)
        result["by_feeds"] = [
            {
                "feeds": feeds,
                "nodes": len(covered),
                "perfect": float(np.mean([one == feeds for one in covered])),
                "covered_p50": float(np.median(covered)),
                "covered_min": min(covered),
            }
            for feeds in sorted({feeds for feeds, _ in pairs})
            if (covered := [one for all_, one in pairs if all_ == feeds])
        ]
        shares = [one / all_ for all_, one in pairs if all_ > 1]
        result["coverage_quantiles"] = np.percentile(shares or [1.0], range(0, 101, 5)).tolist()
        overlaps = []
        false_positives = tests = 0
        for node in self._nodes().values():
            roles: dict[NodeId, int] = dict.fromkeys(node.friendship.friends, 1)
            for peer, _ in node.trees.links():
                roles[peer] = roles.get(peer, 0) + 1
            if len(node.subscriptions) > 1 and roles:
                overlaps.append(sum(roles.values()) / len(roles))
            for topic in self.workload.topic_ids:
                for friend, known in node.friendship.friends.items():
                    index = self.index[friend]
                    host = self.simulation.hosts[index].node
                    if host is not None and topic not in host.subscriptions:
                        tests += 1
                        false_positives += may_contain(known.bloom, topic)
            if tests > 2_000_000:
                break
        everyone = []
        for node in self._nodes().values():
            distinct = {*node.friendship.friends, *(peer for peer, _ in node.trees.links())}
            roles_count = len(node.friendship.friends) + sum(1 for _ in node.trees.links())
            if distinct:
                everyone.append(roles_count / len(distinct))
        result["overlap"] = quantiles("ratio", np.array(everyone))
        result["overlap_above_1"] = float(np.mean(np.array(everyone) > 1.0)) if everyone else math.nan
        result["overlap_above_1_multi"] = float(np.mean(np.array(overlaps) > 1.0)) if overlaps else math.nan
        result["overlap_quantiles"] = np.percentile(everyone or [1.0], range(0, 101, 5)).tolist()
        result["false_positives"] = false_positives / max(tests, 1)
        result["friends_mean"] = float(
            np.mean([len(node.friendship.friends) for node in self._nodes().values()])
        )
        return result

    def _coordinate_error(self) -> Result:
        """Relative error of the coordinates against the medians of the network, over random pairs."""
        nodes = list(self._nodes().items())
        rng = random.Random("pairs")
        errors = []
        for _ in range(min(20_000, len(nodes) ** 2)):
            (one, first), (other, second) = rng.choice(nodes), rng.choice(nodes)
            if one != other:
                true = float(self.network.rtt_ms[one, other]) / 2000.0
                guess = math.dist(first.place.coordinate, second.place.coordinate)
                errors.append(abs(guess - true) / max(true, 1e-3))
        return quantiles("relative_error", np.array(errors))


def _summary(pairs: list[tuple[int, int]]) -> Result:
    several = [(all_, one) for all_, one in pairs if all_ > 1]
    return {
        "perfect": float(np.mean([all_ == one for all_, one in pairs])) if pairs else math.nan,
        "perfect_multi": float(np.mean([all_ == one for all_, one in several])) if several else math.nan,
        "share_mean": float(np.mean([one / all_ for all_, one in pairs])) if pairs else math.nan,
    }


def quantiles(name: str, values: FloatArray) -> Result:
    """p5, p50, p95 of values; nan of none."""
    if not len(values):
        return {f"{name}_{part}": math.nan for part in ("p5", "p50", "p95")}
    low, middle, high = np.percentile(values, [5, 50, 95])
    return {f"{name}_p5": float(low), f"{name}_p50": float(middle), f"{name}_p95": float(high)}
