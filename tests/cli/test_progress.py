"""The time left."""

import pytest
from rich.progress import Progress

from topicweave.cli import progress
from topicweave.cli.progress import Reckoning, TimeLeft


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


def test_it_is_reckoned_from_what_this_run_has_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    reckoning, bar = Reckoning(), Progress()
    left = TimeLeft(reckoning)
    bar.add_task("x", total=10)
    [task] = bar.tasks
    reckoning.start(6)  # Read from an earlier run, in no time.
    task.completed = 6
    clock.now = 5.0
    assert left.render(task).plain == "0:05"
    clock.now = 60.0
    task.completed = 7
    reckoning.finished_one()
    assert left.render(task).plain == "1:00, about 3:00 left"
    clock.now = 90.0
    assert left.render(task).plain == "1:30, about 2:30 left"
    clock.now = 4000.0
    assert left.render(task).plain == "1:06:40, about 0:00 left"
    task.completed = 10
    assert left.render(task).plain == "1:06:40"


def test_a_log_gets_a_line_per_part(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.progress("x") as report:
        report(2, 4, "")
        report(3, 4, "alpha")
    assert capsys.readouterr().err == "2/4 finished in an earlier run\n3/4 alpha\n"


def test_what_was_finished_as_a_pilot_is_not_of_an_earlier_run(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.progress("x") as report:
        report(0, 4, "")
        report(1, 4, "pilot of alpha")
        report(2, 15, "")
    said = capsys.readouterr().err.splitlines()
    assert said == ["1/4 pilot of alpha", "2/15 finished already, in this run or an earlier one"]


def test_a_log_says_the_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    with progress.progress("x") as report:
        report(2, 6, "")  # Two were there.
        clock.now = 30.0
        report(3, 6, "vitis")
        clock.now = 33.0
        report(5, 6, "omen")
        report(6, 6, "rappel")
    assert capsys.readouterr().err.splitlines() == [
        "2/6 finished in an earlier run",
        "3/6 vitis, about 1:30 left",
        "5/6 omen, about 0:11 left",
        "6/6 rappel",
    ]


def test_the_time_left_ends_with_the_budget(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    with progress.progress("x", most=180.0) as report:
        clock.now = 60.0  # Pilots.
        report(0, 14, "")
        clock.now = 90.0
        report(1, 14, "vitis")
    assert capsys.readouterr().err == "1/14 vitis, about 1:30 left\n"
