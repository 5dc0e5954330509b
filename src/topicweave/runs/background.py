"""Long work that a Ctrl-C, or the end of its time, ends at once and in silence.

A terminal sends Ctrl-C to every process of a command. Worker processes would each answer with a traceback, and the
pool would first finish what it has begun. So the work runs in a thread that does not take the signal (processes inherit
that from the thread that starts them), while the main thread waits, takes it, and ends the workers.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import resource_tracker
from typing import TypeVar

from topicweave.errors import TopicweaveError

T = TypeVar("T")

STOP_SECONDS = 5.0
"""How long to wait for the work to let go; Python code does so at once, a call into a library when it returns."""


class OutOfTime(Exception):
    """The work was ended because its time was up."""


def interruptible(work: Callable[[], T], until: float | None = None) -> T:
    """The result of the work. On Ctrl-C its worker processes are ended and KeyboardInterrupt is raised.

    until   when its time is up, by `time.perf_counter`: it is ended in the same way, and `OutOfTime` is raised
    """
    if until is not None and until <= time.perf_counter():
        raise OutOfTime
    outcome: Future[T] = Future()

    def run() -> None:
        with suppress(KeyboardInterrupt):  # Ours, see _stop: by then nobody waits for the outcome.
            # When it starts, this helper of multiprocessing's lets the signal through again: so it starts first.
            resource_tracker.ensure_running()
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                outcome.set_result(work())
            except Exception as error:
                outcome.set_exception(error)

    thread = threading.Thread(target=run, name="work", daemon=True)
    try:
        thread.start()
        wait([outcome], None if until is None else max(0.0, until - time.perf_counter()))
        if not outcome.done():
            _stop(thread)
            raise OutOfTime
        return outcome.result()
    except KeyboardInterrupt:
        for child in multiprocessing.active_children():
            child.terminate()
        _stop(thread)
        raise
    except BrokenProcessPool:
        raise TopicweaveError(
            "a worker process was ended from outside, most likely for want of memory; "
            "run the same command again with fewer --workers"
        ) from None


def _stop(thread: threading.Thread) -> None:
    """Raise in the work's thread what the main thread got; the work then ends its processes (`runs.processes.each`).

    The thread must not outlive us: Python stops the threads that are left at its exit, and inside a C++ library
    (pyarrow's) that brings the process down with a message of its own.
    """
    for _ in range(2):  # Again, for one that was just being started.
        if thread.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident), ctypes.py_object(KeyboardInterrupt)
            )
            thread.join(STOP_SECONDS)
