"""A few scenarios of the fault campaign; `topicweave campaign magnet --seeds 200` plays many."""

from __future__ import annotations

import pytest

from tests.systems.magnet.settled import BOTH
from topicweave.systems.registry import find_system
from topicweave.testing.campaign import draw_scenario, run_scenario


@pytest.mark.parametrize(("system", "seed"), list(zip(BOTH, (3, 11), strict=True)))
def test_a_scenario_passes(system: str, seed: int) -> None:
    verdict = run_scenario(find_system(system), draw_scenario(seed, nodes=30))
    assert verdict.violations == ()
