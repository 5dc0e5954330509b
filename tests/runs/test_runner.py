"""Many runs: each once, kept, and on any number of processes the same."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import msgspec
import pytest

from topicweave.data.formats import find_real
from topicweave.data.networks import NetworkSpec
from topicweave.errors import BadInput, TopicweaveError
from topicweave.papers.magnet.workloads import TopicSample
from topicweave.papers.omen.by_messages import MendedByMessages
from topicweave.papers.omen.mending import Mended
from topicweave.papers.omen.workloads import SocialSample
from topicweave.papers.rappel.basics import InterestLocality, MeasuredRoundTrips, NetworkCheck
from topicweave.papers.rappel.feeds import ContinuousChurn, Feeds
from topicweave.papers.rappel.workloads import FeedSample, SingleFeed
from topicweave.papers.vitis.lists import CorrelatedLists
from topicweave.papers.vitis.workloads import FollowersSample, TraceLists
from topicweave.runs import Processes, Result, Run, carry_out, run_all, runner, store
from topicweave.runs.overlay import SettledOverlay
from topicweave.runs.registry import decode, encode
from topicweave.runs.sources import GeneratedWorkload, StoredWorkload

ONE = Processes(1)
TINY = SettledOverlay(
    system="spidercast",
    workload=GeneratedWorkload(nodes=15, topics=5, min_size=1, max_size=3),
    parameters={"k_greedy": 2, "bridges": 0},
    settle=3.0,
)
OTHER = msgspec.structs.replace(TINY, seed=1)
WRONG = msgspec.structs.replace(TINY, parameters={"k_gredy": 2})


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """What was really run in this process."""
    done: list[Run] = []

    def counting(run: Run) -> Result:
        done.append(run)
        return carry_out(run)

    monkeypatch.setattr(runner, "carry_out", counting)
    return done


def test_equal_runs_are_carried_out_once(tmp_path: Path, runs: list[Run]) -> None:
    same = decode(encode(TINY))
    results = run_all({"a": TINY, "b": same, "c": OTHER}, tmp_path, ONE)
    assert runs == [TINY, OTHER]
    assert results["a"] == results["b"] != results["c"]
    assert list(results) == ["a", "b", "c"]


def test_finished_runs_are_reused(tmp_path: Path, runs: list[Run]) -> None:
    first = run_all({"a": TINY}, tmp_path, ONE)
    again = run_all({"b": TINY, "c": OTHER}, tmp_path, ONE)
    assert runs == [TINY, OTHER]
    assert again["b"] == first["a"]


@pytest.mark.parametrize("torn", [b"", b"{", b'{"run": {}}', b'{"result": 3}', b"\xff"])
def test_a_torn_file_is_run_again(tmp_path: Path, runs: list[Run], torn: bytes) -> None:
    first = run_all({"a": TINY}, tmp_path, ONE)
    (kept,) = tmp_path.iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(torn or whole[: len(whole) // 2])
    assert run_all({"a": TINY}, tmp_path, ONE) == first
    assert len(runs) == 2
    assert kept.read_bytes() == whole


def test_results_of_other_code_are_not_reused(
    tmp_path: Path, runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_all({"a": TINY}, tmp_path, ONE)
    monkeypatch.setattr(store, "fingerprint", lambda _: "tomorrow's")
    run_all({"a": TINY}, tmp_path, ONE)
    assert len(runs) == 2


def test_progress_counts_up(tmp_path: Path) -> None:
    told: list[tuple[int, int, str]] = []
    run_all({"a": TINY}, tmp_path, ONE)
    run_all({"a": TINY, "b": OTHER}, tmp_path, ONE, lambda *news: told.append(news))
    assert told == [(1, 2, ""), (2, 2, "spidercast, 15 nodes")]


def test_an_interrupted_study_goes_on_where_it_stopped(tmp_path: Path, runs: list[Run]) -> None:
    def interrupt(done: int, _total: int, _what: str) -> None:
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all({"a": TINY, "b": OTHER}, tmp_path, ONE, interrupt)
    run_all({"a": TINY, "b": OTHER}, tmp_path, ONE)
    assert runs == [TINY, OTHER]
    assert not list(tmp_path.glob(".*"))


def test_a_process_pool_gives_the_same(tmp_path: Path) -> None:
    here = run_all({"a": TINY, "b": OTHER}, tmp_path / "here", ONE)
    there = run_all({"a": TINY, "b": OTHER}, tmp_path / "there", Processes(2))
    assert there == here
    assert {file.name: file.read_bytes() for file in (tmp_path / "here").iterdir()} == {
        file.name: file.read_bytes() for file in (tmp_path / "there").iterdir()
    }


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failing_run_surfaces_as_its_own_error(tmp_path: Path, workers: int) -> None:
    with pytest.raises(BadInput, match="unknown field `k_gredy`"):
        run_all({"right": TINY, "wrong": WRONG}, tmp_path, Processes(workers))


def test_what_was_finished_before_a_failure_is_kept(tmp_path: Path, runs: list[Run]) -> None:
    with pytest.raises(BadInput):
        run_all({"right": TINY, "wrong": WRONG}, tmp_path, ONE)
    run_all({"right": TINY}, tmp_path, ONE)
    assert runs == [TINY, WRONG]


def test_a_full_disk_is_named_and_leaves_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> int:
        path.write_text(content.decode()[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(TopicweaveError, match="No space left on device; make room"):
        run_all({"a": TINY}, tmp_path, ONE)
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_do(tmp_path: Path) -> None:
    assert run_all({}, tmp_path) == {}


def test_where_a_workload_lies_does_not_matter_but_what_is_in_it(tmp_path: Path, runs: list[Run]) -> None:
    for place, seed in (("here", 1), ("there", 1), ("other", 2)):
        GeneratedWorkload(15, 5, min_size=1, max_size=3, seed=seed).load().save(tmp_path / place)
    here, there, other = (
        msgspec.structs.replace(TINY, workload=StoredWorkload(str(tmp_path / place)))
        for place in ("here", "there", "other")
    )
    results = run_all({"here": here, "there": there, "other": other}, tmp_path / "runs", ONE)
    assert runs == [here, other]
    assert results["here"] == results["there"] != results["other"]


READING: list[tuple[Run, str]] = [
    (msgspec.structs.replace(TINY, workload=SocialSample("facebook", 20)), "facebook"),
    (msgspec.structs.replace(TINY, workload=FollowersSample("epinions", 20)), "epinions"),
    (msgspec.structs.replace(TINY, workload=TopicSample("wikipedia", 20)), "wikipedia"),
    (msgspec.structs.replace(TINY, workload=TraceLists(CorrelatedLists(20, 10))), "gnutella"),
    (Mended(system="omen", workload=TINY.workload, rounds=1, churn="google"), "google"),
    (MendedByMessages(workload=TINY.workload, rounds=1, churn="google"), "google"),
    (InterestLocality("twitter"), "twitter-followers"),
    (MeasuredRoundTrips(), "planetlab"),
    (NetworkCheck(NetworkSpec("as")), "caida"),
    (NetworkCheck(NetworkSpec("as")), "planetlab"),
    (Feeds(workload=FeedSample("livejournal", 20)), "livejournal"),
    (Feeds(workload=SingleFeed(20), churn=ContinuousChurn(1.0)), "gnutella"),
]


@pytest.mark.parametrize(("run", "name"), READING, ids=[name for _, name in READING])
def test_what_the_real_files_hold_counts_and_not_where_they_lie(
    run: Run, name: str, miniature: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = []
    for place in ("here", "there"):
        shutil.copytree(miniature, tmp_path / place)
        monkeypatch.setenv("TOPICWEAVE_DATASETS", str(tmp_path / place))
        keys.append(store.key(run))
    changed = tmp_path / "there" / find_real(name).file
    changed.write_bytes(changed.read_bytes() + b"more")
    keys.append(store.key(run))
    changed.unlink()
    keys.append(store.key(run))
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


def test_runs_without_real_files_need_no_folder_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOPICWEAVE_DATASETS", raising=False)
    alone = store.key(TINY)
    monkeypatch.setenv("TOPICWEAVE_DATASETS", "/nowhere")
    assert store.key(TINY) == alone


def test_failures_are_told_and_others_finish(tmp_path: Path) -> None:
    failures: dict[str, str] = {}
    heard: dict[str, Result | str] = {}
    results = run_all(
        {"right": TINY, "wrong": WRONG, "too": WRONG}, tmp_path, ONE, None, failures, heard.__setitem__
    )
    assert set(results) == {"right"}
    assert set(failures) == {"wrong", "too"}
    assert "unknown field `k_gredy`" in failures["too"]
    assert heard == {**results, **failures}
