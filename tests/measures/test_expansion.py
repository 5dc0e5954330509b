import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from topicweave.measures.expansion import expansion, pieces

lengths = st.lists(st.integers(0, 6), max_size=12)


@given(lengths)
def test_expansion_names_every_cell(counts: list[int]) -> None:
    owner, place = expansion(np.array(counts, np.int64))
    cells = [(number, cell) for number, count in enumerate(counts) for cell in range(count)]
    assert list(zip(owner.tolist(), place.tolist(), strict=True)) == cells


@given(lengths, st.integers(1, 10))
def test_pieces_are_small_and_cover_everything_once(counts: list[int], limit: int) -> None:
    cut = [counts[piece] for piece in pieces(np.array(counts, np.int64), limit)]
    assert [count for piece in cut for count in piece] == counts
    assert all(piece and (sum(piece) <= limit or len(piece) == 1) for piece in cut)
