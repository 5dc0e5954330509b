"""Weave's page says what its table says, and the table grows run by run."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import kept, rivals


def test_the_page_is_what_the_table_gives() -> None:
    assert rivals.PAGE.read_text(encoding="utf-8") == rivals.page()


@pytest.mark.bench
def test_a_run_goes_to_the_table_and_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TABLE", "PAGE", "OUT"):
        monkeypatch.setattr(rivals, name, tmp_path / name)
    monkeypatch.delenv("TOPICWEAVE_DATASETS", raising=False)
    for _ in range(2):
        rivals.run(["rss", "github"], ["calm", "distance"], ["spidercast"], 30, float("inf"))
    (row,) = kept.read(rivals.TABLE)
    assert (row["workload"], row["condition"], row["nodes"], row["hit_ratio"]) == ("rss", "calm", "30", "1")
    (line,) = (line for line in rivals.page().splitlines() if "spidercast" in line)
    assert line.startswith("| calm, 30 nodes | spidercast | ")
    assert f"| {float(row['hops_mean']):.1f} |" in line
