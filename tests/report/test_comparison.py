"""A comparison's JSON and labels."""

import json

from tests.report.comparisons import NAN, comparison, entry


def test_json_has_the_documented_keys_and_no_distributions() -> None:
    told = comparison(entry("alpha", {"k": 2})).to_json()
    assert {"workload", "seed", "events", "systems"} <= told.keys()
    [system] = told["systems"]
    assert system.keys() == {"system", "parameters", "measures"}
    assert system["system"] == "alpha"
    assert system["parameters"] == {"k": 2}
    assert system["measures"]["hit_ratio"] == 1.0
    assert "degrees" not in system["measures"]


def test_what_has_no_value_is_null() -> None:
    told = comparison(entry("alpha", hit_ratio=NAN)).to_json()
    assert told["systems"][0]["measures"]["hit_ratio"] is None
    json.dumps(told, allow_nan=False)


def test_a_label_is_what_the_command_line_takes() -> None:
    assert entry("alpha").label == "alpha"
    assert entry("alpha", {"k": 2, "adaptive": True}).label == "alpha:k=2:adaptive=true"
