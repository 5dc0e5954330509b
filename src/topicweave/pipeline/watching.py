"""How far a running Spark job has come, asked for while the driver waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

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
