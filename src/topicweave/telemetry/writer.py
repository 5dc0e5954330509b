"""Recorders: what both worlds call to leave telemetry behind.

The simulator calls these once per message, so a call does little: it extends one flat list of plain Python
values per table. Every 65,536 rows the list becomes an Arrow batch. Only then are identifiers turned into
names, once per distinct identifier. A batch's dictionary holds names in the order of their first row, so the
bytes depend on the recorded rows alone.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from topicweave.errors import TopicweaveError
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import Link
from topicweave.telemetry.schema import RECORDED, SCHEMAS, file_name
from topicweave.telemetry.tables import Tables

BATCH_ROWS = 65_536
NO_TOPIC: TopicId = 0
"""Stands for no topic at all; names are hashed to identifiers, and none to this one."""


class Telemetry(ABC):
    """Records one run.

    `node_names` and `topic_names` are read when a batch is made, so they may still grow during the run; an
    identifier they do not know is written as 16 hexadecimal digits.

    Used as a context manager it is closed at the end of the block, or discarded if the block failed.
    """

    counts_control = True
    """Whether it wants the control traffic: counting its bytes takes the simulator an encoding of every message."""

    keeps_rates = False
    """Whether it wants the control traffic of each second by itself, or as it comes at snapshots."""

    keeps_interests = True
    """Whether it wants to know who wants what."""

    def __init__(
        self, run: str, node_names: Mapping[NodeId, str], topic_names: Mapping[TopicId, str]
    ) -> None:
        self.run = run
        name_of_node = _naming(node_names)
        self._encoders: dict[str, Callable[[list[Any]], pa.Array]] = {
            "node": name_of_node,
            "peer": name_of_node,
            "sender": name_of_node,
            "topic": _naming(topic_names, {NO_TOPIC: ""}),
            "kind": _words,
        }
        # Row after row, without `run`, whose value is always the same.
        self._links: list[Any] = []
        self._publishes: list[Any] = []
        self._deliveries: list[Any] = []
        self._control: list[Any] = []
        self._interests: list[Any] = []
        self._pending = {
            "links": self._links,
            "publishes": self._publishes,
            "deliveries": self._deliveries,
            "control": self._control,
            "interests": self._interests,
        }

    def links(self, time: float, node_id: NodeId, links: Iterable[Link]) -> None:
        """A snapshot of one node's links."""
        for link in links:
            self._links.extend((time, node_id, link.peer, link.kind))
        while len(self._links) >= BATCH_ROWS * 4:
            self._flush("links")

    def publish(self, event_key: int, topic_id: TopicId, node_id: NodeId, time: float) -> None:
        """An event was published; its key is `schema.event_key` of its identifier, worth keeping at hand."""
        self._publishes.extend((event_key, topic_id, node_id, time))
        if len(self._publishes) >= BATCH_ROWS * 4:
            self._flush("publishes")

    def reception(
        self, event_key: int, node_id: NodeId, time: float, hops: int, sender_id: NodeId, wanted: bool
    ) -> None:
        """A message that carries an event arrived at a node."""
        self._deliveries.extend((event_key, node_id, time, hops, sender_id, wanted))
        if len(self._deliveries) >= BATCH_ROWS * 6:
            self._flush("deliveries")

    def control(self, time: float, node_id: NodeId, kind: str, messages: int, bytes: int) -> None:  # noqa: A002
        """A node sent this many control messages of a kind in a period that ends at `time`."""
        self._control.extend((time, node_id, kind, messages, bytes))
        if len(self._control) >= BATCH_ROWS * 5:
            self._flush("control")

    def wants(self, time: float, node_id: NodeId, topic_ids: Iterable[TopicId], wanted: bool = True) -> None:
        """A node wants some topics from now on, or no more."""
        for topic_id in topic_ids:
            self._interests.extend((time, node_id, topic_id, wanted))
        while len(self._interests) >= BATCH_ROWS * 4:
            self._flush("interests")

    def wants_nothing(self, time: float, node_id: NodeId) -> None:
        """Whatever a node wanted, it wants no more: it goes, or begins anew."""
        self.wants(time, node_id, (NO_TOPIC,), False)

    @abstractmethod
    def close(self) -> None:
        """Finish the tables. Nothing may be recorded afterwards; closing again does nothing."""

    @abstractmethod
    def discard(self) -> None:
        """Give up: leave no table of this recording behind."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    @abstractmethod
    def _store(self, table: str, batch: pa.RecordBatch) -> None:
        """Take over a batch of a table."""

    def _flush(self, table: str) -> None:
        """Make a batch of the oldest pending rows; nothing happens if there are none. Rows that cannot be
        stored are pending still.
        """
        schema = RECORDED[table]
        width = len(schema) - 1
        pending = self._pending[table]
        rows = min(len(pending) // width, BATCH_ROWS)
        if not rows:
            return
        run = np.zeros(rows, dtype=np.int32)
        columns = [pa.DictionaryArray.from_arrays(run, pa.array([self.run], pa.string()))]
        for place, field in enumerate(list(schema)[1:]):
            values = pending[place : rows * width : width]
            encode = self._encoders.get(field.name)
            columns.append(encode(values) if encode else _numbers(values, field.type))
        self._store(table, pa.RecordBatch.from_arrays(columns, schema=schema))
        del pending[: rows * width]


class MemoryTelemetry(Telemetry):
    """Keeps the tables in memory; who wants what only if asked to (`keeps_interests`), for it stands in the
    workload.
    """

    keeps_interests = False

    def __init__(
        self, run: str, node_names: Mapping[NodeId, str], topic_names: Mapping[TopicId, str]
    ) -> None:
        super().__init__(run, node_names, topic_names)
        self._batches: dict[str, list[pa.RecordBatch]] = {table: [] for table in RECORDED}

    def tables(self) -> Tables:
        """All that was recorded so far."""
        self.close()
        return Tables(
            **{
                table: pa.Table.from_batches(self._batches[table], schema).unify_dictionaries()
                for table, schema in SCHEMAS.items()
            }
        )

    def batches(self) -> Mapping[str, list[pa.RecordBatch]]:
        """The same as it is kept, of all tables."""
        self.close()
        return self._batches

    def merge(self, batches: Mapping[str, list[pa.RecordBatch]]) -> None:
        """What another one of the same run recorded, in another process say."""
        for table, more in batches.items():
            self._batches[table] += more

    def close(self) -> None:
        for table in RECORDED:
            self._flush(table)

    def discard(self) -> None:
        for table, batches in self._batches.items():
            self._pending[table].clear()
            batches.clear()

    def _store(self, table: str, batch: pa.RecordBatch) -> None:
        self._batches[table].append(batch)


class ParquetTelemetry(Telemetry):
    """Writes the tables to Parquet files in a folder, a row group per batch, in bounded memory.

    A table gets its name when it is whole; until then it is a hidden `.….partial`, which no reader takes for a
    table and the next recording into the folder overwrites. Tables that an earlier recording left in the folder
    stay until this one is closed; then they go before the first new one gets its name, so that a folder never
    mixes two recordings.
    """

    def __init__(
        self,
        folder: str | Path,
        run: str,
        node_names: Mapping[NodeId, str],
        topic_names: Mapping[TopicId, str],
    ) -> None:
        super().__init__(run, node_names, topic_names)
        self._folder = Path(folder)
        self._files: dict[str, pq.ParquetWriter] = {}
        self._finished: list[str] = []
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._failure(self._folder, error) from error
        for table, schema in RECORDED.items():
            with self._blaming(table):
                self._files[table] = pq.ParquetWriter(self._partial(table), schema, compression="zstd")

    def close(self) -> None:
        if not self._files:
            return
        for table in RECORDED:
            with self._blaming(table):
                self._whole(table).unlink(missing_ok=True)
        for table in RECORDED:
            self._flush(table)
            with self._blaming(table):
                self._finish(table)

    def discard(self) -> None:
        for table in RECORDED:
            if table in self._files:
                with suppress(OSError):  # What cannot be written is about to be deleted anyway.
                    self._files.pop(table).close()
            if table not in self._finished:
                with suppress(OSError):
                    self._partial(table).unlink(missing_ok=True)

    def _store(self, table: str, batch: pa.RecordBatch) -> None:
        if table not in self._files:
            raise TopicweaveError(f"the telemetry in {self._folder} is closed; record into a new one")
        with self._blaming(table):
            self._files[table].write_batch(batch)

    def _finish(self, table: str) -> None:
        partial = self._partial(table)
        self._files[table].close()
        with partial.open("r+b") as file:
            os.fsync(file.fileno())  # The name must not reach the disk before the rows do.
        partial.rename(self._whole(table))
        del self._files[table]
        self._finished.append(table)

    @contextmanager
    def _blaming(self, table: str) -> Iterator[None]:
        """If the disk fails a table, give up with one error that says which."""
        try:
            yield
        except OSError as error:
            self.discard()
            raise self._failure(self._whole(table), error) from error

    def _partial(self, table: str) -> Path:
        return self._folder / f".{file_name(table)}.partial"

    def _whole(self, table: str) -> Path:
        return self._folder / file_name(table)

    def _failure(self, path: Path, error: OSError) -> TopicweaveError:
        reason = os.strerror(error.errno) if error.errno else str(error)
        kept = f" (finished and kept: {', '.join(self._finished)})" if self._finished else ""
        return TopicweaveError(
            f"cannot write telemetry to {path}: {reason}{kept}; make room or choose another folder"
        )


def _naming(
    names: Mapping[int, str], before: Mapping[int, str] | None = None
) -> Callable[[list[Any]], pa.Array]:
    """How a column of identifiers becomes a column of names; those of `before` count first."""
    known = before or {}

    def encode(identifiers: list[Any]) -> pa.Array:
        coded = _numbers(identifiers, pa.uint64()).dictionary_encode()
        distinct = [
            known[identifier] if identifier in known else names.get(identifier, f"{identifier:016x}")
            for identifier in coded.dictionary.to_pylist()
        ]
        return pa.DictionaryArray.from_arrays(coded.indices, pa.array(distinct, pa.string()))

    return encode


def _words(words: list[Any]) -> pa.Array:
    return pa.array(words, pa.string()).dictionary_encode()


def _numbers(values: list[Any], type_: pa.DataType) -> pa.Array:
    # By way of NumPy: Arrow takes integers out of a list several times more slowly.
    return pa.array(np.fromiter(values, type_.to_pandas_dtype(), len(values)))
