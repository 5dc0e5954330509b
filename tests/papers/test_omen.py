"""Every study of the OMen paper runs at smoke scale, without any data, and says something about what it measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from topicweave.papers import omen
from topicweave.papers.catalogue import STUDIES, find_study
from topicweave.papers.running import run_study
from topicweave.runs import Processes

NAMES = [
    "fig3",
    "fig4",
    "fig5",
    "fig6",
    "fig8",
    "fig9",
    "fig10",
    "fig11",
    "fig12",
    "choices",
    "why",
    "levels",
    "counted",
    "trace",
    "table1",
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


def test_all_figures_are_there() -> None:
    assert [study.name for study in omen.STUDIES] == [f"omen/{name}" for name in NAMES]
    assert all(study.name in STUDIES for study in omen.STUDIES)


@pytest.mark.parametrize("name", NAMES)
def test_smoke(name: str, store: Path) -> None:
    result = run_study(find_study(f"omen/{name}"), "smoke", 0, store, Processes(1))
    assert result.rows
    assert all(row.measured is not None for row in result.rows)
    # What must hold at any scale: nothing stays in parts.
    must = [
        row
        for row in result.rows
        if row.measure.endswith("partitioned topic") or row.measure == "partitioned_topics"
    ]
    assert all(row.measured == 0 for row in must)


@pytest.mark.parametrize("name", ["fig3", "fig5", "fig6"])
def test_seeds_speak_of_the_same_places(name: str, store: Path) -> None:
    """What came out, such as how many nodes were left, is no setting: rows of two seeds would not be
    replications of each other.
    """
    one, other = (
        {
            (frozenset(row.where.items()), row.measure)
            for row in run_study(find_study(f"omen/{name}"), "smoke", seed, store, Processes(1)).rows
        }
        for seed in (0, 1)
    )
    assert one == other


@pytest.mark.parametrize("name", NAMES)
def test_paper_scale_is_planned_without_touching_the_data(name: str) -> None:
    plan = find_study(f"omen/{name}").plan("paper", 0)
    assert plan.runs
