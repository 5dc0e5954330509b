"""How a comparison's runs are described and carried out: the only place that knows."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from topicweave.choose.channel import Channel
from topicweave.choose.planning import time_here
from topicweave.choose.question import LIMITS, Question, membership_of
from topicweave.choose.variants import Variant
from topicweave.model.workload import Workload
from topicweave.report.files import write_bytes
from topicweave.runs.background import OutOfTime, interruptible
from topicweave.runs.recorded import Recording
from topicweave.runs.run import Result, Run
from topicweave.runs.runner import Finished, Processes, Progress, run_all
from topicweave.runs.sources import StoredWorkload, fingerprint
from topicweave.runs.store import ResultStore, key
from topicweave.runs.trial import Trial
from topicweave.systems.registry import find_system

LEAST_REPAIR = 20
"""Seconds that a system is watched after the crash; a slow one, that takes its time to settle, for longer."""

RunPlace = tuple[int, int]
"""Which of the variants, and the seed."""


class Engine:
    """What carries the runs out: processes of this machine, or Spark. To be used in a `with`, which ends Spark."""

    def __init__(self, workers: int | None = None, spark: Any = None, telemetry: Path | None = None) -> None:
        """`workers`: how many processes; as many as cores if None. `spark`: a session, or a function that
        opens one for the length of a `with`; it is called when there is something to run. `telemetry`: where
        runs leave their tables.
        """
        if workers is not None:
            LIMITS["workers"].checked("workers", workers)
        self.workers = workers
        self.telemetry = telemetry
        self.until: float | None = None
        """When the time is up, by `time.perf_counter`: what is not finished by then is ended, and nothing is
        heard of it.
        """
        self._open: Callable[[], AbstractContextManager[Any]] | None = (
            spark if spark is None or callable(spark) else lambda: nullcontext(spark)
        )
        self._session: Any = None
        self._stack = ExitStack()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *failure: Any) -> bool | None:
        return self._stack.__exit__(*failure)

    @property
    def session(self) -> Any:
        """Spark's; None if it runs in processes."""
        if self._session is None and self._open is not None:
            self._session = self._stack.enter_context(self._open())
        return self._session

    @property
    def is_cluster(self) -> bool:
        """Whether the runs are carried out on other machines."""
        if self.session is None:
            return False
        from topicweave.pipeline.session import is_local

        return not is_local(self.session.sparkContext.master)

    @property
    def at_once(self) -> int:
        """How many runs go on at the same time."""
        if not self.is_cluster:
            return self.workers or os.cpu_count() or 1
        from topicweave.pipeline.workers import cores

        return cores(self.session)

    def seconds(
        self, runs: Sequence[Run], store: ResultStore, times: Path, until: float, progress: Progress
    ) -> list[float]:
        """How long each takes, where all of them will be carried out; here, what comes out is kept.

        times      where the seconds of each are kept, so that after an interruption none is timed again; not those
                   on a cluster
        until      when to give up, by `time.perf_counter`, with `OutOfTime`; on a cluster they are waited for
        progress   hears of each that is finished; on a cluster of none
        """
        if self.is_cluster:
            from topicweave.pipeline.executor import seconds_on

            return seconds_on(self.session, runs)

        known = _read_times(times)
        todo = [run for run in runs if key(run) not in known]
        done = count(len(runs) - len(todo) + 1)

        def keep(run: Run, result: Result, seconds: float) -> None:
            store.put(key(run), run, result)
            known[key(run)] = seconds
            write_bytes(times, msgspec.json.encode(known))
            assert isinstance(run, Trial)
            progress(next(done), len(runs), f"pilot of {run.system}")

        progress(len(runs) - len(todo), len(runs), "")
        if todo:
            interruptible(lambda: time_here(todo, self.workers, keep), until)
        return [known[key(run)] for run in runs]

    def carry_out(self, todo: Mapping[str, Run], store: ResultStore, finished: Finished) -> None:
        """As an `Executor` does."""
        if self._open is None:
            with suppress(OutOfTime):
                interruptible(lambda: Processes(self.workers).carry_out(todo, store, finished), self.until)
            return
        from topicweave.pipeline.executor import SparkExecutor

        SparkExecutor(self.session, self.until).carry_out(todo, store, finished)


def _read_times(path: Path) -> dict[str, float]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, float])
    except (OSError, msgspec.DecodeError):
        return {}


def run_for(question: Question, variant: Variant, stored: StoredWorkload, seed: int) -> Trial:
    """One system on the workload, with a seed."""
    settle, limit = question.time_to_settle(find_system(variant.system))
    return Trial(
        system=variant.system,
        parameters=variant.changes,
        workload=stored,
        membership=membership_of(question.membership, question.preset),
        seed=seed,
        settle=settle,
        settle_limit=limit,
        counted_from=question.counted_from,
        events=question.events,
        latency=question.latency,
        loss=question.loss,
        churn=question.churn,
        crash=question.crash,
        repair_seconds=max(LEAST_REPAIR, round(settle / 2)),
    )


def carry_out(
    runs: Mapping[RunPlace, Trial], folder: Path, engine: Engine, channel: Channel
) -> dict[RunPlace, dict[str, Any]]:
    """Results by their places; those that are in the folder already are read from there.

    What the engine has no time for is missing.
    """

    def finished(done: int, total: int, what: str) -> None:
        system, _, _ = what.partition(",")  # What follows is the workload: the same for all.
        channel.progress(done, total, system)

    return run_all(runs, folder, engine, finished, record=_recording(runs, engine))


def _recording(runs: Mapping[RunPlace, Trial], engine: Engine) -> Recording | None:
    if engine.telemetry is None:
        return None
    return Recording(engine.telemetry, lambda label, mark: f"{runs[label].system}-{label[1]}-{mark[:8]}")


def store(workload: Workload, out: Path) -> StoredWorkload:
    """Where runs find the workload, on whatever machine: under a name that says what is in it."""
    name = fingerprint(workload)
    folder = out / "workloads" / name[:16]
    if not (folder / "subscriptions.parquet").exists():
        workload.save(folder, overwrite=True)
    return StoredWorkload(str(folder.absolute()), name)
