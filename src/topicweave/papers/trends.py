"""What a study says of a row of values: that they fall or rise, and what they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise


def falls(values: Sequence[float]) -> bool:
    return all(later < earlier for earlier, later in pairwise(values))


def rises(values: Sequence[float]) -> bool:
    return all(later > earlier for earlier, later in pairwise(values))


def listed(values: Iterable[float], digits: int = 3) -> str:
    """
    >>> listed([1, 0.5], digits=1)
    '1.0, 0.5'
    """
    return ", ".join(f"{value:.{digits}f}" for value in values)
