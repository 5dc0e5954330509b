"""The scoreboard from the command line, on the quickest study."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import call
from topicweave.cli.reproduce import choose_papers
from topicweave.errors import UnknownName
from topicweave.papers import STUDIES

STUDY = "spidercast/fig14"


def test_papers_stand_for_their_studies() -> None:
    assert {study.name for study in choose_papers(["spidercast"])} == {
        name for name in STUDIES if name.startswith("spidercast/")
    }
    assert [study.name for study in choose_papers([STUDY])] == [STUDY]
    assert len(choose_papers([])) == len([name for name in STUDIES if "/" in name])
    with pytest.raises(UnknownName):
        choose_papers(["no such paper"])


def test_a_study_is_scored_and_what_was_not_run_is_told(tmp_path: Path) -> None:
    words = ["reproduce", STUDY, "--out", tmp_path / "out", "--format", "json"]
    nothing = json.loads(call(*words, "--finished").stdout)
    assert nothing["scores"] == []
    assert "not run yet" in nothing["failures"][STUDY]
    told = json.loads(call(*words, "--workers", 2).stdout)
    assert told["failures"] == {}
    assert {score["study"] for score in told["scores"]} == {STUDY}
    assert json.loads((tmp_path / "out" / "scoreboard.json").read_text()) == told
    assert f"## {STUDY}" in (tmp_path / "out" / "scoreboard.md").read_text()
    assert json.loads(call(*words, "--finished").stdout)["scores"] == told["scores"]
    page = call("scoreboard", tmp_path / "out" / "scoreboard.json").stdout
    assert page == (tmp_path / "out" / "scoreboard.md").read_text()


def test_a_run_that_fails_costs_its_own_study_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from topicweave.runs import Result, Run, carry_out, runner

    def often(run: Run) -> Result:
        if getattr(run, "system", "") == "ring-per-topic":
            raise ValueError("no more rings")
        return carry_out(run)

    monkeypatch.setattr(runner, "carry_out", often)
    ended = call(
        "reproduce", STUDY, "spidercast/fig12", "--out", tmp_path / "out", "--format", "json", "--workers", 1
    )
    told = json.loads(ended.stdout)
    assert set(told["failures"]) == {STUDY}
    assert "no more rings" in told["failures"][STUDY]
    assert {score["study"] for score in told["scores"]} == {"spidercast/fig12"}
