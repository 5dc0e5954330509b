"""Telemetry that is read while it grows: tables that are folders of part files, to which whole files are added.

A table is `links.parquet/WRITER-000001.parquet` and so on. `Tables.load`, `topicweave measure` and
`topicweave stream` take the folder for one table, also where many writers share it. A part gets its name when
it is whole.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from topicweave.errors import TopicweaveError
from topicweave.model.ids import NodeId, TopicId
from topicweave.telemetry.schema import RECORDED, file_name
from topicweave.telemetry.writer import Telemetry


class PartsTelemetry(Telemetry):
    """Adds a part to a table for every full batch of it, and for the rest whenever `rotate` is called.

    `writer` tells this recorder's parts from those of others in the same folder; a writer that comes back goes on
    behind the parts it left.
    """

    def __init__(
        self,
        folder: str | Path,
        run: str,
        node_names: Mapping[NodeId, str],
        topic_names: Mapping[TopicId, str],
        writer: str = "part",
    ) -> None:
        super().__init__(run, node_names, topic_names)
        self._folder = Path(folder)
        # Readers pass over names that begin with a dot or an underscore, and a name may hold a slash.
        self._writer = re.sub(r"^[._]|[^\w.-]", lambda sign: f"%{ord(sign[0]):02x}", writer)
        self._closed = False
        with _blaming(self._folder):
            self._first = {table: self._first_free(table) for table in RECORDED}
            self._next = dict(self._first)
            for table, schema in RECORDED.items():
                if self._next[table] == 1:  # A table without a row is a table, too.
                    self._add(table, pa.RecordBatch.from_pylist([], schema))

    def rotate(self) -> None:
        """Let readers have all that was recorded so far."""
        for table in RECORDED:
            self._flush(table)

    def close(self) -> None:
        self.rotate()
        self._closed = True

    def discard(self) -> None:
        for table in RECORDED:
            self._pending[table].clear()
            for number in range(self._first[table], self._next[table]):
                self._path(table, number).unlink(missing_ok=True)
        self._closed = True

    def _store(self, table: str, batch: pa.RecordBatch) -> None:
        if self._closed:
            raise TopicweaveError(f"the telemetry in {self._folder} is closed; record into a new one")
        with _blaming(self._folder / file_name(table)):
            self._add(table, batch)

    def _add(self, table: str, batch: pa.RecordBatch) -> None:
        path = self._path(table, self._next[table])
        partial = path.with_name(f".{path.name}.partial")
        pq.write_table(pa.Table.from_batches([batch]), partial, compression="zstd")
        with partial.open("r+b") as file:
            os.fsync(file.fileno())  # The name must not reach the disk before the rows do.
        partial.rename(path)
        self._next[table] += 1

    def _path(self, table: str, number: int) -> Path:
        return self._folder / file_name(table) / f"{self._writer}-{number:06d}.parquet"

    def _first_free(self, table: str) -> int:
        parts = self._folder / file_name(table)
        parts.mkdir(parents=True, exist_ok=True)
        mine = re.compile(re.escape(self._writer) + r"-(\d+)\.parquet")
        numbers = (int(found[1]) for name in os.listdir(parts) if (found := mine.fullmatch(name)))
        return 1 + max(numbers, default=0)


@contextmanager
def _blaming(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise TopicweaveError(
            f"cannot write telemetry to {place}: {reason}; make room or choose another folder"
        ) from error
