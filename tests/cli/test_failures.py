"""What is wrong is said in one line, with the exit code 2 and without a traceback."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.commands import COMMAND, call, run
from topicweave.papers import STUDIES
from topicweave.systems.registry import SYSTEMS
from topicweave.workloads import MODELS


def only_line(text: str) -> str:
    [line] = text.splitlines()
    return line


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    ended = run("compare", "nowhere", cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert only_line(ended.stderr).startswith("error: nowhere: no such file or folder")
    assert list(tmp_path.iterdir()) == []


def test_a_table_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "subscriptions.parquet").write_text("node,topic\n")
    ended = call("compare", tmp_path, "--out", tmp_path / "out")
    assert ended.exit_code == 2
    assert only_line(ended.stderr).startswith(
        f"error: {tmp_path}/subscriptions.parquet: cannot be read (Parquet magic bytes not found"
    )


def test_an_unknown_system_lists_the_known_ones(workload: Path) -> None:
    for words in (
        ["compare", workload, "--systems", "spidercats"],
        ["campaign", "spidercats", "--seeds", "1"],
    ):
        ended = call(*words)
        assert ended.exit_code == 2
        line = only_line(ended.stderr)
        assert line.startswith("error: unknown system 'spidercats'")
        assert all(system in line for system in SYSTEMS)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("spidercast/fig99", [study for study in STUDIES if study.startswith("spidercast/")]),
        ("nothing/*", ["agreement", "magnet/*", "omen/*", "rappel/*", "spidercast/*", "vitis/*"]),
        ("nothing", ["agreement", "magnet/*", "omen/*", "rappel/*", "spidercast/*", "vitis/*"]),
    ],
)
def test_an_unknown_study_lists_its_papers_or_the_papers(name: str, known: list[str], tmp_path: Path) -> None:
    ended = call("study", "run", name, "--out", tmp_path)
    assert ended.exit_code == 2
    assert only_line(ended.stderr) == f"error: unknown study '{name}'; known: {', '.join(sorted(known))}"


def test_an_unknown_model_lists_the_known_ones(tmp_path: Path) -> None:
    ended = call("workload", "generate", "--popularity", "viral", "--out", tmp_path / "w")
    assert ended.exit_code == 2
    line = only_line(ended.stderr)
    assert all(model in line for model in MODELS)


def test_a_membership_that_makes_no_sense(workload: Path, tmp_path: Path) -> None:
    ended = call("compare", workload, "--membership", "120%", "--out", tmp_path)
    assert ended.exit_code == 2
    assert "membership '120%'" in only_line(ended.stderr)


def test_a_place_for_results_that_cannot_be_is_refused_before_the_work(
    workload: Path, tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("a file")
    ended = call("compare", workload, "--out", tmp_path / "taken")
    assert ended.exit_code == 2
    assert "choose another --out" in only_line(ended.stderr)


def test_other_trouble_with_files_is_told_in_a_line_too(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    ended = call("workload", "generate", "--nodes", "5", "--out", tmp_path / "taken" / "w")
    assert ended.exit_code == 2
    assert only_line(ended.stderr).startswith(f"error: {tmp_path}/taken")


def test_who_debugs_gets_the_traceback(tmp_path: Path) -> None:
    ended = run("compare", "nowhere", cwd=tmp_path, TOPICWEAVE_DEBUG="1")
    assert ended.returncode not in (0, 2)
    assert "Traceback" in ended.stderr
    assert "topicweave.errors.BadInput: nowhere" in ended.stderr


def test_a_reader_that_goes_away_is_nobodys_mistake() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        ended = subprocess.run(
            [*COMMAND, "systems"], stdout=closed, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ended.stderr == ""
