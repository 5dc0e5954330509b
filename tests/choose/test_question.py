"""What may be asked: the same from Python as on the command line, and checked before anything runs."""

from __future__ import annotations

import math
from inspect import signature
from pathlib import Path
from typing import Any, get_args

import pytest

import topicweave
from topicweave.choose.question import LIMITS, Bounds, Conditions, checked
from topicweave.cli import trying
from topicweave.errors import BadInput, UnknownName

LISTS = {"ann": ["news", "go"], "bob": ["news"], "eve": ["go", "news"]}


@pytest.fixture(autouse=True)
def no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_run: object) -> Any:
        raise AssertionError("something is run")

    monkeypatch.setattr("topicweave.runs.runner.carry_out", refuse)


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"seeds": 0}, "seeds 0: give a whole number from 1 to 1000"),
        ({"seeds": -1}, "seeds -1: give a whole number from 1 to 1000"),
        ({"seeds": 1.5}, "seeds 1.5: give a whole number from 1 to 1000"),
        ({"seeds": 99_999_999, "budget": "1s"}, "seeds 99999999: give a whole number from 1 to 1000"),
        ({"seed": -1}, "seed -1: give a whole number from 0 on"),
        ({"events": "many"}, "events 'many': give a whole number from 0 on"),
        ({"nodes": 1}, "nodes 1: give a whole number from 2 on"),
        ({"seed": True}, "seed True: give a whole number from 0 on"),
        ({"latency": 50}, "latency 50: give text as on the command line"),
        ({"churn": None}, "churn None: give text as on the command line"),
        ({"membership": None}, "membership None: give text as on the command line"),
        ({"header": "yes"}, "header 'yes': give True or False"),
        ({"no_relays": 1}, "no_relays 1: give True or False"),
        ({"node": 1.5}, "node 1.5: give a column's name, or its number from 1"),
        ({"systems": ","}, "systems ',': names none; leave it out for all systems"),
    ],
)
@pytest.mark.parametrize("choose", [topicweave.compare, topicweave.advise])
def test_numbers_out_of_range_are_refused(
    choose: Any, asked: dict[str, Any], complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=f"^{complaint}"):
        choose(LISTS, out=tmp_path / "out", **asked)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"latency_unit": "us"}, "--latency-unit says nothing about --latency 50ms; leave it out"),
        ({"latency": "100-10ms"}, "--latency 100-10ms: from more to less; say 10-100ms"),
        ({"churn_speed": 60}, "--churn-speed says nothing without a file or folder of --churn"),
        ({"node": "a"}, "subscriptions: --node says nothing about lists in memory; leave it out"),
    ],
)
def test_options_that_say_nothing_are_refused(asked: dict[str, Any], complaint: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=f"^{complaint}"):
        topicweave.compare(LISTS, out=tmp_path / "out", **asked)


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"prefer": "beauty"}, "unknown preference 'beauty'; known: control, hops, latency, links"),
        ({"preset": "warp"}, "unknown preset 'warp'; known: lan, local, paper, wan"),
        ({"latency_unit": "min"}, "unknown unit of latency 'min'; known: ms, s, us"),
    ],
)
def test_unknown_words_are_refused(asked: dict[str, Any], complaint: str, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=f"^{complaint}"):
        topicweave.advise(LISTS, out=tmp_path / "out", **asked)
    assert not (tmp_path / "out").exists()
    if "prefer" not in asked:
        with pytest.raises(UnknownName, match=f"^{complaint}"):
            topicweave.simulate(LISTS, **asked)


@pytest.mark.parametrize("asked", [{"seed": -1}, {"churn_speed": 0}])
def test_a_simulation_refuses_the_same(asked: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="give a"):
        topicweave.simulate(LISTS, **asked)


def test_limits_are_those_of_the_command_line() -> None:
    """Python names the number of processes apart from the options of a question."""
    options = {**signature(trying._options, eval_str=True).parameters}
    there = {name: get_args(option.annotation)[1] for name, option in options.items()}
    there["workers"] = get_args(trying.WorkersOption)[1]
    for name, limit in LIMITS.items():
        if name not in ("budget", "churn_speed"):  # A text there; and Typer has no word for "above 0".
            said = there[name].min, math.inf if there[name].max is None else there[name].max
            assert said == (limit.least, limit.most), name
    bounded = {name for name, option in there.items() if option.min is not None}
    assert bounded <= LIMITS.keys() <= {*Conditions.__annotations__, *Bounds.__annotations__, "workers"}


def test_one_number_in_two_forms_is_one_run() -> None:
    told = checked({"settle": 3, "crash": 0, "events": 10, "max_degree": None})
    assert [type(value) for value in told.values()] == [float, float, int, type(None)]
