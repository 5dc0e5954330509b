"""How often topics publish: the same for all, or falling by a power law (Vitis §IV-D, Magnet §4.2)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from topicweave.errors import BadInput


def power_law_rates(topics: int, alpha: float) -> npt.NDArray[np.float64]:
    """Events per second of each topic, proportional to `1 / i**alpha` with i from 1, and 1 on average.

    Vitis varies alpha from 0.3 (nearly the same for all) to 3 (nearly all events on one topic); Magnet takes
    0.75. An alpha of 0 gives every topic a rate of exactly 1. The papers state no absolute rate.

    >>> power_law_rates(4, 0.0).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    if not 0 <= alpha < np.inf:
        raise BadInput(f"rate exponent {alpha}: out of range; choose a number of 0 or more")
    weights = np.arange(1, topics + 1, dtype=np.float64) ** -alpha
    return np.asarray(weights * (topics / weights.sum()))
