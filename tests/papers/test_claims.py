"""The claims as data: each once, judged, and measured by a study that there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from topicweave.errors import BadInput
from topicweave.papers import STUDIES
from topicweave.papers.claims import load_papers, parse
from topicweave.papers.results import read_results
from topicweave.papers.scoreboard import scoreboard

RESULTS = Path(__file__).parents[2] / "docs" / "results"
ONE = '[[claim]]\nid = "a"\nat = "§1"\nsays = "So."\nstudy = "p/f"\nmeasure = "m"\n'


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (ONE + "paper = 1\n" + ONE + "paper = 2\n", "'a' is the id of two claims"),
        (ONE, "judge it by one of"),
        (ONE + "paper = 1\nbelow = 2\n", "judge it by one of"),
        (ONE + 'paper = 1\ncannot = "no data"\n', "say either what is measured"),
        ('[[claim]]\nid = "a"\nat = "§1"\nsays = "So."\n', "say either what is measured"),
        (ONE + 'paper = 1\nchoices = ["x"]\n', "no choice is named 'x'"),
        (ONE + "papers = 1\n", "a: Object contains unknown field"),
        ('[[claim]]\nid = "a"\nat = "§1"\nsays = "So."\nmeasure = "m"\npaper = 1\n', "name its study"),
        ("[[claim]\n", "claims of p"),
        (ONE + "beside = true\n", "judge one case at least"),
    ],
)
def test_a_file_of_claims_that_leaves_something_open_is_refused(source: str, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        parse("p", f'title = "P"\n{source}')


def test_ids_are_unique_over_all_papers() -> None:
    ids = [claim.id for paper in load_papers() for claim in (*paper.claims, *paper.checks)]
    assert len(ids) == len(set(ids)) > 150


def test_claims_name_studies_that_there_are() -> None:
    for paper in load_papers():
        for claim in (*paper.claims, *paper.checks):
            for case in claim.cases:
                others = [case.against.study] if case.against and case.against.study else []
                assert {case.study, *others} <= STUDIES.keys(), claim.id
                assert case.study.startswith(f"{paper.name}/"), claim.id


def test_what_was_run_is_judged_in_all_its_cases() -> None:
    """Else a slip in a claim's `where` would pass for a run that is yet to come."""
    numbers = read_results(RESULTS)
    run = {number.study for number in numbers}
    for board in scoreboard(numbers):
        for verdict in (*board.verdicts, *board.checks):
            claim = verdict.claim
            expected = [case.study for case in claim.cases if case.study in run]
            assert len(verdict.judged) == len(expected), claim.id


def test_every_choice_touches_a_claim() -> None:
    for paper in load_papers():
        touched = {name for claim in (*paper.claims, *paper.checks) for name in claim.choices}
        assert {choice.name for choice in paper.choices} == touched


def test_the_plan_tells_what_each_study_takes() -> None:
    page = (RESULTS.parent / "reproducing.md").read_text("utf-8")
    plan = page[page.index("## What it costs") :]
    told = set(re.findall(r"\| (\w+/\w+) \| (?:[\d.]+|shared) ", plan))
    assert told == {name for name in STUDIES if "/" in name}
