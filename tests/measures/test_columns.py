import math

import numpy as np
import pyarrow as pa
import pytest

from topicweave.measures.columns import codes, distinct, mean, names_array, percentile, ratio

WORDS = ["b", "a", "b", "d"]


def columns() -> dict[str, pa.ChunkedArray]:
    """The same cells in every encoding a reader may hand over."""
    encoded = pa.array(WORDS).dictionary_encode()
    larger = pa.DictionaryArray.from_arrays([2, 1, 2, 0], pa.array(["d", "a", "b", "never used"]))
    pieces = [pa.array(WORDS[:1]).dictionary_encode(), pa.array(WORDS[1:]).dictionary_encode()]
    return {
        "plain": pa.chunked_array([WORDS]),
        "large": pa.chunked_array([pa.array(WORDS, pa.large_string())]),
        "encoded": pa.chunked_array([encoded]),
        "with unused entries": pa.chunked_array([larger]),
        "sliced": pa.chunked_array([pa.array(["z", *WORDS]).dictionary_encode().slice(1)]),
        "in pieces": pa.chunked_array(pieces),
        "large encoded": pa.chunked_array([pa.array(WORDS, pa.large_string()).dictionary_encode()]),
    }


@pytest.mark.parametrize("encoding", columns())
def test_names_whatever_their_encoding(encoding: str) -> None:
    column = columns()[encoding]
    assert distinct(column).to_pylist() == ["a", "b", "d"]
    assert codes(column, pa.array(["a", "b", "c"])).tolist() == [1, 0, 1, -1]


def test_names_of_several_columns() -> None:
    every = columns()
    other = pa.chunked_array([["e", "a"]])
    assert distinct(every["encoded"], other, every["plain"]).to_pylist() == ["a", "b", "d", "e"]


@pytest.mark.parametrize("type_", [pa.string(), pa.dictionary(pa.int32(), pa.string())])
def test_no_names(type_: pa.DataType) -> None:
    for column in (pa.chunked_array([], type_), pa.chunked_array([pa.array([], type_)])):
        assert distinct(column).to_pylist() == []
        assert codes(column, pa.array(["a"])).tolist() == []
        assert codes(pa.chunked_array([["a"]]), distinct(column)).tolist() == [-1]


def test_names_given_in_python() -> None:
    assert names_array(iter(["b", "a", "b"])).to_pylist() == ["a", "b"]


@pytest.mark.filterwarnings("error")
def test_statistics_of_nothing_are_nan() -> None:
    nothing = np.empty(0)
    assert all(math.isnan(value) for value in (mean(nothing), percentile(nothing, 95), ratio(0, 0)))
    assert (mean(np.array([1, 2])), percentile(np.array([1, 5]), 100), ratio(1, 4)) == (1.5, 5.0, 0.25)
