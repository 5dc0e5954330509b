"""The workloads of Vitis §IV that need real data: samples of followers, and nodes that follow a trace of hosts."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import ClassVar

import msgspec
import pyarrow as pa

from topicweave.data.availability import host_sessions
from topicweave.data.reading import social_graph
from topicweave.data.sampling import followed
from topicweave.model.workload import Workload
from topicweave.papers.vitis.lists import CorrelatedLists

Change = tuple[float, str, str]


class FollowersSample(msgspec.Struct, frozen=True, tag="followers", forbid_unknown_fields=True):
    """§IV-E: some users at random, all that they follow, and all relations between these; users are the topics."""

    graph: str
    nodes: int
    seed: int = 0

    @property
    def data_sets(self) -> tuple[str, ...]:
        return (self.graph,)

    def load(self) -> Workload:
        return followed(social_graph(self.graph), nodes=self.nodes, seed=self.seed)


class TraceLists(msgspec.Struct, frozen=True, tag="vitis-trace", forbid_unknown_fields=True):
    """Correlated lists whose nodes follow hosts of the trace, and a flash crowd on top.

    A stretch of `hours` of the trace passes in `duration` virtual seconds, after `quiet` seconds in which
    those that are up at first settle. Nodes of the crowd, a share of all, are down until the middle, come
    within five seconds, and stay.
    """

    data_sets: ClassVar[tuple[str, ...]] = ("gnutella",)
    lists: CorrelatedLists
    begin: float = 1.0
    """The hour of the trace at which the stretch begins. All hosts of the trace are seen for the first time
    in its first minutes.
    """
    hours: float = 12.0
    quiet: float = 40.0
    duration: float = 400.0
    crowd: float = 0.3
    seed: int = 0

    @property
    def nodes(self) -> int:
        return self.lists.nodes

    def load(self) -> Workload:
        workload = self.lists.load()
        rng = random.Random(f"trace/{self.seed}")
        names = list(workload.node_names)
        crowd = set(rng.sample(names, int(self.crowd * len(names))))
        middle = self.quiet + self.duration / 2
        changes: list[Change] = [(middle + 5.0 * rng.random(), name, "join") for name in sorted(crowd)]
        hosts = list(host_sessions())
        rng.shuffle(hosts)
        # Hosts that never show up in the stretch would be nodes that do nothing.
        squeezed = (self._squeeze(sessions) for sessions in hosts)
        active = (sessions for sessions in squeezed if sessions)
        for name, sessions in zip([name for name in names if name not in crowd], active, strict=False):
            for start, end in sessions:
                if start > 0.0:
                    changes.append((self.quiet + start, name, "join"))
                if end < self.duration:
                    changes.append((self.quiet + end, name, "leave"))
        tables = workload.tables()
        time, node, change = zip(*sorted(changes), strict=True)
        return Workload.from_tables(
            tables["subscriptions"],
            tables["topics"],
            pa.table({"time": pa.array(time, pa.float64()), "node": list(node), "change": list(change)}),
            tables.get("hosts"),
        )

    def _squeeze(self, sessions: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
        """The host's sessions in the stretch, in virtual seconds; gaps and sessions below a second are closed."""
        scale = self.duration / (self.hours * 3600.0)
        before = self.begin * 3600.0 * scale
        found: list[tuple[float, float]] = []
        for start, end in sessions:
            start, end = max(0.0, start * scale - before), min(self.duration, end * scale - before)
            if end - start < 1.0:
                continue
            if found and start - found[-1][1] < 1.0:
                found[-1] = (found[-1][0], end)
            else:
                found.append((start, end))
        return found
