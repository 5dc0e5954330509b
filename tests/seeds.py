"""Chances: a few seeds with every change, the others with the long tests."""

from __future__ import annotations

from collections.abc import Iterable

import pytest


def seeds(numbers: Iterable[int], always: int = 2) -> pytest.MarkDecorator:
    """Runs a test with each of these as `seed`; `make test` takes the first ones only."""
    cases = [
        number if at < always else pytest.param(number, marks=pytest.mark.seeds)
        for at, number in enumerate(numbers)
    ]
    return pytest.mark.parametrize("seed", cases)
