"""Long commands in a terminal: their user sees what they are at, and nothing of it is left when they are done."""

import os
import pty
import sys
import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.recording import recorded_run
from topicweave.cli.app import app


@pytest.fixture(autouse=True)
def _a_wide_terminal(monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "160")


def shown(monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    """What a command writes to stderr where that is a terminal; in this process, on the session that tests share."""
    ours, its = pty.openpty()
    seen: list[bytes] = []

    def watch() -> None:
        try:
            while more := os.read(ours, 1 << 16):
                seen.append(more)
        except OSError:
            pass  # the other end was closed

    watcher = threading.Thread(target=watch)
    watcher.start()
    with os.fdopen(its, "w") as terminal, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal)
        app(list(words), standalone_mode=False)
    watcher.join()
    os.close(ours)
    return b"".join(seen).decode()


CLEARED = "\x1b[2K"
"""How a bar goes away: its line is erased."""


def test_import_sample_describe_and_measure_say_what_they_are_at(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lines = "".join(f"{one} {(one * 7 + step) % 40}\n" for one in range(40) for step in range(5))
    (tmp_path / "edges.txt").write_text(lines)
    raw, few = str(tmp_path / "raw"), str(tmp_path / "few")
    recorded_run(tmp_path)
    for words, steps in (
        (
            ("workload", "import", "edges", str(tmp_path / "edges.txt"), "--out", raw),
            ["import: keep parsed", "import: write subscriptions"],
        ),
        (("workload", "sample", "topics", raw, "--topics", "15", "--out", few), ["write subscriptions"]),
        (("workload", "describe", few, "--sample", "2"), ["describe: sizes and popularity"]),
        (
            ("measure", str(tmp_path / "telemetry"), "--master", "local[2]"),
            ["measure: which runs and events there are", "measure: one pass over the deliveries"],
        ),
    ):
        told = shown(monkeypatch, *words)
        for step in steps:
            assert step in told
        assert "━" in told
        assert told.rstrip().endswith(CLEARED) or CLEARED in told.splitlines()[-1]
