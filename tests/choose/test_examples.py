"""The examples in the docstrings."""

import doctest
from pathlib import Path
from types import ModuleType

import pytest

from topicweave.choose import advising, comparing, planning, simulating, sources, variants


@pytest.mark.parametrize("module", [advising, comparing, planning, simulating, sources, variants])
def test_they_are_true(module: ModuleType, tmp_path: Path) -> None:
    outcome = doctest.testmod(module, extraglobs={"folder": tmp_path})
    assert outcome.attempted
    assert outcome.failed == 0
