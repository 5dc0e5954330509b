"""The scoreboard from the command line, on the quickest study."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.commands import call
from topicweave.errors import UnknownName
from topicweave.papers import STUDIES
from topicweave.papers.catalogue import choose_papers
from topicweave.papers.study import Plan, Scale

STUDY = "spidercast/fig14"
CODE = r",[0-9a-f]{12},"


def test_papers_stand_for_their_studies() -> None:
    assert {study.name for study in choose_papers(["spidercast"])} == {
        name for name in STUDIES if name.startswith("spidercast/")
    }
    assert [study.name for study in choose_papers([STUDY])] == [STUDY]
    assert len(choose_papers([])) == len([name for name in STUDIES if "/" in name])
    with pytest.raises(UnknownName):
        choose_papers(["no such paper"])


def test_results_are_kept_as_data_and_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from topicweave.runs import Result, Run, runner

    words = ["reproduce", STUDY, "--scale", "smoke", "--out", tmp_path / "out", "--format", "json"]
    nothing = json.loads(call(*words, "--finished").stdout)
    assert "not run yet" in nothing["failures"][STUDY]
    assert not (tmp_path / "out" / "results").exists()
    told = json.loads(call(*words, "--workers", 1).stdout)
    assert told["failures"] == {}
    assert json.loads((tmp_path / "out" / "scoreboard.json").read_text()) == told
    kept = tmp_path / "out" / "results" / "spidercast.csv"
    lines = kept.read_text()
    assert f"{STUDY},smoke,0,messages," in lines

    def never(run: Run) -> Result:
        raise AssertionError("this was run already")

    monkeypatch.setattr(runner, "carry_out", never)
    shutil.rmtree(tmp_path / "runs", ignore_errors=True)
    again = call(*words, "--workers", 1, "--runs", tmp_path / "elsewhere")
    assert json.loads(again.stdout)["failures"] == {}
    assert kept.read_text() == lines
    anew = call(*words, "--again", "--workers", 1, "--runs", tmp_path / "elsewhere")
    assert "this was run already" in json.loads(anew.stdout)["failures"][STUDY]
    assert kept.read_text() == lines, "what failed costs no result"
    assert call(*words, "--again", "--finished").exit_code == 2
    kept.write_text(re.sub(CODE, ",other code..,", lines))
    again = call(*words, "--workers", 1, "--runs", tmp_path / "elsewhere")
    assert "this was run already" in json.loads(again.stdout)["failures"][STUDY]


def test_the_headline_is_of_what_the_project_keeps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    shown = call(
        "reproduce", "spidercast", "--finished", "--out", tmp_path, "--runs", tmp_path / "runs"
    ).stdout
    assert shown.split()[:7] == ["paper", "claims", "holds", "seems", "to", "hold", "does"]
    page = Path("docs/reproduction.md").read_text(encoding="utf-8")
    counts = next(line for line in shown.splitlines() if line.startswith("spidercast")).split()
    assert f"| {' | '.join(counts)} |" in page
    assert call("scoreboard").stdout == page


def test_a_folder_without_results_is_told(tmp_path: Path) -> None:
    ended = call("scoreboard", tmp_path)
    assert ended.exit_code != 0
    assert "holds no results" in ended.output


def test_a_run_that_fails_costs_its_own_study_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from topicweave.runs import Result, Run, carry_out, runner

    def often(run: Run) -> Result:
        if getattr(run, "system", "") == "ring-per-topic":
            raise ValueError("no more rings")
        return carry_out(run)

    monkeypatch.setattr(runner, "carry_out", often)
    ended = call(
        *("reproduce", STUDY, "spidercast/fig12", "--out", tmp_path / "out", "--format", "json"),
        "--workers",
        1,
    )
    told = json.loads(ended.stdout)
    assert set(told["failures"]) == {STUDY}
    assert "no more rings" in told["failures"][STUDY]
    lines = (tmp_path / "out" / "results" / "spidercast.csv").read_text().splitlines()[1:]
    assert {line.split(",")[0] for line in lines} == {"spidercast/fig12"}


def test_results_of_other_code_are_checked_at_smoke_scale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from topicweave.runs import Result, Run, runner

    def plan(scale: Scale, seed: int) -> Plan:
        return small("smoke", seed if scale == "smoke" else seed + 1)

    small = STUDIES[STUDY].plan
    monkeypatch.setitem(STUDIES, STUDY, replace(STUDIES[STUDY], plan=plan))
    results, out = tmp_path / "results", tmp_path / "out"
    words = ("reproduce", STUDY, "--results", results, "--out", out, "--workers", 1)
    call(*words, "--scale", "paper", "--runs", tmp_path / "then")
    kept, beside = results / "spidercast.csv", results / "smoke" / "spidercast.csv"
    count = len(beside.read_text().splitlines()) - 1
    assert count == len(kept.read_text().splitlines()) - 1 > 0
    assert set(re.findall(CODE, beside.read_text())) == set(re.findall(CODE, kept.read_text()))

    def never(run: Run) -> Result:
        raise AssertionError("no need to run this")

    with monkeypatch.context() as patched:
        patched.setattr(runner, "carry_out", never)
        assert "of other code" not in call(*words, "--check", "--runs", tmp_path / "new").stdout
    assert "same code" in (out / "scoreboard.md").read_text()
    for path in (kept, beside):
        path.write_text(re.sub(r",[0-9a-f]{12},", ",other code..,", path.read_text()))
    assert f"of other code than this one, not checked: {STUDY}" in call(*words, "--finished").stdout
    assert f"of other code than this one, same at smoke scale: {STUDY}" in call(*words, "--check").stdout
    assert f"all {count} numbers the same (" in (out / "scoreboard.md").read_text()
    assert f"same at smoke scale: {STUDY}" in call(*words, "--finished").stdout
    lines = beside.read_text().splitlines()
    cells = lines[1].split(",")
    cells[7] = str(float(cells[7]) + 1)
    beside.write_text("\n".join([lines[0], ",".join(cells), *lines[2:], ""]))
    told = json.loads(call(*words, "--check", "--format", "json").stdout)
    assert told["of other code"] == {"other at smoke scale": [STUDY]}
    assert f"1 of {count} numbers differ, by at most " in (out / "scoreboard.md").read_text()
    with monkeypatch.context() as patched:
        patched.setattr(runner, "carry_out", never)
        failed = call(*words, "--check", "--runs", tmp_path / "new").stdout
    assert f"of other code than this one, unknown: {STUDY}" in failed
    assert "AssertionError: no need to run this" in (out / "scoreboard.md").read_text()
    beside.write_text("study\nx\n")
    damaged = call(*words, "--check")
    assert damaged.exit_code != 0
    assert "smoke/spidercast.csv is no file of results" in " ".join(damaged.output.split())
    beside.unlink()
    call(*words, "--check")
    assert "nothing of its code is kept at smoke scale" in (out / "scoreboard.md").read_text()


def test_a_check_is_of_the_papers_sizes(tmp_path: Path) -> None:
    ended = call("reproduce", STUDY, "--check", "--scale", "smoke", "--out", tmp_path)
    assert ended.exit_code != 0
    assert "--check is of results at paper scale" in ended.output
