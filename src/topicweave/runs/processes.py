"""Worker processes that start clean.

Python's own way starts a worker by running the caller's main script again. A script that calls `compare` without a guard
(`if __name__ == "__main__":`) would then start workers in its workers. Nothing that we send to a worker is defined in the
main script, so ours do not look at it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import context, process
from types import ModuleType
from typing import Any


def process_pool(workers: int) -> ProcessPoolExecutor:
    """A pool of spawned processes. Spawned, not forked: a fork copies whatever threads and locks the caller has."""
    return ProcessPoolExecutor(workers, mp_context=_Clean())


class _CleanProcess(context.SpawnProcess):
    @staticmethod
    def _Popen(process_obj: process.BaseProcess) -> Any:  # noqa: N802 -- multiprocessing's name
        with _without_main():
            return context.SpawnProcess._Popen(process_obj)


class _Clean(context.SpawnContext):
    Process = _CleanProcess


@contextmanager
def _without_main() -> Iterator[None]:
    """What multiprocessing reads of the main module is its file and spec; an empty module has neither."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
