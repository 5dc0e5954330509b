"""How far a stream has come, by the clocks of its nodes: one of them does not decide for all."""

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from topicweave.pipeline.stream_progress import Progress, StreamedRun, Windows

WINDOWS = Windows(window=10.0, wait=5.0, lateness=5.0)


def rows(node: str, *times: float, run: str = "run") -> list[dict[str, Any]]:
    return [
        {"run": run, "node": node, "place": math.floor(time / 10.0), "rows": 1, "lists": 0, "latest": time}
        for time in times
    ]


def after(*batches: list[dict[str, Any]]) -> Progress:
    """As a stream does it: rows, then the windows that are due are done with."""
    progress = Progress()
    for batch in batches:
        progress = progress.with_rows(batch, WINDOWS)
        progress = progress.moved_on(progress.first_waiting(WINDOWS), WINDOWS)
    return progress


def test_a_clock_that_is_ahead_makes_no_others_late() -> None:
    others = [row for node in "abc" for row in rows(node, 1.0, 12.0)]
    progress = after(others + rows("fast", 900.0), [row for node in "abc" for row in rows(node, 13.0, 24.0)])
    run = progress.runs["run"]
    assert (run.late, run.future) == (0, 1)
    assert "fast" not in run.marks
    assert run.first_waiting == 1, "24 s, less 5 and 5: the first window is complete, and no other"


def test_the_slowest_living_node_is_waited_for_and_a_dead_one_is_not() -> None:
    fast = [row for node in "abc" for row in rows(node, 27.0)]
    assert after(fast + rows("slow", 23.0)).runs["run"].slowest(5.0) == 23.0
    assert after(rows("slow", 8.0), fast + rows("slow", 23.0)).runs["run"].first_waiting == 1
    dead = after(rows("dead", 3.0), fast)
    assert dead.runs["run"].slowest(5.0) == 27.0
    assert dead.runs["run"].first_waiting == 1


def test_what_comes_when_its_window_is_done_is_late() -> None:
    progress = after([row for node in "abc" for row in rows(node, 1.0, 35.0)], rows("a", 2.0, 36.0))
    assert (progress.runs["run"].late, progress.left_out()) == (1, 1)


def test_a_run_that_is_over_is_forgotten_but_for_what_has_been_measured() -> None:
    progress = after([row for node in "abc" for row in rows(node, 1.0, 35.0)])
    run = progress.runs["run"]
    done = progress.moved_on({"run": 4}, WINDOWS)
    long = Progress(
        {"run": StreamedRun(run.number, 4, run.last_possible, run.marks, done.runs["run"].rows, idle=5000)}
    )
    forgotten = long.moved_on({"run": 4}, WINDOWS).runs["run"]
    assert (forgotten.marks, forgotten.rows, forgotten.first_waiting) == ({}, {}, 4)


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(0, 200)), min_size=1, max_size=60),
    st.floats(1000, 1e9),
)
def test_no_row_is_lost_whatever_one_clock_says(found: list[tuple[str, float]], ahead: float) -> None:
    """With any one node far ahead, everything else is placed as it is without it."""
    batches = [rows(node, time) for node, time in [*[(one, 0.0) for one in "abcdef"], *found]]
    first = [row for batch in batches[:6] for row in batch]
    alone = after(first, *batches[6:])
    joined = after(first + rows("fast", 0.0), rows("fast", ahead), *batches[6:])
    one, other = alone.runs["run"], joined.runs["run"]
    assert other.future >= 1
    assert other.first_waiting <= one.first_waiting
    assert other.late <= one.late
