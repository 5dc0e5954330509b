"""Virtual time: what is due happens once, in order, and the clock never goes back."""

from __future__ import annotations

import doctest
import math
from heapq import heappop, heappush
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topicweave.sim import kernel as kernel_module
from topicweave.sim.kernel import Action, Kernel

Log = list[tuple[float, str]]


def logging_kernel() -> tuple[Kernel, Log]:
    return Kernel(), []


def note(kernel: Kernel, log: Log, time: float, name: str) -> None:
    kernel.at(time, lambda a, b: log.append((kernel.now, a)), name)


def test_documentation_examples() -> None:
    outcome = doctest.testmod(kernel_module)
    assert outcome.attempted
    assert not outcome.failed


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0]), max_size=30))
def test_by_time_and_then_in_the_order_of_scheduling(times: list[float]) -> None:
    kernel, log = logging_kernel()
    for number, time in enumerate(times):
        if number % 2:
            note(kernel, log, time, str(number))
        else:
            kernel.after(time, lambda a, b: log.append((kernel.now, a)), str(number))
    kernel.run(2.0)
    in_order = sorted(range(len(times)), key=times.__getitem__)  # stable
    assert log == [(times[number], str(number)) for number in in_order]
    assert kernel.events == len(times)


class OneHeap(Kernel):
    """The same, without a calendar: all entries in one heap."""

    def __init__(self) -> None:
        super().__init__()
        self.heap: list[tuple[float, int, Action, Any, Any]] = []
        self.happened = 0

    def at(self, time: float, action: Action, a: Any = None, b: Any = None) -> None:
        self._order += 1
        heappush(self.heap, (max(time, self.now), self._order, action, a, b))

    def run(self, until: float) -> None:
        while self.heap and self.heap[0][0] <= until:
            self.now, _, action, a, b = heappop(self.heap)
            self.happened += 1
            action(a, b)
        self.now = max(self.now, until)

    @property
    def pending(self) -> int:
        return len(self.heap)


def logged(
    kernel: Kernel, steps: list[tuple[float, float]], stops: list[float]
) -> tuple[Log, list[int], int]:
    """What happens, and how much is pending at each stop, if some actions schedule others."""
    log: Log = []

    def say(name: str, _: None) -> None:
        log.append((kernel.now, name))

    def act(delay: float, name: str) -> None:
        log.append((kernel.now, name))
        kernel.after(delay, say, f"after {name}")

    for number, (time, delay) in enumerate(steps):
        kernel.at(time, act, delay, str(number))
        kernel.after(delay, say, f"first {number}")
    pending = []
    for stop in stops:
        kernel.run(stop)
        pending.append(kernel.pending)
        kernel.at(kernel.now + 0.001, act, 0.01, f"at {stop}")
    kernel.run(5.0)
    return log, pending, kernel.events


MOMENTS = st.one_of(st.sampled_from([0.0, 1 / 64, 0.05, 0.5, 1.0, 1e16, math.inf]), st.floats(0.0, 6.0))


@given(st.lists(st.tuples(MOMENTS, MOMENTS), max_size=30), st.lists(st.floats(0.0, 4.0), max_size=5))
def test_the_calendar_does_what_one_heap_would(steps: list[tuple[float, float]], stops: list[float]) -> None:
    assert logged(Kernel(), steps, stops) == logged(OneHeap(), steps, stops)


def test_for_ever_is_later_than_everything_else() -> None:
    kernel, log = logging_kernel()
    for time, name in ((math.inf, "never"), (1e300, "late"), (1e14, "soon"), (2e300, "later")):
        note(kernel, log, time, name)
    kernel.run(math.inf)
    assert [name for _, name in log] == ["soon", "late", "later", "never"]


def test_until_is_inclusive_and_what_is_later_waits() -> None:
    kernel, log = logging_kernel()
    for time in (1.0, math.nextafter(1.0, 2.0)):
        note(kernel, log, time, "due")
    kernel.run(until=1.0)
    assert [time for time, _ in log] == [1.0]
    assert (kernel.pending, kernel.now) == (1, 1.0)
    kernel.run(until=5.0)
    assert len(log) == 2
    assert (kernel.pending, kernel.now) == (0, 5.0)


def test_running_to_the_past_does_nothing() -> None:
    kernel, log = logging_kernel()
    kernel.run(until=3.0)
    note(kernel, log, 2.0, "late")
    kernel.run(until=1.0)
    assert (kernel.now, log, kernel.pending) == (3.0, [], 1)


def test_a_moment_that_has_passed_is_now_after_what_is_due_now() -> None:
    kernel, log = logging_kernel()

    def act(_a: None, _b: None) -> None:
        note(kernel, log, 0.5, "past")
        kernel.after(-1.0, lambda a, b: log.append((kernel.now, a)), "negative")

    kernel.at(1.0, act)
    note(kernel, log, 1.0, "due")
    note(kernel, log, 1.25, "later")
    kernel.run(2.0)
    assert log == [(1.0, "due"), (1.0, "past"), (1.0, "negative"), (1.25, "later")]


def test_what_is_scheduled_for_the_same_moment_happens_in_the_same_run() -> None:
    kernel, log = logging_kernel()
    kernel.at(1.0, lambda a, b: note(kernel, log, 1.0, "echo"))
    kernel.run(1.0)
    assert log == [(1.0, "echo")]


def test_not_a_number_is_now_and_does_not_hold_up_the_rest() -> None:
    kernel, log = logging_kernel()
    kernel.run(1.0)
    note(kernel, log, math.nan, "when?")
    kernel.after(math.nan, lambda a, b: log.append((kernel.now, a)), "how long?")
    note(kernel, log, 2.0, "next")
    kernel.run(2.0)
    assert log == [(1.0, "when?"), (1.0, "how long?"), (2.0, "next")]


@given(st.lists(st.tuples(st.booleans(), st.floats()), max_size=20))
def test_the_clock_never_goes_back_whatever_is_asked(requests: list[tuple[bool, float]]) -> None:
    kernel = Kernel()
    times: list[float] = []

    def act(_a: None, _b: None) -> None:
        times.append(kernel.now)
        if requests:
            absolute, value = requests.pop()
            (kernel.at if absolute else kernel.after)(value, act)
            kernel.after(0.5, act)

    kernel.at(0.0, act)
    asked = 1 + 2 * len(requests)
    kernel.run(100.0)
    assert times == sorted(times)
    assert len(times) + kernel.pending == asked


def test_an_error_in_an_action_passes_through_and_the_rest_can_go_on() -> None:
    kernel, log = logging_kernel()

    def fail(_a: None, _b: None) -> None:
        raise RuntimeError("broken node")

    kernel.at(1.0, fail)
    note(kernel, log, 1.0, "next")
    with pytest.raises(RuntimeError, match="broken node"):
        kernel.run(2.0)
    assert kernel.now == 1.0
    kernel.run(2.0)
    assert log == [(1.0, "next")]


def test_actions_get_both_arguments() -> None:
    kernel = Kernel()
    got: list[tuple[object, object]] = []
    kernel.at(0.0, lambda a, b: got.append((a, b)), 1, 2)
    kernel.after(0.0, lambda a, b: got.append((a, b)), "a")
    kernel.run(0.0)
    assert got == [(1, 2), ("a", None)]
