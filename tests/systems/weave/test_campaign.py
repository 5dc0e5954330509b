"""A few seeds of the fault campaign; `topicweave campaign weave` runs as many as one likes."""

from __future__ import annotations

from typing import Any

import pytest

from topicweave.systems.weave import WEAVE
from topicweave.testing import draw_scenario, run_scenario


@pytest.mark.parametrize(
    ("seed", "parameters"), [(1, {}), (2, {"max_degree": 8}), (3, {"near": 2.0}), (4, {"links": 7})]
)
def test_campaign(seed: int, parameters: dict[str, Any]) -> None:
    verdict = run_scenario(WEAVE, draw_scenario(seed, nodes=30), WEAVE.settings(**parameters))
    assert verdict.violations == ()
