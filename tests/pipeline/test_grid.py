"""Sweeps as TOML: every combination once, and every mistake told in a line."""

from pathlib import Path

import pytest

from topicweave.errors import BadInput, TopicweaveError
from topicweave.pipeline.grid import read_grid
from topicweave.runs.model_workload import ModelWorkload

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
    for run in runs:
        assert isinstance(run.experiment.workload, ModelWorkload)
        assert run.experiment.seed == run.experiment.workload.seed == run.seed
        assert run.experiment.settle == 3.0
    assert runs[0].experiment.workload.nodes == 30, "the large ones first"  # type: ignore[union-attr]


def test_a_workload_may_keep_its_own_seed(tmp_path: Path) -> None:
    runs = read_grid(grid(tmp_path, GOOD + "seed = 9\n"))
    assert {run.experiment.workload.seed for run in runs} == {9}  # type: ignore[union-attr]
    assert {run.seed for run in runs} == {4, 5}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("seeds = [", "not TOML"),
        ("", r"no \[\[systems\]\]"),
        (GOOD.replace("[4, 5]", "[4, 4]"), "a seed stands twice"),
        (GOOD.replace("[4, 5]", "[]"), "list of numbers"),
        (GOOD + "colour = 3\n", "its parameters: nodes, topics"),
        ("colour = 3\n" + GOOD, "unknown key 'colour'"),
        (GOOD.replace("k_greedy", "k_greedier"), "its parameters"),
        (GOOD.replace('"random"', '"randomly"'), "unknown system 'randomly'"),
        (
            GOOD.replace('model = "spidercast"', 'folder = "nowhere"').replace("nodes = [20, 30]", ""),
            "not there",
        ),
        (GOOD.replace('model = "spidercast"', ""), "needs a model or a folder"),
        (GOOD.replace("settle = 3.0", 'settle = "long"'), "settle"),
    ],
)
def test_mistakes_are_told_in_a_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(TopicweaveError, match=words) as error:
        read_grid(grid(tmp_path, text))
    assert "\n" not in str(error.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"none.toml: No such file"):
        read_grid(tmp_path / "none.toml")
