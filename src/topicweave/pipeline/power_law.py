"""The exponent of a power law, fitted to a histogram (Clauset, Shalizi and Newman, SIAM Review 51, 2009)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from topicweave.model.arrays import IntArray


class PowerLaw(NamedTuple):
    """Pr[x] is proportional to 1 / x**alpha from `x_min` on."""

    alpha: float
    error: float
    """Standard error of alpha."""
    x_min: int
    tail: int
    """How many values are x_min or more."""
    distance: float
    """The largest gap between the fitted and the found distribution (Kolmogorov-Smirnov)."""
    fits: bool
    """Whether a power law is plausible: its tail spans a factor of ten, and `distance` is what chance allows
    (1 in 100).
    """
    ccdf_slope: float
    """Least squares through the whole CCDF in log-log, as papers draw it: not an estimate of alpha - 1."""


_CANDIDATES = 50
_LEAST_TAIL = 50
_SPAN = 10
_BY_CHANCE = 1.63
"""Kolmogorov-Smirnov's limit at 1 % times the root of the number of values."""


def fit(values: IntArray, times: IntArray) -> PowerLaw:
    """Of growing `values` and how often each occurs; nan where there is too little to fit.

    alpha by maximum likelihood in the usual approximation for whole numbers, x_min by the smallest distance.
    """
    nothing = PowerLaw(math.nan, math.nan, 0, 0, math.nan, False, ccdf_slope(values, times))
    best = nothing
    tails = np.cumsum(times[::-1])[::-1] if len(times) else times
    enough = np.flatnonzero(tails >= min(_LEAST_TAIL, max(int(times.sum()), 1)))
    enough = enough[enough < len(values) - 1]  # one value is no tail
    picked = (
        enough[np.unique(np.linspace(0, len(enough) - 1, _CANDIDATES).astype(int))] if len(enough) else enough
    )
    for place in picked.tolist():
        x, n = values[place:], times[place:]
        count, x_min = int(n.sum()), int(values[place])
        logs = float((n * np.log(x / (x_min - 0.5))).sum())
        alpha = 1.0 + count / logs
        found = np.cumsum(n[::-1])[::-1] / count
        fitted = ((x - 0.5) / (x_min - 0.5)) ** (1.0 - alpha)
        distance = float(np.abs(found - fitted).max())
        if math.isnan(best.distance) or distance < best.distance:
            fits = values[-1] >= _SPAN * x_min and distance <= _BY_CHANCE / math.sqrt(count)
            error = (alpha - 1) / math.sqrt(count)
            best = PowerLaw(alpha, error, x_min, count, distance, bool(fits), nothing.ccdf_slope)
    return best


def ccdf_slope(values: IntArray, times: IntArray) -> float:
    """The slope, without its sign, of a line through the points (log value, log share of that value or more)."""
    if len(values) < 2:
        return math.nan
    share = np.cumsum(times[::-1])[::-1] / times.sum()
    return float(-np.polyfit(np.log(values), np.log(share), 1)[0])
