"""Work in rounds on arrays: what joins and groupings do row by row, done by tasks that send each other arrays.

A message (`Letter`) is a set of columns of one length for one task in one round. On Spark it is one row, its
columns as Arrow's bytes, so that a shuffle moves few large rows, and Java neither sees nor sorts nor compiles
anything for what is in them. A work is a function from all messages that have come for a task to the messages
it sends; it groups and joins with NumPy. What is for a later round than the next is handed through.

    tasks = 4
    rows = rounds(sources, [count_words, add_up], tasks)      # a DataFrame of messages, one shuffle per round
    told = [message for message in here(rows) if message.round == 2]

Which task a row goes to follows from a key: a hash of its name. The same keys meet in the same task.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topicweave.model.arrays import IntArray
from topicweave.pipeline.session import changed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Columns = Mapping[str, Any]
"""Arrays of one length, NumPy's or (text) Arrow's."""

MESSAGES = "round int, task int, kind string, rank long, data binary"
_ROWS = pa.schema(
    [
        ("round", pa.int32()),
        ("task", pa.int32()),
        ("kind", pa.string()),
        ("rank", pa.int64()),
        ("data", pa.binary()),
    ]
)
_BATCHES = {
    # Messages are large and few: a batch ends by its bytes.
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(1 << 17),
    "spark.sql.execution.arrow.maxBytesPerBatch": str(32 << 20),
}


class Letter(NamedTuple):
    round: int
    task: int
    kind: str
    columns: Columns
    rank: int = 0
    """Of messages of one kind those of lower rank come first."""


class Inbox:
    """What has come for a task in this round."""

    def __init__(self) -> None:
        self._pieces: defaultdict[str, list[tuple[int, Columns]]] = defaultdict(list)

    def put(self, kind: str, rank: int, columns: Columns) -> None:
        self._pieces[kind].append((rank, columns))

    def take(self, kind: str, /, **types: Any) -> dict[str, npt.NDArray[Any]]:
        """All columns of a kind, one after the other by rank; the `types` are those of columns of which
        nothing came.
        """
        pieces = sorted(self._pieces.pop(kind, []), key=lambda piece: piece[0])
        if not pieces:
            return {name: np.empty(0, type_) for name, type_ in types.items()}
        return {name: np.concatenate([piece[name] for _, piece in pieces]) for name in pieces[0][1]}

    def has(self, kind: str) -> bool:
        return kind in self._pieces


Work = Callable[[Inbox], Iterator[Letter]]


def spread(
    round_: int, kind: str, key: IntArray, tasks: int, columns: Columns, rank: int = 0
) -> Iterator[Letter]:
    """A message to each task that is to have any of the rows; rows keep their order."""
    if not len(key):
        return
    if tasks == 1:
        yield Letter(round_, 0, kind, columns, rank)
        return
    # A task of 16 bits is sorted by counting.
    task = (key.view(np.uint64) % np.uint64(tasks)).astype(np.uint16)
    order = np.argsort(task, kind="stable")
    ends = np.cumsum(np.bincount(task, minlength=tasks))
    laid_out = {name: column[order] for name, column in columns.items()}
    for number in np.unique(task).tolist():
        here = slice(ends[number - 1] if number else 0, ends[number])
        yield Letter(round_, number, kind, {name: column[here] for name, column in laid_out.items()}, rank)


def hashes(column: pa.Array | pa.ChunkedArray) -> IntArray:
    """Names as 64 bits. Among a million names the chance that any two share them is 3e-8."""
    from pandas.util import hash_array

    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    found = [np.empty(0, np.int64)]
    for chunk in chunks:
        coded = chunk if pa.types.is_dictionary(chunk.type) else chunk.cast(pa.string()).dictionary_encode()
        names = coded.dictionary.cast(pa.string()).to_numpy(zero_copy_only=False).astype(object)
        of_names = hash_array(names, categorize=False).view(np.int64) if len(names) else np.empty(0, np.int64)
        found.append(of_names[coded.indices.to_numpy()])
    return np.concatenate(found) if len(found) != 2 else found[1]


def mixed(one: IntArray | np.int64, other: IntArray) -> IntArray:
    """Two numbers of 64 bits as one, all of whose bits depend on all of theirs (the mixing of SplitMix64)."""
    with np.errstate(over="ignore"):
        value = np.asarray(other).view(np.uint64) + np.asarray(one).view(np.uint64) * np.uint64(
            0x9E3779B97F4A7C15
        )
        value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed_: IntArray = (value ^ (value >> np.uint64(31))).view(np.int64)
    return mixed_


def packed(messages: Iterable[Letter]) -> Iterator[pa.RecordBatch]:
    """For the end of a function that `mapInArrow` runs: a row for each message."""
    for message in messages:
        arrays = {
            name: column
            if isinstance(column, pa.Array | pa.ChunkedArray)
            else pa.array(np.ascontiguousarray(column))
            for name, column in message.columns.items()
        }
        table = pa.table(arrays)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        data = sink.getvalue()
        offsets = pa.py_buffer(np.array([0, data.size], np.int32))
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([message.round], pa.int32()),
                pa.array([message.task], pa.int32()),
                pa.array([message.kind], pa.string()),
                pa.array([message.rank], pa.int64()),
                pa.Array.from_buffers(pa.binary(), 1, [None, offsets, data]),
            ],
            schema=_ROWS,
        )


def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[Letter]:
    for batch in batches:
        rows = zip(
            *(batch[name].to_pylist() for name in ("round", "task", "kind", "rank")),
            batch["data"],
            strict=True,
        )
        for round_, task, kind, rank, data in rows:
            yield Letter(round_, task, kind, _columns(data.as_buffer()), rank)


def _columns(data: pa.Buffer) -> Columns:
    table = pa.ipc.open_stream(data).read_all()
    return {
        name: column if pa.types.is_string(column.type) else column.to_numpy()
        for name, column in zip(table.column_names, table.columns, strict=True)
    }


def rounds(sources: DataFrame, works: Sequence[Work], tasks: int, first: int = 0) -> DataFrame:
    """The messages that are left after a round for each of the works; one shuffle each."""
    for number, work in enumerate(works, start=first):
        moved = (
            sources.repartitionById(tasks, "task")
            if hasattr(sources, "repartitionById")  # Spark 4.1
            else sources.repartition(tasks, "task")
        )
        sources = moved.mapInArrow(_at_round(number, work), MESSAGES)
    return sources


def _at_round(number: int, work: Work) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        inbox, any_ = Inbox(), False
        for batch in batches:
            for at, round_ in enumerate(batch["round"].to_pylist()):
                row = batch.slice(at, 1)
                if round_ != number:
                    # Spark has its own word on what may be null; all batches of a task must have one schema.
                    yield pa.RecordBatch.from_arrays(row.columns, schema=_ROWS)
                    continue
                for message in unpacked([row]):
                    inbox.put(message.kind, message.rank, message.columns)
                    any_ = True
        if any_:
            yield from packed(work(inbox))

    return run


TOLD = -1
"""The round of what is told to the driver while a loop goes on."""


class Loop(Protocol):
    """Work in steps of a few rounds, until the driver has heard enough."""

    tasks: int

    def step(self, *works: Work) -> list[Letter]:
        """Run a round for each of the works; returns what was told. What is for the round after them begins
        the next step.
        """

    def rows(self, names: Sequence[str]) -> Any:
        """The columns of all messages that are left."""


class LoopOnSpark:
    """On Spark; what tasks keep from step to step lies on the executors."""

    def __init__(self, sources: DataFrame, tasks: int) -> None:
        self.tasks = tasks
        self._frame = sources

    def step(self, *works: Work) -> list[Letter]:
        from pyspark import StorageLevel
        from pyspark.sql import functions as sf

        with batches_by_bytes(self._frame.sparkSession):
            made = rounds(self._frame, works, self.tasks)
            made = made.localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY)
            told = list(here(made.where(sf.col("round") == TOLD)))
        left = made.where(sf.col("round") != TOLD)
        self._frame = left.withColumn("round", sf.col("round") - len(works))
        return told

    def rows(self, names: Sequence[str]) -> DataFrame:
        """A DataFrame; its columns are those of the messages, numbers all."""

        def open_(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for message in unpacked(batches):
                yield from pa.table({name: message.columns[name] for name in names}).to_batches(1 << 16)

        first = self._frame.first()
        one = next(unpacked([pa.RecordBatch.from_pylist([first.asDict()], schema=_ROWS)])) if first else None
        kinds = {
            name: "double" if one is not None and one.columns[name].dtype.kind == "f" else "long"
            for name in names
        }
        return self._frame.mapInArrow(open_, ", ".join(f"{name} {kind}" for name, kind in kinds.items()))


def here(rows: DataFrame) -> Iterator[Letter]:
    """Messages to the driver: whoever sends them sees to it that they are small."""
    with batches_by_bytes(rows.sparkSession):
        return unpacked(rows.toArrow().to_batches())


@contextmanager
def batches_by_bytes(spark: SparkSession) -> Iterator[None]:
    with changed(spark, _BATCHES):
        yield
