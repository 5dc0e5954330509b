"""Worker processes ask for large pages where there are some."""

import os
from pathlib import Path

import pytest

from topicweave.runs import large_pages
from topicweave.runs.large_pages import ASKING, asking
from topicweave.runs.processes import each


@pytest.fixture
def switch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "enabled"
    file.write_text("always [madvise] never\n")
    monkeypatch.setattr(large_pages, "SWITCH", file)
    monkeypatch.setattr(os, "confstr", lambda _name: "glibc 2.36")
    for name in ASKING:
        monkeypatch.delenv(name, raising=False)
    return file


def test_workers_ask_and_their_parent_stays_as_it_is(switch: Path) -> None:
    assert [found for _, found in each(os.getenv, ASKING, 2)].count("malloc") == 1
    assert ASKING.keys().isdisjoint(os.environ)


@pytest.mark.parametrize("words", ["always madvise [never]", "[always] madvise never", ""])
def test_nobody_asks_where_asking_changes_nothing(switch: Path, words: str) -> None:
    switch.write_text(words)
    assert asking({}) == {}


def test_without_such_a_switch_nobody_asks(switch: Path) -> None:
    switch.unlink()
    assert asking({}) == {}


@pytest.mark.parametrize("chosen", [*ASKING])
def test_an_allocator_that_somebody_chose_stays(switch: Path, chosen: str) -> None:
    assert asking({}) == ASKING
    assert asking({chosen: "debug"}) == {}


@pytest.mark.parametrize("version", ["glibc 2.34", "musl 9.9", "", None])
def test_a_library_that_knows_nothing_of_it_is_not_asked(
    switch: Path, monkeypatch: pytest.MonkeyPatch, version: str | None
) -> None:
    monkeypatch.setattr(os, "confstr", lambda _name: version)
    assert asking({}) == {}


def test_a_system_without_that_name_is_not_asked(switch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_name: str) -> str:
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(os, "confstr", unknown)
    assert asking({}) == {}
