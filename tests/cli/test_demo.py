"""The demo, with fewer nodes and systems than a user's."""

from pathlib import Path

import pytest

from tests.cli.commands import call
from topicweave.choose import variants
from topicweave.cli import demo
from topicweave.systems.registry import SYSTEMS


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "NODES", 30)
    monkeypatch.setattr(demo, "TOPICS", 12)
    monkeypatch.setattr(demo, "TOPICS_PER_NODE", 3)
    monkeypatch.setattr(demo, "EVENTS", 20)
    monkeypatch.setattr(variants, "SYSTEMS", {name: SYSTEMS[name] for name in ("spidercast", "random")})


def test_it_compares_and_says_where_to_look_and_what_to_try(tmp_path: Path) -> None:
    ended = call("demo", "--out", tmp_path / "out", "--workers", 1)
    assert ended.exit_code == 0
    assert ended.stdout.startswith("30 nodes want 3 of 12 topics each")
    assert "spidercast " in ended.stdout
    assert f"report: {tmp_path}/out/report.html" in ended.stdout
    assert ended.stdout.partition("Try next:")[2].count("  topicweave ") == 3
    assert (tmp_path / "out" / "report.html").exists()

    again = call("demo", "--out", tmp_path / "out", "--workers", 1)
    assert "2/2 finished in an earlier run" in again.stderr
    assert again.stdout == ended.stdout


def test_it_does_not_touch_a_folder_that_holds_something_else(tmp_path: Path) -> None:
    diary = tmp_path / "out" / "workload" / "diary.txt"
    diary.parent.mkdir(parents=True)
    diary.write_text("mine")
    ended = call("demo", "--out", tmp_path / "out")
    assert ended.exit_code == 2
    assert "diary.txt" in ended.stderr
    assert diary.read_text() == "mine"
