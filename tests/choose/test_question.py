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
        ({"seeds": 0}, "seeds 0: give a whole number from 1 on"),
        ({"seeds": -1}, "seeds -1: give a whole number from 1 on"),
        ({"seeds": 1.5}, "seeds 1.5: give a whole number from 1 on"),
        ({"seed": -1}, "seed -1: give a whole number from 0 on"),
        ({"events": "many"}, "events 'many': give a whole number from 0 on"),
        ({"nodes": 0}, "nodes 0: give a whole number from 1 on"),
        ({"workers": 0}, "workers 0: give a whole number from 1 on"),
        ({"settle": math.inf}, "settle inf: give a number from 0 on"),
        ({"crash": 0.95}, "crash 0.95: give a number from 0 to 0.9"),
        ({"churn_speed": 0}, "churn_speed 0: give a number above 0"),
        ({"budget": 0}, "budget 0: give a number above 0"),
        ({"max_degree": -1}, "max_degree -1: give a number from 0 on"),
        ({"max_degree": math.nan}, "max_degree nan: give a number from 0 on"),
        ({"min_hit": 5}, "min_hit 5: give a number from 0 to 1"),
        ({"max_noise": 2}, "max_noise 2: give a number from 0 to 1"),
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
