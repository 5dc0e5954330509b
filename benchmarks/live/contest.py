"""Running one contestant."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

LONGEST = 240.0
"""Seconds a contestant may take."""


def _contest(pipe: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    os.setsid()  # A group of its own: whatever it starts ends with it.
    try:
        pipe.send(function(*arguments))
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")


def attempt(function: Callable[..., Any], *arguments: Any) -> Any:
    """The contestant's result, or why there is none; in a process of its own that is ended afterwards, since
    not all end by themselves.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_contest, args=(there, function, arguments))
    process.start()
    result = here.recv() if here.poll(LONGEST) else f"no result in {LONGEST:g} s"
    assert process.pid is not None
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.join()
    return result
