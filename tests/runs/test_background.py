"""Work that a Ctrl-C, or the end of its time, ends."""

import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor, process
from concurrent.futures.process import BrokenProcessPool

import pytest

from topicweave.errors import TopicweaveError
from topicweave.runs.background import OutOfTime, interruptible
from topicweave.runs.processes import each

SPAWN = multiprocessing.get_context("spawn")


def test_results_and_errors_come_through() -> None:
    assert interruptible(lambda: 42) == 42
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 / 0)


def test_the_workers_leave_a_ctrl_c_to_us() -> None:
    def blocked_in_a_worker() -> set[signal.Signals]:
        with ProcessPoolExecutor(1, mp_context=SPAWN) as pool:
            return set(pool.submit(signal.pthread_sigmask, signal.SIG_BLOCK, []).result())  # type: ignore[arg-type]  # no signals are asked for

    assert signal.SIGINT in interruptible(blocked_in_a_worker)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_a_ctrl_c_ends_the_workers_and_the_work() -> None:
    worker = SPAWN.Process(target=signal.pause)
    let_go = threading.Event()

    def work() -> None:
        worker.start()
        os.kill(os.getpid(), signal.SIGINT)
        try:
            while True:
                pass
        finally:
            let_go.set()

    with pytest.raises(KeyboardInterrupt):
        interruptible(work)
    assert let_go.is_set()
    worker.join()
    assert worker.exitcode == -signal.SIGTERM


def test_a_worker_that_was_killed_is_told_in_words() -> None:
    def die() -> None:
        with ProcessPoolExecutor(1, mp_context=SPAWN) as pool:
            pool.submit(os._exit, 1).result()

    with pytest.raises(TopicweaveError, match="fewer --workers") as told:
        interruptible(die)
    assert not isinstance(told.value.__cause__, BrokenProcessPool)


def test_work_is_ended_when_its_time_is_up() -> None:
    def work() -> None:
        while True:
            pass

    assert interruptible(lambda: 42, until=time.perf_counter() + 60) == 42
    with pytest.raises(OutOfTime):
        interruptible(work, until=time.perf_counter() + 0.1)
    assert all(thread.name != "work" for thread in threading.enumerate())


def test_nothing_of_a_pool_outlives_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool's thread that still closes its pipes while Python exits ends in "Bad file descriptor"."""
    closing = process._ExecutorManagerThread.join_executor_internals

    def slowly(thread: process._ExecutorManagerThread) -> None:
        threading.Event().wait(0.5)
        closing(thread)

    monkeypatch.setattr(process._ExecutorManagerThread, "join_executor_internals", slowly)
    before = set(threading.enumerate())
    assert interruptible(lambda: sum(found for _, found in each(abs, [-1, -2, -3], 2))) == 6
    assert set(threading.enumerate()) <= before
    with pytest.raises(OutOfTime):
        interruptible(
            lambda: list(each(signal.sigwait, [{signal.SIGUSR1}, {signal.SIGUSR1}], 2)),
            until=time.perf_counter() + 3,
        )
    assert set(threading.enumerate()) <= before
    assert not multiprocessing.active_children()
