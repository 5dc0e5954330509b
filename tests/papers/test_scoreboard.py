"""The scoreboard: rows of several seeds put together, and what is said where a claim does not hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from topicweave.errors import BadInput
from topicweave.papers.scoreboard import Origin, Score, Scoreboard, combine, latest, read_scoreboard
from topicweave.papers.scoreboard_page import markdown, ours, verdict
from topicweave.papers.study import Plan, Row, Study, close_to, reported

ORIGIN = Origin("2026-01-01", "a machine", "c0de")
FIGURE = Study(
    "paper/fig1",
    "Degrees",
    "Paper §1",
    lambda scale, seed: Plan({}, lambda results: []),
    "We measure otherwise.",
)


def test_seeds_become_one_row_with_a_mean_and_an_interval() -> None:
    rows = [
        [close_to({"nodes": 10, "seed": seed}, "degree_mean", 10.0, value, 0.1)]
        for seed, value in ((0, 10.0), (1, 10.5))
    ]
    [score] = combine("paper/fig1", rows)
    assert (score.measured, score.held, score.judged, score.holds) == (10.25, 2, 2, True)
    assert score.where == {"nodes": 10}
    assert score.interval is not None
    assert ours(score).startswith("10.25 ± ")


def test_one_seed_that_misses_is_a_miss_and_says_so() -> None:
    rows = [[close_to({}, "degree_mean", 10.0, value, 0.1)] for value in (10.0, 12.0)]
    [score] = combine("paper/fig1", rows)
    assert score.holds is False
    assert verdict(score) == "✗ 1/2"


def test_what_cannot_be_judged_is_reported() -> None:
    [score] = combine("paper/fig1", [[reported({}, "relays", None, "a few")]])
    assert (score.holds, verdict(score), score.measured, score.interval) == (None, "–", "a few", None)


def test_points_are_told_apart() -> None:
    rows = [
        [Row({"nodes": nodes}, "noise", None, 0.5) for nodes in (1, 2)] + [Row({"nodes": 1}, "hops", None, 3)]
    ]
    assert len(combine("paper/fig1", rows)) == 3


def test_the_page_gives_reasons_only_for_what_does_not_hold() -> None:
    def page(holds: bool) -> str:
        score = Score(
            "paper/fig1", {"nodes": 10}, "degree_mean", 10.0, 12.0, None, int(holds), 1, "within 10%"
        )
        return markdown([Scoreboard("smoke", (0,), (score,), {}, ORIGIN)], {"paper/fig1": FIGURE})

    assert "| nodes 10 | degree_mean | 10 | 12 | within 10% | ✗ |" in page(False)
    assert "Why not: We measure otherwise." in page(False)
    assert "Why not" not in page(True)
    assert "| paper | 1 | 0 | 0 | smoke | 0 | 2026-01-01 | a machine |" in page(True)


def test_a_study_that_could_not_be_run_says_why() -> None:
    board = Scoreboard("paper", (0,), (), {"paper/fig1": "2 of 3 runs are missing"}, ORIGIN)
    assert "Could not be judged: 2 of 3 runs are missing" in markdown([board], {"paper/fig1": FIGURE})


def test_several_make_one_page_with_each_study_as_last_judged(tmp_path: Path) -> None:
    def board(scores: list[tuple[str, float]], lost: dict[str, str]) -> Scoreboard:
        made = tuple(Score(study, {}, "noise", None, value, None, 0, 0) for study, value in scores)
        return Scoreboard("paper", (0,), made, lost, ORIGIN)

    first = board([("a/fig1", 1.0), ("a/fig2", 2.0)], {"b/fig1": "not run yet"})
    second = board([("a/fig2", 3.0)], {"a/fig1": "not run yet", "b/fig1": "no Java"})
    (tmp_path / "first.json").write_text(json.dumps(first.to_json()))
    read = read_scoreboard(tmp_path / "first.json")
    assert read == first
    one, two = latest([read, second])
    assert [(score.study, score.measured) for score in (*one.scores, *two.scores)] == [
        ("a/fig1", 1.0),
        ("a/fig2", 3.0),
    ]
    assert (one.failures, two.failures) == ({}, {"b/fig1": "no Java"})


def test_what_is_no_scoreboard_is_told(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(BadInput, match="no scoreboard"):
        read_scoreboard(tmp_path / "other.json")
    with pytest.raises(BadInput, match="cannot read"):
        read_scoreboard(tmp_path / "nothing.json")
