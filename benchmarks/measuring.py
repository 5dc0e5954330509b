"""Running a function in a process of its own, with its time and peak memory."""

from __future__ import annotations

import multiprocessing
import resource
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

from topicweave.runs.large_pages import large_pages


class Measured(NamedTuple):
    seconds: float
    cpu: float
    """Processor seconds: what a busy machine changes least."""
    peak_mib: float
    value: Any


def _timed(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Measured:
    start, cpu = time.perf_counter(), time.process_time()
    value = function(*arguments)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    return Measured(seconds, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, value)


def measured(function: Callable[..., Any], *arguments: Any) -> Measured:
    """A fresh process, so that no run profits or suffers from the memory of the one before. It asks for large pages, as
    the workers of runs do.
    """
    with large_pages(), ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_timed, function, arguments).result()
