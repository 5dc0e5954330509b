"""Worker processes that start clean.

Python's own way starts a worker by running the caller's main script again. A script that calls `compare`
without a guard (`if __name__ == "__main__":`) would then start workers in its workers. Nothing that we send
to a worker is defined in the main script, so ours do not look at it.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import contextmanager
from itertools import islice
from multiprocessing import connection, context, process
from types import ModuleType
from typing import Any, TypeVar

from topicweave.runs.large_pages import large_pages

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")

LOOK = 0.25
"""Seconds after which a wait comes back to Python, so that whoever wants to end the work is heard
(`runs.background`).
"""


def each(
    job: Callable[[Item], Outcome], items: Iterable[Item], workers: int
) -> Generator[tuple[Item, Outcome]]:
    """What becomes of each item, as it comes in; one worker is this process itself.

    Leaving early ends the workers. Either way all of the pool is gone afterwards, its threads too: one that is still
    closing its pipes while Python exits ends in "Bad file descriptor".
    """
    if workers == 1:
        for item in items:
            yield item, job(item)
        return
    # Spawned, not forked: a fork copies whatever threads and locks the caller has.
    clean = _Clean()
    pool = ProcessPoolExecutor(workers, mp_context=clean, initializer=_end_with_parent)
    coming = iter(items)
    try:
        # A few ahead of the workers and no more, so that a million items need no memory.
        waiting = {pool.submit(job, item): item for item in islice(coming, 2 * workers)}
        while waiting:
            finished, _ = wait(waiting, LOOK, FIRST_COMPLETED)
            waiting |= {pool.submit(job, item): item for item in islice(coming, len(finished))}
            for future in finished:
                yield waiting.pop(future), future.result()
    except BaseException:
        for worker in clean.started:
            if worker.pid is not None:
                worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    """In a worker: nobody asks for its results once the command that started it is gone, however it went."""
    parent = process.parent_process()
    assert parent is not None

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()


class _CleanProcess(context.SpawnProcess):
    @staticmethod
    def _Popen(process_obj: process.BaseProcess) -> Any:  # noqa: N802 -- multiprocessing's name
        with _without_main(), large_pages():
            return context.SpawnProcess._Popen(process_obj)


class _Clean(context.SpawnContext):
    def __init__(self) -> None:
        self.started: list[_CleanProcess] = []

    def Process(self, *args: Any, **kwargs: Any) -> _CleanProcess:  # type: ignore[override]  # noqa: N802
        worker = _CleanProcess(*args, **kwargs)
        self.started.append(worker)
        return worker


@contextmanager
def _without_main() -> Iterator[None]:
    """What multiprocessing reads of the main module is its file and spec; an empty module has neither."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
