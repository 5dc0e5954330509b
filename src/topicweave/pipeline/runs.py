"""Experiments on Spark: one task each, every outcome on disk before the next begins, none of them lost to another.

A task carries out one experiment and writes what became of it to a file of its own, which gets its name when it is
whole. So the driver may be killed at any moment: what has a file is done, what has none is run again. An experiment
that fails has a file too, that says why; also one that takes its process with it (out of memory, say), when it has
done so three times.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pyarrow as pa

from topicweave.runs.experiment import Experiment, Result, run_experiment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[int, int, str], None]
_PERIOD = 0.5
_ATTEMPTS = 3
"""One less than the attempts that Spark gives a task: the last one says what happened to the others."""


class Task(NamedTuple):
    """An experiment, and the file that its outcome goes to."""

    path: str
    title: str
    experiment: Experiment


Keep = Callable[[Path, Result | None, str, float], None]
"""(path, result or None, error or '', seconds): writes an outcome."""


def carry_out(
    spark: SparkSession, tasks: Sequence[Task], keep: Keep, progress: Progress | None = None
) -> None:
    """Run the tasks that have no outcome yet. The list is as long as there are runs, a few hundred bytes each."""
    report = progress or (lambda _done, _total, _what: None)
    todo = [task for task in tasks if not Path(task.path).exists()]
    report(len(tasks) - len(todo), len(tasks), "")
    if not todo:
        return
    for task in todo:
        _begun(Path(task.path)).unlink(
            missing_ok=True
        )  # of a sweep that was stopped, which is no fault of the run's

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path, encoded in zip(batch["path"].to_pylist(), batch["experiment"].to_pylist(), strict=True):
                if not Path(path).exists():
                    _attempt(Path(path), encoded, keep)
            yield pa.RecordBatch.from_pydict({"runs": pa.array([batch.num_rows], pa.int64())})

    table = pa.table(
        {
            "number": pa.array(range(len(todo)), pa.int64()),
            "path": [task.path for task in todo],
            "experiment": [msgspec.json.encode(task.experiment).decode() for task in todo],
        }
    )
    with _reporting(todo, len(tasks), report):
        # Ranges of one: tasks start in the order given, and a slow one holds up nobody but itself.
        frame = spark.createDataFrame(table).repartitionByRange(len(todo), "number")
        frame.mapInArrow(run, "runs long").agg({"runs": "sum"}).first()


def _begun(path: Path) -> Path:
    """Where attempts at a run leave a mark before they begin."""
    return path.with_suffix(".begun")


def _attempt(path: Path, encoded: str, keep: Keep) -> None:
    marks = _begun(path)
    with marks.open("a") as file:
        file.write(".")
    before = marks.stat().st_size - 1
    if before < _ATTEMPTS:
        _run_one(path, encoded, keep)
    else:
        keep(path, None, f"its process was killed {before} times (out of memory?)", 0.0)
    marks.unlink(missing_ok=True)


def _run_one(path: Path, encoded: str, keep: Keep) -> None:
    started = time.perf_counter()
    result: Result | None = None
    error = ""
    try:
        result = run_experiment(msgspec.json.decode(encoded, type=Experiment))
    except Exception as failure:
        error = f"{type(failure).__name__}: {failure}"
    keep(path, result, error, time.perf_counter() - started)


def whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Let `write` make a file that gets its name when it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.uname().nodename}.{os.getpid()}")
    try:
        write(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


class _reporting:  # noqa: N801 -- reads as a context, like those of contextlib
    """While the block runs, tells of outcomes as their files appear."""

    def __init__(self, tasks: Sequence[Task], total: int, report: Progress) -> None:
        self._waiting = {task.path: task.title for task in tasks}
        self._total = total
        self._report = report
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._stop.wait(_PERIOD):
            self._look()

    def _look(self) -> None:
        for folder in {os.path.dirname(path) for path in self._waiting}:
            try:
                names = os.listdir(folder)
            except OSError:
                continue
            for path in sorted(os.path.join(folder, name) for name in names):
                title = self._waiting.pop(path, None)
                if title is not None:
                    self._report(self._total - len(self._waiting), self._total, title)


def numbers_in(result: Mapping[str, Any]) -> dict[str, float]:
    """The measures of a result: its numbers, without the lists that figures need."""
    return {
        name: float(value)
        for name, value in result.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
