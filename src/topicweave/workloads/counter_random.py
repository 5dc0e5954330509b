"""Randomness without a state: a random number is a hash of the place it is used at.

A number is named by (seed, stream, i, j): `stream` tells uses apart, `i` and `j` count within one (node and
topic, say). Nothing is consumed, so rows may be made in any order, chunk or partition and stay the same.

The hash is the output function of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
generators", OOPSLA 2014), applied once per element of the name.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from topicweave.errors import BadInput

Counters = npt.NDArray[np.integer[Any]] | int
HashArray = npt.NDArray[np.uint64]

_GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_FACTOR = np.uint64(0x94D049BB133111EB)


def hashes(seed: int, stream: int, i: Counters, j: Counters = 0) -> HashArray:
    """64 random bits for each pair of counters; `i` and `j` broadcast like any two arrays."""
    if not 0 <= seed < 2**64:
        # Folding it into range would let two seeds that look different give the same numbers.
        raise BadInput(f"seed {seed}: out of range; choose one from 0 to 2**64 - 1")
    state = np.zeros((), np.uint64)
    for counter in (seed, stream, i, j):
        state = _mixed(state, np.asarray(counter, np.uint64))
    return state


def uniforms(seed: int, stream: int, i: Counters, j: Counters = 0) -> npt.NDArray[np.float64]:
    """Uniform numbers in [0, 1), multiples of 2**-53."""
    top_bits = hashes(seed, stream, i, j) >> np.uint64(11)
    return top_bits.astype(np.float64) * 2.0**-53


def _mixed(state: HashArray, counter: HashArray) -> HashArray:
    """The output number `counter` of a SplitMix64 generator that starts at `state`."""
    with np.errstate(over="ignore"):  # arithmetic modulo 2**64 is the point
        bits: HashArray = np.asarray(state + (counter + np.uint64(1)) * _GOLDEN_GAMMA)
        bits = (bits ^ (bits >> np.uint64(30))) * _FIRST_FACTOR
        bits = (bits ^ (bits >> np.uint64(27))) * _SECOND_FACTOR
        return bits ^ (bits >> np.uint64(31))
