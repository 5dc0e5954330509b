"""How far long work has come, on stderr: a bar in a terminal, a line per finished part in a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from topicweave.runs.runner import Progress as Report


class TimeLeft(ProgressColumn):
    """Reckoned from the parts finished in this run: those read from an earlier one took no time."""

    max_refresh = 0.5

    def __init__(self) -> None:
        super().__init__()
        self._started = time.perf_counter()
        self._finished_at = self._started
        self._done_before = 0.0

    def start(self, done: int) -> None:
        self._started = self._finished_at = time.perf_counter()
        self._done_before = done

    def finished_one(self) -> None:
        self._finished_at = time.perf_counter()

    def render(self, task: Task) -> Text:
        now = time.perf_counter()
        elapsed = _clock(now - self._started)
        done = task.completed - self._done_before
        if task.total is None or not done or task.completed >= task.total:
            return Text(elapsed)
        per_part = (self._finished_at - self._started) / done
        left = per_part * (task.total - task.completed) - (now - self._finished_at)
        return Text(f"{elapsed}, about {_clock(max(left, 0.0))} left")


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}" if minutes >= 60 else f"{minutes}:{seconds:02}"


@contextmanager
def progress(title: str) -> Iterator[Report]:
    """Gives a function to be called with (finished, of how many, what was finished last), first at the start."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Log()
        return
    left = TimeLeft()
    # stdout is left alone: what a command prints goes where the user sent it.
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        left,
        TextColumn("[dim]{task.fields[last]}"),
        console=console,
        transient=True,
        redirect_stdout=False,
    )
    with bar:
        task = bar.add_task(title, total=None, last="")

        def report(done: int, total: int, what: str) -> None:
            if what:
                left.finished_one()
            else:
                left.start(done)
            bar.update(task, completed=done, total=total, last=what)

        yield report


WORTH_SAYING = 10.0
"""Seconds left that a line in a log speaks of."""


class _Log:
    """A line per finished part; with the time left, where it is worth a word."""

    def __init__(self) -> None:
        self._started, self._before = time.perf_counter(), 0

    def __call__(self, done: int, total: int, what: str) -> None:
        if not what:
            self._started, self._before = time.perf_counter(), done
            if done:
                typer.echo(f"{done}/{total} finished in an earlier run", err=True)
            return
        elapsed = time.perf_counter() - self._started
        left = elapsed / max(1, done - self._before) * (total - done)
        said = f", about {_clock(left)} left" if left >= WORTH_SAYING else ""
        typer.echo(f"{done}/{total} {what}{said}", err=True)


@contextmanager
def step_progress(title: str) -> Iterator[Callable[[str, int, int], None]]:
    """Gives a function to be called with (step, finished parts of it, parts of it so far): a bar, or a line per step."""
    console = Console(stderr=True)
    if not console.is_terminal:
        said: list[str] = []

        def say(step: str, _done: int, _total: int) -> None:
            if said[-1:] != [step]:
                said.append(step)
                typer.echo(f"{title}: {step}", err=True)

        yield say
        return
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        redirect_stdout=False,
    )
    with bar:
        task = bar.add_task(title, total=None)
        yield lambda step, done, total: bar.update(
            task, description=f"{title}: {step}", completed=done, total=total or None
        )
