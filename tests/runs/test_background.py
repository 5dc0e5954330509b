"""Work that a Ctrl-C ends."""

import multiprocessing
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import pytest

from topicweave.errors import TopicweaveError
from topicweave.runs.background import interruptible

SPAWN = multiprocessing.get_context("spawn")


def test_results_and_errors_come_through() -> None:
    assert interruptible(lambda: 42) == 42
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 / 0)


def test_the_workers_leave_a_ctrl_c_to_us() -> None:
    def blocked_in_a_worker() -> set[signal.Signals]:
        with ProcessPoolExecutor(1, mp_context=SPAWN) as pool:
            return set(pool.submit(signal.pthread_sigmask, signal.SIG_BLOCK, []).result())  # type: ignore[arg-type]

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
