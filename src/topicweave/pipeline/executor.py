"""Runs on Spark: one task each, every outcome in the store before the next begins, none of them lost to another.

A task carries out one run and writes what became of it to a file of its own, which gets its name when it is
whole. So the driver may be killed at any moment: what is in the store is done, what is not is run again. A
run that fails leaves a file that says why; also one that takes its process with it (out of memory, say), when
it has done so three times.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from topicweave.data.places import Place
from topicweave.errors import TopicweaveError
from topicweave.pipeline.session import MOST_ATTEMPTS
from topicweave.pipeline.workers import described, here
from topicweave.runs.registry import decode, encode
from topicweave.runs.run import Run, carry_out
from topicweave.runs.runner import Finished, RunFailed
from topicweave.runs.store import ResultStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_GROUPS = itertools.count()
_PERIOD = 0.5
_ATTEMPTS = 3
"""One less than the attempts that Spark gives a task in local mode: the last one says what happened to the others."""
_SIGN = ".turns-"


class SparkExecutor:
    """Carries runs out on a Spark session; its workers see the store's folder."""

    def __init__(self, spark: SparkSession, until: float | None = None) -> None:
        """until: when the time is up, by `time.perf_counter`; runs under way are ended then, and nothing is
        heard of them.
        """
        self._spark = spark
        self._until = until

    def carry_out(self, todo: Mapping[str, Run], store: ResultStore, finished: Finished) -> None:
        """Large runs should come first. The list is as long as there are runs, a few hundred bytes each."""
        for key in todo:
            store.clear(key)
            store.begun(key).delete()  # of a sweep that was stopped, no fault of the run's
        table = pa.table(
            {
                "number": pa.array(range(len(todo)), pa.int64()),
                "key": list(todo),
                "run": [encode(run).decode() for run in todo.values()],
            }
        )
        waiting = dict.fromkeys(todo)
        mark = store.folder / f".seen-by-all-{os.uname().nodename}-{os.getpid()}"
        mark.put(b"")
        try:
            self._run(table, store, mark, waiting, finished)
        finally:
            mark.delete()
            for name in store.folder.names():
                if name.startswith(_SIGN):
                    (store.folder / name).delete()
        if not self._out_of_time:
            for key in waiting:
                finished(key, RunFailed("it left no result"))

    @property
    def _out_of_time(self) -> bool:
        return self._until is not None and time.perf_counter() >= self._until

    def _run(
        self, table: pa.Table, store: ResultStore, mark: Place, waiting: dict[str, None], finished: Finished
    ) -> None:
        with closing(self._until_done(table, store.folder, mark)) as looks:
            for _ in looks:
                for key in {name.partition(".")[0] for name in store.folder.names()} & waiting.keys():
                    outcome = store.get(key)
                    error = store.failure(key) if outcome is None else None
                    if outcome is not None or error is not None:
                        del waiting[key]
                        finished(key, RunFailed(error) if outcome is None else outcome)
                if self._out_of_time:
                    return

    def _until_done(self, table: pa.Table, folder: Place, mark: Place) -> Generator[None]:
        """Comes back every now and then while the job runs, and once more when it is done; leaving it early
        ends the job.
        """
        from pyspark import InheritableThread

        group = f"topicweave-runs-{next(_GROUPS)}"
        context = self._spark.sparkContext
        failures: list[Exception] = []
        done = threading.Event()

        def job() -> None:
            try:
                context.setJobGroup(group, "runs", interruptOnCancel=True)
                # Ranges of one: tasks start in the order given, and a slow one holds up nobody but itself.
                frame = self._spark.createDataFrame(table).repartitionByRange(table.num_rows, "number")
                frame.mapInArrow(_task(folder, mark), "runs long").agg({"runs": "sum"}).first()
            except Exception as error:
                failures.append(error)
            finally:
                done.set()

        thread = InheritableThread(target=job, daemon=True)
        thread.start()
        try:
            while not done.wait(_PERIOD):
                yield
        except BaseException:
            context.cancelJobGroup(group)
            raise
        if failures:
            raise failures[0]
        yield


def seconds_on(spark: SparkSession, runs: Sequence[Run]) -> list[float]:
    """How long each run takes on an executor; what comes out is not kept."""
    table = pa.table(
        {
            "number": pa.array(range(len(runs)), pa.int64()),
            "run": [encode(run).decode() for run in runs],
        }
    )

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number, run in zip(batch["number"].to_pylist(), batch["run"].to_pylist(), strict=True):
                started = time.perf_counter()
                carry_out(decode(run))
                yield pa.RecordBatch.from_pylist(
                    [{"number": number, "seconds": time.perf_counter() - started}]
                )

    tasks = spark.createDataFrame(table).repartitionByRange(len(runs), "number")
    with described(spark, f"{len(runs)} pilots"):
        told = tasks.mapInArrow(task, "number long, seconds double").toArrow()  # one per run
    return [row["seconds"] for row in sorted(told.to_pylist(), key=lambda row: int(row["number"]))]


def _task(folder: Place, mark: Place):  # type: ignore[no-untyped-def]  # Spark's own type is a bare function
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if not mark.exists():
            raise TopicweaveError(
                f"worker {here()}: does not see {folder}; results must go to one place for all machines"
            )
        store = ResultStore(folder)
        for batch in batches:
            for key, run in zip(batch["key"].to_pylist(), batch["run"].to_pylist(), strict=True):
                if store.get(key) is None:
                    attempt(store, key, run)
            yield pa.RecordBatch.from_pydict({"runs": pa.array([batch.num_rows], pa.int64())})

    return task


class _Begun(NamedTuple):
    """An attempt at a run that has begun: where, and the how manieth there."""

    executor: str
    turn: int


def attempt(store: ResultStore, key: str, encoded: str) -> None:
    """Carry a run out and keep what came of it, unless it has taken its process with it too often."""
    marks, me = store.begun(key), here()
    earlier = [_Begun(*mark) for mark in json.loads(marks.read() or b"[]")]
    crashes = sum(_turns(store, mark.executor) > mark.turn or mark.executor == me for mark in earlier)
    turn = _turns(store, me) + 1
    sign_of(store, me).put(str(turn).encode())
    marks.put(json.dumps([*earlier, _Begun(me, turn)]).encode())
    if crashes < _ATTEMPTS and len(earlier) < MOST_ATTEMPTS:
        try:
            run = decode(encoded)
            result = carry_out(run)
        except Exception as error:
            store.put_failure(key, f"{type(error).__name__}: {error}")
        else:
            store.put(key, run, result)
    else:
        store.put_failure(key, f"its process was killed {len(earlier)} times (out of memory?)")
    marks.delete()


def _turns(store: ResultStore, executor: str) -> int:
    """How many runs an executor has begun. One that goes on after an attempt ended without a word has
    outlived it: the run was at fault. One that was never heard of again went away with it, as spot machines
    do.
    """
    return int(sign_of(store, executor).read() or b"0")


def sign_of(store: ResultStore, executor: str) -> Place:
    """Where an executor counts the runs that it begins."""
    return store.folder / f"{_SIGN}{hashlib.sha256(executor.encode()).hexdigest()[:12]}"
