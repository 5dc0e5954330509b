"""Correlation from sums: tasks that each hold a part of the pairs add theirs up."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from topicweave.model.arrays import IntArray


class Moments(NamedTuple):
    """Sums over pairs of whole numbers, exactly: whole numbers of any size.

    >>> import numpy as np
    >>> moments = Moments.of(np.array([1, 2, 3]), np.array([10, 20, 30]))
    >>> moments.both, moments.correlation
    (140, 1.0)
    """

    pairs: int
    one: int
    other: int
    one_squared: int
    other_squared: int
    both: int

    @classmethod
    def of(cls, one: IntArray, other: IntArray) -> Moments:
        if not len(one):
            return cls(0, 0, 0, 0, 0, 0)
        first, second = one.astype(object), other.astype(object)
        sums = first.sum(), second.sum(), first @ first, second @ second, first @ second
        return cls(len(one), *map(int, sums))

    @property
    def correlation(self) -> float:
        """Pearson's; nan below two pairs or when either is the same in all."""
        if self.pairs < 2:
            return math.nan
        mean_one, mean_other = Fraction(self.one, self.pairs), Fraction(self.other, self.pairs)
        one = self.one_squared - mean_one * self.one
        other = self.other_squared - mean_other * self.other
        if not one or not other:
            return math.nan
        return float(self.both - mean_one * self.other) / math.sqrt(float(one) * float(other))
