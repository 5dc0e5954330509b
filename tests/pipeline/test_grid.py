"""Sweeps as TOML: every combination once, and every mistake told in a line."""

import shutil
from pathlib import Path

import msgspec
import pytest

from topicweave.errors import BadInput, TopicweaveError
from topicweave.pipeline.grid import read_grid
from topicweave.runs.overlay import SettledOverlay
from topicweave.runs.run import size
from topicweave.runs.sources import ModelWorkload, StoredWorkload
from topicweave.runs.store import key

GOOD = """
seeds = [4, 5]
settle = 3.0
[[systems]]
name = "spidercast"
k_greedy = [2, 3]
[[systems]]
name = "random"
[[workloads]]
model = "spidercast"
nodes = [20, 30]
"""
TRIAL, REST = 'kind = "trial"\n', GOOD.replace("settle = 3.0\n", "").replace("[4, 5]", "[4]")


def grid(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "grid.toml"
    path.write_text(text)
    return path


def test_every_combination_is_a_run_and_seeds_differ_in_both(tmp_path: Path) -> None:
    runs = read_grid(grid(tmp_path, GOOD))
    assert len(runs) == len({run.id for run in runs}) == 3 * 2 * 2
    assert {(run.system, run.parameters) for run in runs} == {
        ("spidercast", '{"k_greedy": 2}'),
        ("spidercast", '{"k_greedy": 3}'),
        ("random", "{}"),
    }
    for cell in runs:
        assert isinstance(cell.run, SettledOverlay)
        assert isinstance(cell.run.workload, ModelWorkload)
        assert cell.run.seed == cell.run.workload.seed == cell.seed
        assert cell.run.settle == 3.0
    assert size(runs[0].run) == 30, "the large ones first"


def test_a_workload_may_keep_its_own_seed(tmp_path: Path) -> None:
    runs = read_grid(grid(tmp_path, GOOD + "seed = 9\n"))
    assert {cell.run.workload.seed for cell in runs} == {9}  # type: ignore[attr-defined]  # the kind has them
    assert {run.seed for run in runs} == {4, 5}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("seeds = [", "not TOML"),
        ("", r"no \[\[systems\]\]"),
        (GOOD.replace("[4, 5]", "[4, 4]"), "a seed stands twice"),
        (GOOD.replace("[4, 5]", "[]"), "list of numbers"),
        (GOOD + "colour = 3\n", "its parameters: nodes, topics"),
        ("colour = 3\n" + GOOD, "unknown key 'colour'; runs of kind 'overlay' have diameters, events"),
        ("latency = '5ms'\n" + GOOD, "unknown key 'latency'"),
        ("kind = 'overly'\n" + GOOD, "unknown run kind 'overly'"),
        ("kind = 'filter-errors'\n" + GOOD.replace("settle = 3.0", ""), "which has none"),
        (GOOD.replace("k_greedy", "k_greedier"), "its parameters"),
        (GOOD.replace('"random"', '"randomly"'), "unknown system 'randomly'"),
        (
            GOOD.replace('model = "spidercast"', 'folder = "nowhere"').replace("nodes = [20, 30]", ""),
            "not there",
        ),
        (GOOD.replace('model = "spidercast"', ""), "needs a model, a folder or a source"),
        (GOOD.replace("settle = 3.0", 'settle = "long"'), "settle"),
        (GOOD.replace("settle = 3.0", "settle = []"), "settle: an empty list, so nothing would run"),
        (
            GOOD.replace("seeds = [4, 5]", "replications = 2.5"),
            "replications 2.5; give a number of 1 or more",
        ),
        (GOOD.replace("seeds = [4, 5]", "replications = true"), "replications True; give a number"),
        (TRIAL + "latency = 'far'\n" + REST, "latency 'far': neither known nor a file"),
        (TRIAL + "churn = 'abc'\n" + REST, "churn 'abc': say 'trace'"),
        (TRIAL + "membership = 'all'\n" + REST, "membership"),
        (TRIAL + "repair_seconds = 3\nsettle = inf\n" + REST, "settle inf: choose a number"),
    ],
)
def test_mistakes_are_told_in_a_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(TopicweaveError, match=words) as error:
        read_grid(grid(tmp_path, text))
    assert "\n" not in str(error.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"none.toml: No such file"):
        read_grid(tmp_path / "none.toml")


TRIALS = """
kind = "trial"
replications = 2
latency = ["10ms", "50ms"]
churn = ["", "60/10"]
crash = [0.0, 0.1]
[[systems]]
name = "random"
[[workloads]]
source = "generated"
nodes = [10, 20]
"""


def test_any_field_of_any_kind_and_any_source_can_be_varied(tmp_path: Path) -> None:
    cells = read_grid(grid(tmp_path, TRIALS))
    assert len(cells) == 2 * 2 * 2 * 2 * 2
    assert {cell.workload for cell in cells} == {"generated nodes=10", "generated nodes=20"}
    told = {(cell.run.latency, cell.run.churn, cell.run.crash) for cell in cells}  # type: ignore[attr-defined]  # the kind has them
    assert told == {(a, b, c) for a in ("10ms", "50ms") for b in ("", "60/10") for c in (0.0, 0.1)}


def test_a_kind_without_system_and_workload_takes_none(tmp_path: Path) -> None:
    cells = read_grid(grid(tmp_path, 'kind = "filter-errors"\nfilters = [1, 2]\nsizes = [[10, 20]]'))
    assert [(cell.system, cell.workload, cell.settings) for cell in cells] == [
        ("", "", '{"filters": 1, "sizes": [10, 20]}'),
        ("", "", '{"filters": 2, "sizes": [10, 20]}'),
    ]


def test_a_folder_is_named_by_its_contents(tmp_path: Path) -> None:
    ModelWorkload("spidercast", {"nodes": 20}).load().save(tmp_path / "w")
    text = GOOD.replace('model = "spidercast"', f"folder = '{tmp_path / 'w'}'").replace(
        "nodes = [20, 30]", ""
    )
    cell = read_grid(grid(tmp_path, text))[0]
    assert isinstance(cell.run, SettledOverlay)
    assert isinstance(cell.run.workload, StoredWorkload)
    shutil.copytree(tmp_path / "w", tmp_path / "elsewhere")
    moved = msgspec.structs.replace(cell.run, workload=StoredWorkload(str(tmp_path / "elsewhere")))
    assert key(moved) == key(cell.run)
