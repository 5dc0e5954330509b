"""Means over replications, and how far to trust them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

# Student's t at 97.5 % for 1 to 30 degrees of freedom; beyond that the normal distribution's is near enough.
_T = (
    *(12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281),
    *(2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860),
    *(2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423),
)
_NORMAL = 1.96


def mean(values: Sequence[float]) -> float:
    """Of the values that are numbers; nan if none is. One that is infinite makes the mean so."""
    known = [value for value in values if not math.isnan(value)]
    return fmean(known) if known else math.nan


def half_width(values: Sequence[float]) -> float:
    """Half of the 95 % confidence interval of the mean (Student's); nan below two values.

    >>> round(half_width([1.0, 2.0, 3.0]), 2)
    2.48
    """
    known = [value for value in values if math.isfinite(value)]
    if len(known) < 2 or len(known) < len(values):
        return math.nan
    freedom = len(known) - 1
    t = _T[freedom - 1] if freedom <= len(_T) else _NORMAL
    return t * stdev(known) / math.sqrt(len(known))
