"""How far a running Spark job has come, asked for while the driver waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from topicweave.pipeline.workers import listeners

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PERIOD = 0.5


@contextmanager
def watched(spark: SparkSession, report: Callable[[int, int], None], total: int) -> Iterator[None]:
    """While the block runs, `report` hears (finished tasks, `total`) whenever that changes.

    Counts the tasks of the stage that has `total` of them; stages with another number are Spark's own affair.
    """
    stop = threading.Event()
    tracker = spark.sparkContext.statusTracker()

    def watch() -> None:
        last = 0
        while not stop.wait(_PERIOD):
            done = 0
            for stage in tracker.getActiveStageIds():
                info = tracker.getStageInfo(stage)
                if info is not None and info.numTasks == total:
                    done = max(done, info.numCompletedTasks)
            if done > last:
                last = done
                report(done, total)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()


@contextmanager
def steps(spark: SparkSession, report: Callable[[str, int, int], None]) -> Iterator[None]:
    """While the block runs, `report` hears (step, finished tasks of it, tasks of it so far) as that changes.

    A step is what goes by one name (`workers.described`): a few jobs, whose stages become known one after the other.
    """
    stop, lock = threading.Event(), threading.Lock()
    tracker = spark.sparkContext.statusTracker()
    step, told = "", (0, 0)
    stages: dict[int, tuple[int, int]] = {}

    def begin(name: str) -> None:
        nonlocal step, told
        with lock:
            step, told = name, (0, 0)
            stages.clear()
        report(name, 0, 0)

    def watch() -> None:
        nonlocal told
        while not stop.wait(_PERIOD):
            with lock:
                for stage in tracker.getActiveStageIds():
                    info = tracker.getStageInfo(stage)
                    if info is not None:
                        stages[stage] = (info.numCompletedTasks, info.numTasks)
                now = sum(done for done, _ in stages.values()), sum(tasks for _, tasks in stages.values())
                changed, told, name = now != told, now, step
            if changed and name:
                report(name, *now)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    listeners.append(begin)
    try:
        yield
    finally:
        listeners.remove(begin)
        stop.set()
        watcher.join()
