"""Workloads and systems from the command line."""

from pathlib import Path

from tests.cli.commands import call
from topicweave.model.workload import Workload
from topicweave.systems.registry import SYSTEMS
from topicweave.workloads import MODELS, generate


def test_generate_writes_what_the_library_draws(tmp_path: Path) -> None:
    words = [
        "--nodes",
        30,
        "--topics",
        9,
        "--popularity",
        "nyse",
        "--min-size",
        2,
        "--max-size",
        4,
        "--seed",
        5,
    ]
    ended = call("workload", "generate", *words, "--out", tmp_path / "w")
    assert ended.exit_code == 0
    drawn = generate(30, 9, "nyse", 2, 4, 5)
    assert Workload.load(tmp_path / "w") == drawn
    assert f"30 nodes, 9 topics, {drawn.topic_index.size} subscriptions" in ended.stdout


def test_lists_are_all_of_one_size_unless_said_otherwise(tmp_path: Path) -> None:
    call("workload", "generate", "--nodes", 5, "--topics", 9, "--min-size", 3, "--out", tmp_path / "w")
    assert Workload.load(tmp_path / "w").topic_index.size == 15


def test_a_workload_is_replaced_only_when_asked(tmp_path: Path) -> None:
    words = ["workload", "generate", "--nodes", 5, "--topics", 3, "--min-size", 1, "--out", tmp_path / "w"]
    assert call(*words).exit_code == 0
    refused = call(*words, "--seed", 1)
    assert refused.exit_code == 2
    assert "--overwrite" in refused.stderr
    assert Workload.load(tmp_path / "w") == generate(5, 3, min_size=1, max_size=1)
    assert call(*words, "--seed", 1, "--overwrite").exit_code == 0
    assert Workload.load(tmp_path / "w") == generate(5, 3, min_size=1, max_size=1, seed=1)


def test_show_tells_the_sizes_and_the_most_popular(tmp_path: Path) -> None:
    lists = {"a": ["news", "sport"], "b": ["news"], "c": []}
    Workload.from_lists(lists, churn=[(1.0, "a", "leave")]).save(tmp_path / "w")
    told = dict(line.split("  ", 1) for line in call("workload", "show", tmp_path / "w").stdout.splitlines())
    assert {name: value.strip() for name, value in told.items()} == {
        "nodes": "3",
        "topics": "2",
        "subscriptions": "3",
        "topics per node": "0 to 2, 1.0 on average",
        "subscribers per topic": "1 to 2, 1.5 on average",
        "most popular": "news (2), sport (1)",
        "events per second": "2",
        "joins and leaves": "1",
        "places of nodes": "none",
    }


def test_models_are_listed() -> None:
    shown = call("workload", "models").stdout
    assert all(model.description in shown for model in MODELS.values())


def test_systems_are_listed_with_source_and_defaults() -> None:
    shown = call("systems").stdout
    assert all(f"{system.name}: {system.summary}" in shown for system in SYSTEMS.values())
    assert all(system.source in shown for system in SYSTEMS.values())
    assert "k_greedy=3" in shown
    assert "tree.announce_period=0.1" in shown
