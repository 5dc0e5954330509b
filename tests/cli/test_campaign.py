"""Campaigns from the command line."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import call, interrupt_after, run
from topicweave.blocks.membership import Membership
from topicweave.testing import Scenario, Verdict, seeds


@pytest.fixture
def odd_seeds_fail(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """No simulation: seeds fail if they are odd, and 7 breaks down. Gives the parameters that were used."""
    used: list[Any] = []

    def play(_system: object, scenario: Scenario, parameters: Any) -> Verdict:
        used.append(parameters)
        if scenario.seed == 7:
            raise KeyError("peer")
        wrong = [f"n{number} missed the event on t1" for number in range(5)] if scenario.seed % 2 else []
        return Verdict(scenario.seed, tuple(wrong), events=1, deliveries=10)

    monkeypatch.setattr(seeds, "run_scenario", play)
    return used


def test_a_real_one_passes() -> None:
    ended = run("campaign", "spidercast", "--seeds", 2, "--nodes", 12, "--format", "json")
    told = json.loads(ended.stdout)
    assert ended.returncode == 0
    assert (told["system"], told["seeds"], told["done"], told["passed"]) == ("spidercast", 2, 2, 2)
    assert told["failures"] == []
    assert told["deliveries"] > 0


@pytest.mark.usefixtures("odd_seeds_fail")
def test_a_failing_seed_gets_a_line_with_the_command_that_replays_it() -> None:
    ended = call("campaign", "spidercast", "--first", 4, "--seeds", 3, "--workers", 1)
    assert ended.exit_code == 1
    failure, total = ended.stdout.splitlines()
    assert failure.startswith("seed 5 failed: n0 missed the event on t1; n1 missed")
    assert "; and 2 more; " in failure
    assert failure.endswith("replay: topicweave campaign spidercast --first 5 --seeds 1")
    assert total == "spidercast: 2 of 3 seeds passed, 30 deliveries"


@pytest.mark.usefixtures("odd_seeds_fail")
def test_the_replay_command_replays() -> None:
    words = [
        "campaign",
        "spidercast",
        "--first",
        2,
        "--seeds",
        2,
        "--nodes",
        9,
        "--workers",
        1,
        "--format",
        "json",
    ]
    [failure] = json.loads(call(*words).stdout)["failures"]
    program, *replay = shlex.split(failure["replay"])
    assert program == "topicweave"
    told = json.loads(call(*replay, "--format", "json").stdout)
    assert (told["first"], told["seeds"], told["nodes"]) == (3, 1, 9)
    assert told["failures"] == [failure]


@pytest.mark.parametrize("scenario", [None, "partition"])
def test_a_membership_is_used_and_repeated_in_the_replay(
    scenario: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[Scenario] = []

    def play(_system: object, scenario: Scenario, _parameters: Any) -> Verdict:
        used.append(scenario)
        return Verdict(scenario.seed, ("wrong",), events=1, deliveries=1)

    monkeypatch.setattr(seeds, "run_scenario", play)
    words = [] if scenario is None else ["--scenario", scenario]
    words += ["--membership", "directory:20", "--format", "json"]
    told = json.loads(call("campaign", "spidercast", *words, "--seeds", 2, "--workers", 1).stdout)
    assert [one.membership for one in used] == [Membership.parse("directory:20")] * 2
    assert told["membership"] == "directory:20"
    _, *replay = shlex.split(told["failures"][0]["replay"])
    call(*replay, "--workers", 1)
    assert used[2].membership == used[0].membership
    assert call("campaign", "spidercast", "--membership", "anyhow").exit_code not in (0, 1)


def test_parameters_are_used_and_repeated_in_the_replay(odd_seeds_fail: list[Any]) -> None:
    system = "spidercast:k_greedy=2"
    told = json.loads(call("campaign", system, "--first", 1, "--seeds", 1, "--format", "json").stdout)
    assert odd_seeds_fail[0].k_greedy == 2
    assert told["parameters"] == {"k_greedy": 2}
    assert f"campaign {system} --first 1" in told["failures"][0]["replay"]


@pytest.mark.usefixtures("odd_seeds_fail")
def test_a_node_that_breaks_down_is_a_failure_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["campaign", "spidercast", "--first", 7, "--seeds", 1]
    ended = call(*words)
    assert ended.exit_code == 1
    assert "seed 7 failed: raised KeyError: 'peer'" in ended.stdout
    monkeypatch.setenv("TOPICWEAVE_DEBUG", "1")
    with pytest.raises(KeyError):
        call(*words)


def test_interrupted_it_tells_what_was_done_so_far() -> None:
    words = ["campaign", "spidercast", "--seeds", 1000, "--nodes", 8, "--format", "json"]
    ended = interrupt_after("/1000 seed", words)
    assert ended.returncode == 130
    assert "Traceback" not in ended.stderr
    told = json.loads(ended.stdout)
    assert 1 <= told["done"] < 1000
    assert ended.stderr.splitlines()[-1] == f"stopped after {told['done']} of 1000 seeds"


def test_a_scenario_from_a_file_and_by_name(tmp_path: Path) -> None:
    file = tmp_path / "short.toml"
    file.write_text(
        'title = "short"\nnodes = 8\ntopics = 6\n[[fault]]\nkind = "slow"\nstart = 1.0\nend = 3.0\nnodes = [0]\n'
    )
    told = json.loads(
        call("campaign", "spidercast", "--scenario", file, "--workers", 1, "--format", "json").stdout
    )
    assert (told["scenario"], told["seeds"], told["passed"]) == (str(file), 1, 1)
    ended = call("campaign", "spidercast", "--scenario", "partition", "--nodes", 10, "--workers", 1)
    assert ended.stdout.startswith("spidercast under partition: 1 of 1 seeds passed")


@pytest.mark.usefixtures("odd_seeds_fail")
def test_a_failing_seed_of_a_scenario_is_replayed_with_it() -> None:
    ended = call("campaign", "spidercast", "--scenario", "partition", "--first", 5, "--workers", 1)
    assert ended.exit_code == 1
    replay = "replay: topicweave campaign spidercast --first 5 --seeds 1 --scenario partition"
    assert ended.stdout.splitlines()[0].endswith(replay)


def test_a_scenario_that_is_none_is_refused_in_one_line(tmp_path: Path) -> None:
    ended = run("campaign", "spidercast", "--scenario", tmp_path / "none.toml")
    assert ended.returncode == 2
    assert ended.stderr == f"error: scenario {tmp_path / 'none.toml'}: No such file or directory\n"
