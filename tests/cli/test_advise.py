"""Advice from the command line, on a small workload: an answer that runs, or what stands in the way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import call
from topicweave.choose import advising
from topicweave.live.settings import load_settings
from topicweave.systems.registry import SYSTEMS, find_system

FEW = [
    "--systems",
    "spidercast,spidercast:k_greedy=2,random:random=2,gossipsub",
    "--events",
    20,
    "--settle",
    30,
    "--seeds",
    1,
]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all: what one test has run, the next one finds."""
    return tmp_path_factory.mktemp("advise")


def test_the_answer_is_a_configuration_that_a_node_takes(workload: Path, out: Path) -> None:
    words = ["advise", workload, *FEW, "--workers", 1, "--out", out, "--no-relays", "--max-noise", 0]
    ended = call(*words, "--format", "json")
    assert ended.exit_code == 0
    told = json.loads(ended.stdout)
    assert told["system"] == "spidercast"
    assert told["parameters"] == {"k_greedy": 2}  # the fewest links that still reach everybody
    assert "random:random=2" not in told["fitting"]
    assert told["constraints"] == ["--max-noise 0", "--no-relays", "--min-hit 1"]
    settings = load_settings(out / "node.toml", environment={}, flags={"insecure": True})
    assert (settings.system, settings.preset) == ("spidercast", "lan")
    assert settings.system_parameters(find_system("spidercast")).k_greedy == 2


def test_the_answer_comes_with_its_evidence_and_its_price(workload: Path, out: Path) -> None:
    ended = call("advise", workload, *FEW, "--workers", 1, "--out", out)
    assert ended.exit_code == 0
    assert "Take spidercast:k_greedy=2: of the 3 (of 4) that keep to all constraints" in ended.stdout
    assert "✗ random:random=2: hit ratio" in ended.stdout
    assert "What that gives up" in ended.stdout
    assert "topicweave node --config" in ended.stdout
    assert "/report.html\n" in ended.stdout


def test_if_none_fits_it_says_what_binds_and_fails(workload: Path, out: Path) -> None:
    (out / "node.toml").write_text('system = "broker"')  # An earlier answer's, to another question.
    ended = call("advise", workload, *FEW, "--workers", 1, "--out", out, "--max-degree", 1)
    assert ended.exit_code == 1
    assert not (out / "node.toml").exists()
    assert "No system keeps to all of that" in ended.stdout
    assert "--max-degree 1 binds" in ended.stdout
    told = json.loads(
        call(
            "advise", workload, *FEW, "--workers", 1, "--out", out, "--max-degree", 1, "--format", "json"
        ).stdout
    )
    assert told["system"] is None
    assert told["nearest"]


@pytest.mark.parametrize(("latency", "least"), [("50ms", "50"), ("10-100ms", "10")])
def test_what_the_network_forbids_is_said_to_be_impossible_before_anything_runs(
    latency: str, least: str, workload: Path, tmp_path: Path
) -> None:
    words = ["advise", workload, *FEW, "--workers", 1, "--out", tmp_path / "out", "--latency", latency]
    ended = call(*words, "--max-latency", 9)
    assert ended.exit_code == 2
    assert f"--max-latency 9: impossible; this network takes {least} ms or more one way" in ended.stderr
    assert not (tmp_path / "out").exists()


def test_every_setting_worth_trying_is_one_the_system_has() -> None:
    for system in SYSTEMS.values():
        for changes in system.tuning:
            assert system.settings(**changes) != system.settings()


def test_who_asks_for_few_links_is_told_of_a_system_that_can_be_held_to_them(
    workload: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weave's hubs have more than 8 links unless it is bound to them. The node takes the configuration with
    the bound.
    """
    monkeypatch.setattr(advising, "SYSTEMS", {"weave": SYSTEMS["weave"]})
    small = ["--events", 20, "--settle", 30, "--seeds", 1, "--workers", 1, "--out", out / "bounded"]
    ended = call("advise", workload, *small, "--max-degree", 7, "--format", "json")
    assert ended.exit_code == 0
    told = json.loads(ended.stdout)
    assert (told["system"], told["parameters"]) == ("weave", {"max_degree": 7})
    assert told["fitting"] == ["weave:max_degree=7"]
    settings = load_settings(out / "bounded" / "node.toml", environment={}, flags={"insecure": True})
    assert settings.system_parameters(find_system("weave")).max_degree == 7


def test_a_bound_that_no_system_can_be_held_to_is_not_tried() -> None:
    assert "weave:max_degree=6" in advising.worth_trying(6.5)
    assert not [
        label for label in (*advising.worth_trying(5.0), *advising.worth_trying()) if "max_degree" in label
    ]
