"""A few seeds of the fault campaign; `topicweave campaign` runs as many as one likes."""

from __future__ import annotations

from typing import Any

import pytest

from topicweave.systems.registry import find_system
from topicweave.testing import draw_scenario, run_scenario


@pytest.mark.parametrize(
    ("system", "seed", "parameters"),
    [
        ("vitis", 1, {}),
        ("vitis", 2, {"table_size": 6, "spreading": {"inline": 1}}),
        ("rvr", 3, {}),
        ("opt", 4, {"table_size": 5}),
        ("opt", 5, {}),
    ],
)
def test_campaign(system: str, seed: int, parameters: dict[str, Any]) -> None:
    found = find_system(system)
    verdict = run_scenario(found, draw_scenario(seed, nodes=30), found.settings(**parameters))
    assert verdict.violations == ()
