"""Means over replications, and how far to trust them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev


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
    return half_width_of(stdev(known), len(known))


def share_half_width(share: float, count: float) -> float:
    """How far the true share may be from one found in `count` cases: the further end of Wilson's 95 % interval.

    >>> round(share_half_width(1.0, 24), 3)
    0.138
    """
    if math.isnan(share) or not count > 0:
        return math.nan
    square = 1.959963984540054**2
    centre = (share + square / (2 * count)) / (1 + square / count)
    half = math.sqrt(square * (share * (1 - share) / count + square / (4 * count**2))) / (1 + square / count)
    return max(share - (centre - half), centre + half - share)


def half_width_of(deviation: float, count: int) -> float:
    """The same of `count` values with this standard deviation (that of a sample)."""
    from scipy.special import stdtrit  # where it is used: nodes start without it

    return float(stdtrit(count - 1, 0.975)) * deviation / math.sqrt(count)
