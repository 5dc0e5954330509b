"""Many experiments: on all cores, with progress, and resumable.

Every finished experiment is written to a store at once. Asked again with the same code, it is read from there, so an interrupted
study or comparison goes on where it stopped, and studies that share experiments share their results.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

import msgspec

import topicweave
from topicweave.errors import TopicweaveError
from topicweave.runs.experiment import Experiment, Result, run_experiment

Label = TypeVar("Label", bound=Hashable)
Progress = Callable[[int, int, str], None]
"""Called with (finished, of how many, what was finished last)."""

# Whatever changes a run's outcome; pages, commands and judgements do not.
_CODE = (
    "model",
    "port.py",
    "blocks",
    "systems",
    "sim",
    "telemetry",
    "measures",
    "workloads",
    "designs",
    "bulk",
    "data",
    "runs",
)


@cache
def code_fingerprint() -> str:
    """Names the code that runs experiments: results of other code are not reused."""
    root = Path(topicweave.__file__).parent
    digest = hashlib.sha1(usedforsecurity=False)
    for part in _CODE:
        path = root / part
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.relative_to(root).as_posix().encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


class ResultStore:
    """A folder of results, one small file each, written whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, experiment: Experiment) -> Path:
        """The file that holds, or will hold, its result."""
        name = hashlib.sha1(usedforsecurity=False)
        name.update(code_fingerprint().encode())
        name.update(msgspec.json.encode(experiment, order="deterministic"))
        return self._folder / f"{name.hexdigest()}.json"

    def get(self, experiment: Experiment) -> Result | None:
        try:
            stored: Result = json.loads(self.path(experiment).read_bytes())["result"]
            return stored
        except (OSError, ValueError, KeyError, TypeError):
            return None  # Not there, or not what `put` wrote: run it again.

    def put(self, experiment: Experiment, result: Result) -> None:
        path = self.path(experiment)
        partial = path.with_suffix(f".{os.getpid()}.partial")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            partial.write_text(json.dumps({"experiment": msgspec.to_builtins(experiment), "result": result}))
            partial.replace(path)
        except OSError as error:
            with suppress(OSError):
                partial.unlink()
            raise TopicweaveError(
                f"cannot keep a result in {self._folder}: {error.strerror}; make room or choose another --out"
            ) from error


def run_all(
    experiments: Mapping[Label, Experiment],
    store_folder: Path,
    workers: int | None = None,
    progress: Progress | None = None,
    failures: dict[Label, str] | None = None,
) -> dict[Label, Result]:
    """Results under the labels of their experiments; equal experiments run once.

    An experiment that fails ends the whole with its error; given `failures`, it is noted there under its labels, and the
    others go on.
    """
    store = ResultStore(store_folder)
    key = {
        label: msgspec.json.encode(experiment, order="deterministic")
        for label, experiment in experiments.items()
    }
    todo: dict[bytes, Experiment] = {}
    done: dict[bytes, Result] = {}
    for label, experiment in experiments.items():
        if key[label] in done or key[label] in todo:
            continue
        stored = store.get(experiment)
        if stored is None:
            todo[key[label]] = experiment
        else:
            done[key[label]] = stored
    total = len(todo) + len(done)
    report = progress or (lambda _done, _total, _what: None)
    report(len(done), total, "")
    failed: dict[bytes, str] = {}
    for finished, result in _run(todo, workers or os.cpu_count() or 1):
        if isinstance(result, Exception):
            if failures is None:
                raise result
            failed[finished] = f"{type(result).__name__}: {result}"
        else:
            done[finished] = result
            store.put(todo[finished], result)
        report(len(done) + len(failed), total, _title(todo[finished]))
    if failures is not None:
        failures.update((label, failed[key[label]]) for label in experiments if key[label] in failed)
    return {label: done[key[label]] for label in experiments if key[label] in done}


def _outcome(experiment: Experiment) -> Result | Exception:
    try:
        return run_experiment(experiment)
    except Exception as error:
        return error


def _title(experiment: Experiment) -> str:
    workload = experiment.workload
    return f"{experiment.system}, {getattr(workload, 'nodes', None) or getattr(workload, 'folder', '')} nodes"


def _size(experiment: Experiment) -> int:
    return getattr(experiment.workload, "nodes", 0)


def _run(todo: Mapping[bytes, Experiment], workers: int) -> Iterator[tuple[bytes, Result | Exception]]:
    """Each experiment's result, or what it failed with, as they finish; the large ones are started first."""
    if workers == 1 or len(todo) <= 1:
        for key, experiment in todo.items():
            yield key, _outcome(experiment)
        return
    # Spawned, not forked: a fork copies whatever threads and locks the caller has.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(workers, len(todo)), mp_context=context)
    try:
        ordered = sorted(todo.items(), key=lambda item: -_size(item[1]))
        waiting = {pool.submit(_outcome, experiment): key for key, experiment in ordered}
        while waiting:
            finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in finished:
                yield waiting.pop(future), future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
