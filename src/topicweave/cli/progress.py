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


class Reckoning:
    """Seconds left, from the parts finished in this run: those read from an earlier one took no time."""

    def __init__(self, most: float | None = None) -> None:
        """most: seconds from here after which the work ends, finished or not."""
        self.started = self._finished_at = time.perf_counter()
        self._until = None if most is None else self.started + most
        self._done_before = 0.0

    def start(self, done: int) -> None:
        self.started = self._finished_at = time.perf_counter()
        self._done_before = done

    def finished_one(self) -> None:
        self._finished_at = time.perf_counter()

    def left(self, done: float, total: float | None) -> float | None:
        """None while nothing can be told, and at the end."""
        here = done - self._done_before
        if total is None or not here or done >= total:
            return None
        now = time.perf_counter()
        per_part = (self._finished_at - self.started) / here
        left = per_part * (total - done) - (now - self._finished_at)
        return max(0.0, left if self._until is None else min(left, self._until - now))


class TimeLeft(ProgressColumn):
    """Of a bar."""

    max_refresh = 0.5

    def __init__(self, reckoning: Reckoning) -> None:
        super().__init__()
        self._reckoning = reckoning

    def render(self, task: Task) -> Text:
        elapsed = _clock(time.perf_counter() - self._reckoning.started)
        left = self._reckoning.left(task.completed, task.total)
        return Text(elapsed if left is None else f"{elapsed}, about {_clock(left)} left")


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}" if minutes >= 60 else f"{minutes}:{seconds:02}"


@contextmanager
def progress(title: str, most: float | None = None) -> Iterator[Report]:
    """Gives a function to be called with (finished, of how many, what was finished last), first at the start.

    most: seconds after which the work ends in any case
    """
    console = Console(stderr=True)
    reckoning = Reckoning(most)
    if not console.is_terminal:
        yield _log(reckoning)
        return
    # stdout is left alone: what a command prints goes where the user sent it.
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeLeft(reckoning),
        TextColumn("[dim]{task.fields[last]}"),
        console=console,
        transient=True,
        redirect_stdout=False,
    )
    with bar:
        task = bar.add_task(title, total=None, last="")

        def report(done: int, total: int, what: str) -> None:
            if what:
                reckoning.finished_one()
            else:
                reckoning.start(done)
            bar.update(task, completed=done, total=total, last=what)

        yield report


WORTH_SAYING = 10.0
"""Seconds left that a line in a log speaks of."""


def _log(reckoning: Reckoning) -> Report:
    """A line per finished part; with the time left, where it is worth a word."""
    here = 0

    def report(done: int, total: int, what: str) -> None:
        nonlocal here
        if not what:
            reckoning.start(done)
            if done:
                when = "already, in this run or an earlier one" if here else "in an earlier run"
                typer.echo(f"{done}/{total} finished {when}", err=True)
            return
        here += 1
        reckoning.finished_one()
        left = reckoning.left(done, total) or 0.0
        said = f", about {_clock(left)} left" if left >= WORTH_SAYING else ""
        typer.echo(f"{done}/{total} {what}{said}", err=True)

    return report


@contextmanager
def step_progress(title: str) -> Iterator[Callable[[str, int, int], None]]:
    """Gives a function to be called with (step, finished parts of it, parts of it so far): a bar, or a line
    per step.
    """
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
