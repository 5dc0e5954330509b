"""How popular topics are: SpiderCast §3.1 and §3.4.

A model gives, for a number of topics, the probability `p_i` with which a draw takes topic i; topic 0 is the
most popular, and the probabilities add up to 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from topicweave.errors import BadInput, UnknownName
from topicweave.model.arrays import FloatArray

NYSE_HEAD = 0.10
NYSE_SHARE = 0.55


@dataclass(frozen=True)
class Popularity:
    description: str
    probabilities: Callable[[int], FloatArray]


def zipf(topics: int, alpha: float) -> FloatArray:
    """`p_i` proportional to `1 / i**alpha`, i counting from 1."""
    return _normalised(np.arange(1, topics + 1, dtype=np.float64) ** -alpha)


def nyse(topics: int) -> FloatArray:
    """Exponential decay in which the 10 % most popular topics draw 0.55 together.

    The paper states the share, not the decay. With `p_i` proportional to `r**i` and `x = r**(topics / 10)`,
    the first tenth draws `(1 - x) / (1 - x**10)`: so x follows from 0.55 alone, and r from x. (The share is
    exact when the topics divide into tenths.)
    """
    decay_over_head = _solve_head_decay(NYSE_HEAD, NYSE_SHARE)
    return _normalised(decay_over_head ** (np.arange(topics) / (NYSE_HEAD * topics)))


def uniform(topics: int) -> FloatArray:
    return np.full(topics, 1.0 / topics)


MODELS: dict[str, Popularity] = {
    "rss": Popularity("Zipf with exponent 0.5, as measured for RSS feeds", partial(zipf, alpha=0.5)),
    "zipf1": Popularity("Zipf with exponent 1", partial(zipf, alpha=1.0)),
    "zipf2": Popularity(
        "Zipf with exponent 2: most nodes want nearly the same topics", partial(zipf, alpha=2.0)
    ),
    "nyse": Popularity("exponential, as for stocks: the top 10 % of topics draw 55 %", nyse),
    "uniform": Popularity("all topics alike", uniform),
}


def popularity(name: str, topics: int) -> FloatArray:
    """The probabilities of a model by name, or of Zipf with any exponent as `zipf:1.3`.

    >>> popularity("zipf1", 3).round(3).tolist()
    [0.545, 0.273, 0.182]
    >>> popularity("zipf:0", 2).tolist()
    [0.5, 0.5]
    """
    if name.startswith("zipf:"):
        return zipf(topics, _exponent(name))
    if name not in MODELS:
        raise UnknownName("popularity model", name, [*MODELS, "zipf:A"])
    return MODELS[name].probabilities(topics)


def _exponent(name: str) -> float:
    try:
        alpha = float(name.removeprefix("zipf:"))
    except ValueError:
        raise BadInput(f"popularity {name!r}: no number behind the colon; write zipf:1.3, say") from None
    if not 0.0 <= alpha <= 100.0:
        raise BadInput(f"popularity {name!r}: say an exponent from 0 to 100")
    return alpha


def _normalised(weights: FloatArray) -> FloatArray:
    probabilities: FloatArray = weights / weights.sum()
    return probabilities


def _solve_head_decay(head: float, share: float) -> float:
    """The x in (0, 1) with `(1 - x) / (1 - x**(1 / head)) = share`, where head < share < 1.

    The left side falls from 1 to `head` as x grows, so bisection finds it.
    """
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:
        if 1 - middle > share * (1 - middle ** (1 / head)):
            low = middle
        else:
            high = middle
    return low
