"""Many experiments: each once, kept, and on any number of processes the same."""

from __future__ import annotations

import errno
from pathlib import Path

import msgspec
import pytest

from topicweave.errors import BadInput, TopicweaveError
from topicweave.runs import Experiment, GeneratedWorkload, run_all, run_experiment, runner
from topicweave.runs.experiment import Result

TINY = Experiment(
    system="spidercast",
    workload=GeneratedWorkload(nodes=15, topics=5, min_size=1, max_size=3),
    parameters={"k_greedy": 2, "bridges": 0},
    settle=3.0,
)
OTHER = msgspec.structs.replace(TINY, seed=1)
WRONG = msgspec.structs.replace(TINY, parameters={"k_gredy": 2})


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Experiment]:
    """What was really run in this process."""
    done: list[Experiment] = []

    def counting(experiment: Experiment) -> Result:
        done.append(experiment)
        return run_experiment(experiment)

    monkeypatch.setattr(runner, "run_experiment", counting)
    return done


def test_equal_experiments_run_once(tmp_path: Path, runs: list[Experiment]) -> None:
    same = msgspec.json.decode(msgspec.json.encode(TINY), type=Experiment)
    results = run_all({"a": TINY, "b": same, "c": OTHER}, tmp_path, workers=1)
    assert runs == [TINY, OTHER]
    assert results["a"] == results["b"] != results["c"]
    assert list(results) == ["a", "b", "c"]


def test_finished_runs_are_reused(tmp_path: Path, runs: list[Experiment]) -> None:
    first = run_all({"a": TINY}, tmp_path, workers=1)
    again = run_all({"b": TINY, "c": OTHER}, tmp_path, workers=1)
    assert runs == [TINY, OTHER]
    assert again["b"] == first["a"]


@pytest.mark.parametrize("torn", [b"", b"{", b'{"experiment": {}}', b"\xff"])
def test_a_torn_file_is_run_again(tmp_path: Path, runs: list[Experiment], torn: bytes) -> None:
    first = run_all({"a": TINY}, tmp_path, workers=1)
    (kept,) = tmp_path.iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(torn or whole[: len(whole) // 2])
    assert run_all({"a": TINY}, tmp_path, workers=1) == first
    assert len(runs) == 2
    assert kept.read_bytes() == whole


def test_results_of_other_code_are_not_reused(
    tmp_path: Path, runs: list[Experiment], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_all({"a": TINY}, tmp_path, workers=1)
    monkeypatch.setattr(runner, "code_fingerprint", lambda: "tomorrow's")
    run_all({"a": TINY}, tmp_path, workers=1)
    assert len(runs) == 2


def test_progress_counts_up(tmp_path: Path) -> None:
    told: list[tuple[int, int, str]] = []
    run_all({"a": TINY}, tmp_path, workers=1)
    run_all({"a": TINY, "b": OTHER}, tmp_path, workers=1, progress=lambda *news: told.append(news))
    assert told == [(1, 2, ""), (2, 2, "spidercast, 15 nodes")]


def test_an_interrupted_study_goes_on_where_it_stopped(tmp_path: Path, runs: list[Experiment]) -> None:
    def interrupt(done: int, _total: int, _what: str) -> None:
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all({"a": TINY, "b": OTHER}, tmp_path, workers=1, progress=interrupt)
    run_all({"a": TINY, "b": OTHER}, tmp_path, workers=1)
    assert runs == [TINY, OTHER]
    assert not list(tmp_path.glob("*.partial"))


def test_a_process_pool_gives_the_same(tmp_path: Path) -> None:
    here = run_all({"a": TINY, "b": OTHER}, tmp_path / "here", workers=1)
    there = run_all({"a": TINY, "b": OTHER}, tmp_path / "there", workers=2)
    assert there == here
    assert {file.name: file.read_bytes() for file in (tmp_path / "here").iterdir()} == {
        file.name: file.read_bytes() for file in (tmp_path / "there").iterdir()
    }


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failing_run_surfaces_as_its_own_error(tmp_path: Path, workers: int) -> None:
    with pytest.raises(BadInput, match="unknown field `k_gredy`"):
        run_all({"right": TINY, "wrong": WRONG}, tmp_path, workers=workers)


def test_what_was_finished_before_a_failure_is_kept(tmp_path: Path, runs: list[Experiment]) -> None:
    with pytest.raises(BadInput):
        run_all({"right": TINY, "wrong": WRONG}, tmp_path, workers=1)
    run_all({"right": TINY}, tmp_path, workers=1)
    assert runs == [TINY, WRONG]


def test_a_full_disk_is_named_and_leaves_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, text: str) -> int:
        path.write_bytes(text.encode()[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(TopicweaveError, match="No space left on device; make room"):
        run_all({"a": TINY}, tmp_path, workers=1)
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_do(tmp_path: Path) -> None:
    assert run_all({}, tmp_path) == {}
