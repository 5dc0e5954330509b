"""Results of other code, checked at smoke scale."""

from __future__ import annotations

from pathlib import Path

import pytest

from topicweave.errors import BadInput
from topicweave.papers.reproducing import Reproduction
from topicweave.papers.results import Batch, Number, as_numbers
from topicweave.papers.smoke import Check, add_checks, check, of_other_code, read_checks
from topicweave.papers.study import Plan, Row, Study

PAPER = as_numbers(Batch("p/fig1", "paper", 0, "bulk", code="0ld"), [Row({}, "degree", None, 5.0)])


def again(*, clocked: bool = False) -> Reproduction:
    study = Study("p/fig1", "", "", lambda scale, seed: Plan({}, lambda results: []), clocked=clocked)
    return Reproduction.of([study], "paper", [0, 1], PAPER)


def small(*values: float, code: str = "0ld") -> list[Number]:
    batch = Batch("p/fig1", "smoke", 0, "bulk", code=code)
    return as_numbers(
        batch, [Row({"nodes": nodes}, "degree", None, value) for nodes, value in enumerate(values)]
    )


@pytest.mark.parametrize(
    ("kept", "here", "verdict", "told"),
    [
        (small(1.0, 2.0), small(1.0, 2.0), "same at smoke scale", "all 2 numbers the same"),
        (small(1.0, 2.0), small(1.0, 2.0000001), "same at smoke scale", "all 2 numbers the same"),
        (small(float("nan")), small(float("nan")), "same at smoke scale", "all 1 numbers the same"),
        (small(1.0, 2.0), small(1.0, 2.5), "other at smoke scale", "1 of 2 numbers differ, by at most 20%"),
        (small(1.0, 0.0), small(1.0, 1e-9), "other at smoke scale", "1 of 2 numbers differ, by at most 100%"),
        (
            small(1.0, 2.0),
            small(1.0),
            "same at smoke scale",
            "all 1 numbers the same; 1 are not measured here",
        ),
        (small(1.0), small(), "unknown", "unknown: none of its 1 numbers is measured here"),
        (
            small(1.0, code="0ther"),
            small(1.0),
            "unknown",
            "unknown: nothing of its code is kept at smoke scale",
        ),
        ([], small(1.0), "unknown", "unknown: nothing of its code is kept at smoke scale"),
    ],
)
def test_numbers_of_two_codes_are_compared(
    kept: list[Number], here: list[Number], verdict: str, told: str
) -> None:
    one = check(again(), PAPER, kept, here, {}, "2026-01-02")["p/fig1"]
    assert (one.verdict, one.told) == (verdict, told)
    assert one.code == "0ld" != one.here


def test_a_study_that_fails_at_smoke_scale_is_unknown() -> None:
    one = check(again(), PAPER, small(1.0), [], {"p/fig1": "1 of 1 runs: ValueError: no"}, "")["p/fig1"]
    assert one.told == "unknown: 1 of 1 runs: ValueError: no"
    timed = check(again(clocked=True), PAPER, small(1.0), small(2.0), {}, "")["p/fig1"]
    assert timed.told == "unknown: its numbers are times of the processor"
    assert not again(clocked=True).small(["p/fig1"], []).parts


def test_results_of_the_code_at_hand_need_no_check() -> None:
    now = again()
    (mine,) = (part.code for part in now.first())
    fresh = as_numbers(Batch("p/fig1", "paper", 0, "bulk", code=mine), [Row({}, "degree", None, 5.0)])
    assert check(now, fresh, [], [], {}, "")["p/fig1"].told == "same code"
    assert of_other_code(now, fresh, {}) == {}
    assert check(now, [], [], [], {}, "") == {}


def test_a_check_counts_for_the_two_codes_that_it_compared() -> None:
    now = again()
    checks = check(now, PAPER, small(1.0), small(1.0), {}, "")
    assert of_other_code(now, PAPER, checks) == {"same at smoke scale": ["p/fig1"]}
    earlier = {"p/fig1": Check("0ld", "an earlier one", "", 1, 1)}
    assert of_other_code(now, PAPER, earlier) == of_other_code(now, PAPER, {}) == {"not checked": ["p/fig1"]}


def test_checks_are_kept_and_continued(tmp_path: Path) -> None:
    assert read_checks(tmp_path) == {}
    first, second = Check("a", "b", "2026-01-01", 2, 2), Check("a", "c", "2026-01-02", 2, 2, 1)
    add_checks(tmp_path, {"p/fig2": first, "p/fig1": first})
    assert add_checks(tmp_path, {"p/fig1": second}) == {"p/fig1": second, "p/fig2": first}
    assert list(read_checks(tmp_path)) == ["p/fig1", "p/fig2"]
    (tmp_path / "checks.json").write_text('{"p/fig1": {}}')
    with pytest.raises(BadInput, match=r"checks\.json is no file of `topicweave reproduce --check`"):
        read_checks(tmp_path)
