"""Places on the circle (§3.3, Alg. 6)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from topicweave.model.ids import RING_SIZE, clockwise
from topicweave.systems.omen.circle import (
    is_in_predecessor_range,
    predecessors,
    successors,
)

IDS = st.integers(0, RING_SIZE - 1)


def test_by_hand() -> None:
    nodes = [10, 20, 30, 40]
    assert predecessors(10, nodes, 2) == [40, 30]
    assert successors(30, nodes, 3) == [40, 10, 20]


def test_failover_as_the_paper_tells_it() -> None:
    """§3.3: v1 leaves, v2 coordinates; v2 leaves before it is done, and v3 coordinates both."""
    assert successors(1, [2, 3, 4, 5], 1) == [2]
    assert successors(1, [3, 4, 5], 1) == [3]
    assert successors(2, [3, 4, 5], 1) == [3]
    # Across the zero of the circle.
    assert successors(RING_SIZE - 1, [1, 5], 1) == [1]


@given(IDS, st.sets(IDS, max_size=12), st.integers(1, 4))
def test_nearest_first_and_mirrored(own: int, others: set[int], most: int) -> None:
    before, after = predecessors(own, others, most), successors(own, others, most)
    assert before == sorted(others - {own}, key=lambda peer: clockwise(peer, own))[:most]
    assert after == sorted(others - {own}, key=lambda peer: clockwise(own, peer))[:most]
    everyone = others | {own}
    for peer in after:
        assert own in predecessors(peer, everyone, most)


@given(IDS, st.sets(IDS, min_size=1, max_size=12), st.integers(1, 4))
def test_as_many_as_l_stand_in_range(churned: int, alive: set[int], most: int) -> None:
    alive.discard(churned)
    if not alive:
        return
    in_range = {peer for peer in alive if is_in_predecessor_range(peer, churned, alive, most)}
    assert in_range == set(successors(churned, alive, most))
