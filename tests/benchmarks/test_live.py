"""Every part of the live benchmarks runs, at a small size, whether the rivals are there or not."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.live import __main__ as live
from benchmarks.live import slow_reader
from benchmarks.live.fan_out import Rate
from benchmarks.live.figures import Figures
from benchmarks.live.mqtt import Crowd
from benchmarks.live.mqtt import Rate as MqttRate
from benchmarks.live.topics import Cost
from tests.benchmarks.sheets import assert_whole, printed

OURS = "topicweave", "spidercast", "omen", "rappel"


@pytest.mark.bench
@pytest.mark.parametrize("part", live.PARTS)
def test_it_runs_and_fits(part: str) -> None:
    sheets = live.PARTS[part](True)
    assert sheets
    for sheet in sheets:
        assert_whole(sheet)
        # Ours are always there.
        measured = [row for row in sheet.rows if row[-1] is not None]
        assert any(name in map(str, row) or str(row[0]).startswith(name) for row in measured for name in OURS)


LARGE = Figures(1.0, 123_456.0, 123.4567, 234.5678)


def results(function: Any, *arguments: Any) -> Any:
    """Of long numbers."""
    given = {
        "topicweave": LARGE if function.__module__.endswith("mesh") else Rate(1_234_567.8, 1.0),
        "iroh": LARGE,
        "libp2p": LARGE,
        "topicweave_signed": Rate(1_234_567.8, 1.0),
        "nats": Rate(2_000_000.0, 0.5),
        "pyzmq": Rate(2_000_000.0, 0.5),
        "many_topics": Cost(1234.5, 1.0, 123_456.0, LARGE),
        "subscribing": (12.3456, 1.2345),
        "slow_reader": slow_reader.Cost(123_456.0, 123_456.0),
        "start_times": [100.25, 200.5],
        "fan_out": MqttRate(1.0, 1_234_567.0, 123.4),
        "crowd": Crowd(123_456.0, MqttRate(1.0, 1_234_567.0, 123.4), 1234.0),
    }
    return given[function.__name__]


@pytest.mark.parametrize("part", live.PARTS)
def test_large_numbers_fit(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "attempt", results)
    for sheet in live.PARTS[part](False):
        assert_whole(sheet)
        assert all(row[-1] is not None for row in sheet.rows)


@pytest.mark.parametrize("part", live.PARTS)
def test_a_rival_that_is_not_there_is_named_with_the_reason(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = "ModuleNotFoundError: No module named 'somebody_elses_library_with_a_long_name'"
    monkeypatch.setattr(live, "attempt", lambda *_: why)
    for sheet in live.PARTS[part](False):
        assert_whole(sheet)
        assert all(row[-1] is None for row in sheet.rows)
        told = " ".join(printed(sheet).split())
        assert all(f"{row[0]}: {why}" in told for row in sheet.rows)
