"""Telemetry of a live node: the same tables as the simulator's, in Parquet, rotated.

Nodes that share a folder add their part files to the same tables; see `topicweave.telemetry.parts`. The run
is named after the swarm, so that several swarms may share a folder, too. Times are Unix time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from topicweave.errors import TopicweaveError
from topicweave.live.counters import Counters
from topicweave.model.event import Event
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import EventMessage
from topicweave.telemetry.parts import PartsTelemetry
from topicweave.telemetry.schema import RECORDED, event_key
from topicweave.telemetry.writer import BATCH_ROWS

if TYPE_CHECKING:
    from topicweave.live.node import LiveNode

log = logging.getLogger("topicweave.live")

SNAPSHOT_EVERY = 5.0
ROTATE_EVERY = 60.0


class _Names(dict[int, str]):
    """Identifiers in the words of the node; looked up when a batch is written."""

    def __init__(self, name_of: Callable[[int], str]) -> None:
        super().__init__()
        self._name_of = name_of

    def get(self, identifier: int, default: str = "") -> str:  # type: ignore[override]  # every name is found: no default is needed
        return self._name_of(identifier)


class PatientParts(PartsTelemetry):
    """Never fails who records. Rows that a folder does not take wait for the next rotation, a batch of each
    table at most; beyond that the older half goes and is counted.
    """

    def __init__(
        self,
        folder: Path,
        run: str,
        names: tuple[Mapping[int, str], Mapping[int, str]],
        writer: str,
        counters: Counters,
    ) -> None:
        self.problems: dict[str, str] = {}
        """Why tables could not be written, as long as they cannot."""
        self._counters = counters
        super().__init__(folder, run, *names, writer=writer)

    def close(self) -> None:
        super().close()
        for table in self.problems:
            self._drop(table, BATCH_ROWS)
        if self.problems:
            log.error("the last telemetry was not written: %s", next(iter(self.problems.values())))

    def _flush(self, table: str) -> None:
        try:
            super()._flush(table)
        except TopicweaveError as error:
            if not self.problems:
                log.error("%s; trying again at each rotation", error)
            self.problems[table] = str(error)
            if self._rows(table) >= BATCH_ROWS:
                self._drop(table, BATCH_ROWS // 2)
        else:
            if self.problems.pop(table, None) is not None and not self.problems:
                log.warning("telemetry is written again; %d rows were lost", self._counters.telemetry_lost)

    def _rows(self, table: str) -> int:
        return len(self._pending[table]) // (len(RECORDED[table]) - 1)

    def _drop(self, table: str, most: int) -> None:
        rows = min(self._rows(table), most)
        del self._pending[table][: rows * (len(RECORDED[table]) - 1)]
        self._counters.telemetry_lost += rows


class Recorder:
    """Writes while the node lives."""

    def __init__(self, node: LiveNode, folder: str | Path) -> None:
        self._node = node
        self._folder = Path(folder)
        self._telemetry: PatientParts | None = None
        self._counted: dict[str, tuple[int, ...]] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        node = self._node
        names = _Names(node.name_of_node), _Names(node.topics.of)
        swarm = node.settings.swarm
        writer = f"{swarm}.{node.name}"
        self._telemetry = PatientParts(self._folder, swarm, names, writer, node.counters)
        # Wishes of an earlier life are over; those that go on are told next.
        self._telemetry.wants_nothing(node.clock.now, node.id)
        self.wants(sorted(node.node.subscriptions))
        node.world.observers.append(self._received)
        node.world.control = node.world.control or {}
        self._counted = {kind: tuple(tally) for kind, tally in node.world.control.items()}
        self._task = asyncio.create_task(self._keep_writing())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
        if self._telemetry is not None:
            self._count_control()
            self._telemetry.wants_nothing(self._node.clock.now, self._node.id)
            self._telemetry.close()
            self._telemetry = None

    @property
    def problem(self) -> str:
        """Why telemetry is not written at the moment, if so."""
        return next(iter(self._telemetry.problems.values()), "") if self._telemetry is not None else ""

    def published(self, event: Event) -> None:
        if self._telemetry is not None:
            self._telemetry.publish(event_key(event.id), event.topic, event.publisher, self._node.clock.now)

    def wants(self, topics: Iterable[TopicId], wanted: bool = True) -> None:
        """The node subscribes to topics, or does so no more."""
        if self._telemetry is not None:
            self._telemetry.wants(self._node.clock.now, self._node.id, topics, wanted)

    def snapshot(self, time: float | None = None) -> None:
        """The links as they are, and what was sent since the last time.

        Nodes look at the same moments, the multiples of SNAPSHOT_EVERY, so that their snapshots make up one
        of the overlay.
        """
        now = self._node.clock.now
        if self._telemetry is not None:
            moment = now - now % SNAPSHOT_EVERY if time is None else time
            self._telemetry.links(moment, self._node.id, self._node.node.links())
            self._count_control(moment)

    def _count_control(self, moment: float | None = None) -> None:
        """What was sent up to a moment that may be just over, so that windows that end there hold it."""
        telemetry, node = self._telemetry, self._node
        if telemetry is None:
            return
        now = node.clock.now if moment is None else moment
        for kind, (messages, size) in (node.world.control or {}).items():
            # Others may look at the same tallies.
            before = self._counted.get(kind, (0, 0))
            if messages > before[0]:
                telemetry.control(now, node.id, kind, messages - before[0], size - before[1])
            self._counted[kind] = messages, size

    def rotate(self) -> None:
        """Finish the current part files and begin new ones."""
        if self._telemetry is not None:
            self._count_control()
            self._telemetry.rotate()

    def _received(self, sender: NodeId, message: EventMessage, wanted: bool) -> None:
        if self._telemetry is not None:
            key, now = event_key(message.event.id), self._node.clock.now
            self._telemetry.reception(key, self._node.id, now, message.hops, sender, wanted)

    async def _keep_writing(self) -> None:
        clock = self._node.clock
        begun = clock.now
        moment = begun - begun % SNAPSHOT_EVERY
        while True:
            moment += SNAPSHOT_EVERY
            while (left := moment - clock.now) > 0.0:
                await asyncio.sleep(max(left, 0.001))  # Timers may be a little early.
            now = clock.now
            moment = max(moment, now - now % SNAPSHOT_EVERY)
            self._node.world.guarded(self.snapshot, moment)
            if now - begun >= ROTATE_EVERY:
                begun = now
                self._node.world.guarded(self.rotate)
