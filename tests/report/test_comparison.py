"""A comparison's JSON and labels."""

import json
import math

import pytest
from scipy import stats

from tests.report.comparisons import NAN, comparison, entry
from topicweave.errors import UnknownName
from topicweave.measures.intervals import half_width, mean
from topicweave.report import Entry
from topicweave.report.constraints import Constraint


def test_json_has_the_documented_keys_and_no_distributions() -> None:
    told = comparison(entry("alpha", {"k": 2})).to_json()
    assert told.keys() == {
        *(
            "version",
            "workload",
            "seeds",
            "events",
            "preset",
            "membership",
            "settle",
            "latency",
            "churn",
            "crash",
            "loss",
        ),
        *("constraints", "cuts", "notes", "systems"),
    }
    [system] = told["systems"]
    assert system.keys() == {"system", "parameters", "measures", "intervals", "replications", "breaks"}
    assert system["system"] == "alpha"
    assert system["parameters"] == {"k": 2}
    assert system["measures"]["hit_ratio"] == 1.0
    assert "degrees" not in system["measures"]


def test_json_tells_what_was_asked_for_and_who_breaks_it() -> None:
    bound = Constraint("degree_max", "at most", 20.0, "--max-degree 20")
    lean, rich = entry("lean", degree_max=15.0), entry("rich", degree_max=35.0)
    told = comparison(lean, rich, asked=(bound,)).to_json()
    assert told["constraints"] == ["--max-degree 20"]
    assert [system["breaks"] for system in told["systems"]] == [[], ["links max 35, at most 20 asked for"]]


def test_what_has_no_value_is_null() -> None:
    told = comparison(entry("alpha", hit_ratio=NAN)).to_json()
    assert told["systems"][0]["measures"]["hit_ratio"] is None
    json.dumps(told, allow_nan=False)


def test_a_label_is_what_the_command_line_takes() -> None:
    assert entry("alpha").label == "alpha"
    assert entry("alpha", {"k": 2, "adaptive": True}).label == "alpha:k=2:adaptive=true"


def test_a_session_shows_it_in_a_line() -> None:
    results = ({"hit_ratio": 1.0, "degrees": [1, 2]}, {"hit_ratio": 0.5}, {"hit_ratio": NAN})
    assert repr(Entry("alpha", {"k": 2}, {"k": 2}, results)) == (
        "<Entry alpha:k=2: 3 seeds, deliveries missed with 1>"
    )
    assert repr(Entry("alpha", {}, {}, results[:1])) == "<Entry alpha: 1 seed>"


def replicated(**values: list[float]) -> Entry:
    count = len(next(iter(values.values())))
    results = tuple({name: given[seed] for name, given in values.items()} for seed in range(count))
    return Entry("alpha", {}, {}, results)


def test_measures_are_means_over_the_seeds_with_their_intervals() -> None:
    one = replicated(noise=[0.1, 0.2, 0.6], hops_mean=[3.0, NAN, 5.0])
    assert one.measure("noise") == pytest.approx(0.3)
    assert one.interval("noise") == pytest.approx(
        stats.sem([0.1, 0.2, 0.6]) * stats.t.ppf(0.975, 2), rel=1e-4
    )
    assert one.measure("hops_mean") == 4.0  # of the seeds that had any
    assert math.isnan(one.interval("hops_mean"))
    single = replicated(noise=[0.1], hit_ratio=[0.9], deliveries_expected=[100.0])
    assert math.isnan(single.interval("noise"))
    assert single.interval("hit_ratio") == pytest.approx(0.074, abs=5e-4)


def test_a_name_that_no_comparison_knows_is_refused() -> None:
    """What another system has, what a run may leave out, and a kind of message that nobody sent have no value."""
    one, other = (
        Entry("one", {}, {}, ({"noise": 0.5},)),
        Entry("two", {}, {}, ({"noise": 0.1, "moves": 2.0},)),
    )
    shown = comparison(one, other)
    assert math.isnan(shown["one"].measure("moves"))
    assert shown["two"].measure("moves") == 2.0
    for name in ("repair_time", "own_bytes", "deliveries_expected", "control_bytes.graft", "links.cover"):
        assert math.isnan(one.measure(name))
        assert math.isnan(one.interval(name))
    for look_up in (one.measure, one.interval, one.replications):
        with pytest.raises(UnknownName, match=r"unknown measure 'nois'; known: .*degree_mean.*moves, noise"):
            look_up("nois")


@pytest.mark.parametrize("count", [2, 5, 30, 31, 60])
def test_intervals_are_students(count: int) -> None:
    values = [float(number % 7) for number in range(count)]
    expected = stats.sem(values) * stats.t.ppf(0.975, count - 1)
    assert half_width(values) == pytest.approx(expected, rel=1e-12)


def test_a_repair_that_once_never_came_makes_the_mean_infinite_and_the_json_null() -> None:
    one = replicated(repair_time=[3.0, math.inf])
    assert one.measure("repair_time") == math.inf
    told = comparison(one).to_json()["systems"][0]
    assert told["measures"]["repair_time"] is None
    assert told["replications"]["repair_time"] == [3.0, None]


def test_a_mean_of_nothing_is_none() -> None:
    assert math.isnan(mean([]))
    assert math.isnan(mean([NAN]))


def test_lists_of_several_seeds_are_put_together() -> None:
    results = (
        {"degrees": [1, 2], "hops_counts": [0, 4], "curve": [1.0, 0.5]},
        {"degrees": [5], "hops_counts": [0, 1, 1], "curve": [0.0]},
    )
    one = Entry("alpha", {}, {}, results)
    assert one.collected("degrees") == [1, 2, 5]
    assert one.summed("hops_counts") == [0, 5, 1]
    assert one.averaged("curve") == [0.5]
    assert one.averaged("nothing") == []
