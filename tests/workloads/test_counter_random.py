"""Counter-based randomness: the same numbers in any order, and numbers that look random."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from topicweave.errors import BadInput
from topicweave.workloads.counter_random import hashes, uniforms

MASK = 2**64 - 1


def splitmix64(state: int, outputs: int) -> int:
    """The n-th output of the generator as its authors print it, stepping through all before."""
    bits = 0
    for _ in range(outputs):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        bits = state
        bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & MASK
        bits ^= bits >> 31
    return bits


def test_the_hash_is_splitmix64() -> None:
    # Known outputs of SplitMix64 from state 0.
    assert [splitmix64(0, n) for n in (1, 2)] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]
    state = 0
    for counter in (11, 2, 5, 9):
        state = splitmix64(state, counter + 1)
    assert int(hashes(11, 2, 5, 9)) == state


@given(st.integers(0, MASK), st.integers(0, 20), st.integers(0, 20))
def test_chunks_and_single_cells_agree_with_the_whole(seed: int, cut: int, column: int) -> None:
    rows, columns = np.arange(20), np.arange(21)
    whole = hashes(seed, 3, rows[:, np.newaxis], columns)
    chunks = [hashes(seed, 3, part[:, np.newaxis], columns) for part in (rows[:cut], rows[cut:])]
    assert np.array_equal(whole, np.concatenate(chunks))
    assert np.array_equal(whole[:, column], hashes(seed, 3, rows, column))
    assert np.array_equal(whole.T, hashes(seed, 3, rows, columns[:, np.newaxis]))


def test_every_element_of_the_name_matters() -> None:
    names = [
        (seed, stream, i, j) for seed in range(6) for stream in range(6) for i in range(6) for j in range(6)
    ]
    assert len({int(hashes(*name)) for name in names}) == len(names)


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_seeds_out_of_range_are_refused(seed: int) -> None:
    with pytest.raises(BadInput, match=rf"seed {seed}: out of range; choose one from 0"):
        hashes(seed, 0, 0)


class TestUniforms:
    def test_lie_in_the_half_open_unit_interval(self) -> None:
        numbers = uniforms(1, 0, np.arange(100_000))
        assert numbers.min() >= 0.0
        assert numbers.max() < 1.0
        assert np.array_equal(numbers * 2**53, np.floor(numbers * 2**53))

    @pytest.mark.parametrize("seed", [0, 1, 2**63])
    def test_fill_the_interval_evenly(self, seed: int) -> None:
        numbers = uniforms(seed, 0, np.arange(500)[:, np.newaxis], np.arange(500))
        assert stats.kstest(numbers.ravel(), "uniform").pvalue > 1e-4

    @pytest.mark.parametrize("axis", [0, 1])
    def test_neighbours_are_independent(self, axis: int) -> None:
        """Pairs of neighbouring rows or columns fill a 16 x 16 grid evenly."""
        numbers = uniforms(4, 1, np.arange(400)[:, np.newaxis], np.arange(400))
        one, next_to_it = (np.take(numbers, range(start, 400, 2), axis) for start in (0, 1))
        counts, _, _ = np.histogram2d(one.ravel(), next_to_it.ravel(), bins=16, range=[[0, 1], [0, 1]])
        assert stats.chisquare(counts.ravel()).pvalue > 1e-4

    @pytest.mark.parametrize(("seed", "stream"), [(8, 1), (7, 2)])
    def test_seeds_and_streams_are_independent(self, seed: int, stream: int) -> None:
        counters = np.arange(100_000)
        counts, _, _ = np.histogram2d(
            uniforms(7, 1, counters), uniforms(seed, stream, counters), bins=16, range=[[0, 1], [0, 1]]
        )
        assert stats.chisquare(counts.ravel()).pvalue > 1e-4

    @pytest.mark.parametrize("bit", [0, 31, 63])
    def test_bits_are_fair(self, bit: int) -> None:
        ones = int((hashes(3, 0, np.arange(200_000)) >> np.uint64(bit) & np.uint64(1)).sum())
        assert stats.binomtest(ones, 200_000).pvalue > 1e-4
