"""Many runs: each once, kept as soon as it is finished, and never done twice by the same code.

An executor carries them out: processes of this machine (here), or Spark (`topicweave.pipeline.executor`). An
interrupted study, comparison or sweep goes on where it stopped, and all of them share what is in the store.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Protocol, TypeVar

from topicweave.errors import TopicweaveError
from topicweave.runs.processes import each
from topicweave.runs.recorded import Recording
from topicweave.runs.run import Result, Run, carry_out, size, title
from topicweave.runs.store import ResultStore, key

Label = TypeVar("Label", bound=Hashable)
Progress = Callable[[int, int, str], None]
"""Called with (finished, of how many, what was finished last)."""
Finished = Callable[[str, Result | Exception], None]
"""Called with a run's key and its result, or what it failed with."""


class RunFailed(TopicweaveError):
    """A run failed elsewhere; the message is its error."""


class Executor(Protocol):
    """What carries runs out."""

    def carry_out(self, todo: Mapping[str, Run], store: ResultStore, finished: Finished) -> None:
        """Run all, by key, large ones first. Results are in the store when `finished` hears of them; what it
        raises ends the whole.
        """


class Processes:
    """So many processes of this machine; by default one for each core."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or os.cpu_count() or 1

    def carry_out(self, todo: Mapping[str, Run], store: ResultStore, finished: Finished) -> None:
        with closing(each(_outcome, todo.items(), min(self.workers, len(todo)))) as outcomes:
            for (name, run), outcome in outcomes:
                if not isinstance(outcome, Exception):
                    store.put(name, run, outcome)
                finished(name, outcome)


def _outcome(named: tuple[str, Run]) -> Result | Exception:
    try:
        return carry_out(named[1])
    except Exception as error:
        return error


def run_all(
    runs: Mapping[Label, Run],
    store: Path,
    executor: Executor | None = None,
    progress: Progress | None = None,
    failures: dict[Label, str] | None = None,
    finished: Callable[[Label, Result | str], None] | None = None,
    record: Recording | None = None,
) -> dict[Label, Result]:
    """Results under the labels of their runs; equal runs are carried out once, and none whose result is in the store.

    executor    by default processes, one for each core
    failures    a run that fails is noted here under its labels, and the others go on; without, it ends the whole
                with its error
    finished    hears of each label as soon as its result is there, or of its error in words
    record      keeps the runs' telemetry; a run without it is carried out again
    """
    kept = ResultStore(store)
    keys = {label: key(run) for label, run in runs.items()}
    labels: dict[str, list[Label]] = {}
    for label, name in keys.items():
        labels.setdefault(name, []).append(label)
    done: dict[str, Result] = {}
    failed: dict[str, str] = {}

    def settled(name: str, outcome: Result | Exception) -> None:
        if isinstance(outcome, Exception):
            if failures is None:
                raise outcome
            failed[name] = (
                str(outcome) if isinstance(outcome, RunFailed) else f"{type(outcome).__name__}: {outcome}"
            )
        else:
            done[name] = outcome
        if finished is not None:
            for label in labels[name]:
                finished(label, failed.get(name) or done[name])

    for name, (label, *_) in labels.items():
        stored = kept.get(name)
        if stored is not None and (record is None or record.has(label, name)):
            settled(name, stored)
    todo = {
        name: runs[labels[name][0]]
        for name in sorted(
            (name for name in labels if name not in done), key=lambda name: -size(runs[labels[name][0]])
        )
    }
    report = progress or (lambda _done, _total, _what: None)
    report(len(done), len(labels), "")

    def one_more(name: str, outcome: Result | Exception) -> None:
        settled(name, outcome)
        report(len(done) + len(failed), len(labels), title(todo[name]))

    if todo:
        work: Mapping[str, Run] = todo
        if record is not None:
            record.refuse_others()
            work = {name: record.wrapped(labels[name][0], name, run) for name, run in todo.items()}
        (executor or Processes()).carry_out(work, kept, one_more)
    if failures is not None:
        failures.update((label, failed[name]) for label, name in keys.items() if name in failed)
    return {label: done[name] for label, name in keys.items() if name in done}


def finished_runs(runs: Mapping[Label, Run], store: Path) -> dict[Label, Result]:
    """What is in the store, without running anything."""
    kept = ResultStore(store)
    found = ((label, kept.get(key(run))) for label, run in runs.items())
    return {label: result for label, result in found if result is not None}
