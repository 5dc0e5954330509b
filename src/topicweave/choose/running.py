"""How a comparison's runs are described and carried out: the only place that knows."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from topicweave.choose.channel import Channel
from topicweave.choose.question import Question
from topicweave.choose.variants import Variant
from topicweave.model.workload import Workload
from topicweave.runs.background import interruptible
from topicweave.runs.runner import Processes, run_all
from topicweave.runs.sources import StoredWorkload, fingerprint
from topicweave.runs.trial import Trial
from topicweave.systems.registry import find_system

LEAST_REPAIR = 20
"""Seconds that a system is watched after the crash; a slow one, that takes its time to settle, for longer."""

Place = tuple[int, int]
"""Which of the variants, and the seed."""


@dataclass(frozen=True)
class Engine:
    """What carries the runs out: processes of this machine, or Spark."""

    workers: int | None = None
    """How many processes; as many as cores if None."""
    spark: Callable[[], AbstractContextManager[Any]] | None = None
    """Gives the session to run on."""

    @classmethod
    def of(cls, workers: int | None, spark: Any) -> Engine:
        """`spark` is a session, or a function that opens one for the length of a `with`."""
        if spark is None or callable(spark):
            return cls(workers, spark)
        return cls(workers, lambda: nullcontext(spark))

    @property
    def at_once(self) -> int:
        return self.workers or os.cpu_count() or 1


def run_for(question: Question, variant: Variant, stored: StoredWorkload, seed: int) -> Trial:
    """One system on the workload, with a seed."""
    settle, limit = question.time_to_settle(find_system(variant.system))
    return Trial(
        system=variant.system,
        parameters=variant.changes,
        workload=stored,
        membership=question.membership,
        seed=seed,
        settle=settle,
        settle_limit=limit,
        events=question.events,
        latency=question.latency,
        churn=question.churn,
        crash=question.crash,
        repair_seconds=max(LEAST_REPAIR, round(settle / 2)),
    )


def carry_out(
    runs: Mapping[Place, Trial], folder: Path, engine: Engine, channel: Channel, done: int, total: int
) -> dict[Place, dict[str, Any]]:
    """Results by their places; those that are in the folder already are read from there.

    done, total     how many runs of the comparison came before these, and how many there are in all
    """

    def finished(of_these: int, _all_of_these: int, what: str) -> None:
        system, _, _ = what.partition(",")  # What follows is the workload: the same for all.
        if what or not done:
            channel.progress(done + of_these, total, system)

    if engine.spark is None:
        return interruptible(lambda: run_all(runs, folder, Processes(engine.workers), finished))
    from topicweave.pipeline.executor import SparkExecutor

    with engine.spark() as session:
        return run_all(runs, folder, SparkExecutor(session), finished)


def store(workload: Workload, out: Path) -> StoredWorkload:
    """Where runs find the workload, on whatever machine: under a name that says what is in it."""
    name = fingerprint(workload)
    folder = out / "workloads" / name[:16]
    if not (folder / "subscriptions.parquet").exists():
        workload.save(folder, overwrite=True)
    return StoredWorkload(str(folder.absolute()), name)
