"""The candidates set: votes, audits, bounds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from topicweave.systems.rappel.candidates import Candidates


def candidates(most: int = 10, memory: float = 100.0) -> Candidates:
    return Candidates(0, most, memory, lambda _peer: None)


def test_the_most_named_is_audited_first_and_each_once() -> None:
    known = candidates()
    known.hear_list(1, (5, 6), now=1.0)
    known.hear_list(2, (6, 7), now=1.0)
    assert known.votes(6) == 2
    assert known.next((), 1.0) == 6
    assert [known.next((), 1.0), known.next((), 1.0)] == [5, 7]
    assert known.next((), 1.0) is None


def test_the_same_list_again_is_a_vote_again() -> None:
    known = candidates()
    names = (5, 6)
    for _ in range(4):
        known.hear_list(1, names, now=1.0)
    known.hear(6, now=2.0)
    assert known.votes(5) == 4
    assert known.votes(6) == 5


def test_a_change_of_friends_opens_all_again() -> None:
    known = candidates()
    known.hear_list(1, (5,), now=1.0)
    assert known.next((), 1.0) == 5
    known.reset()
    assert known.votes(5) == 0
    assert known.next((), 1.0) == 5


def test_friends_are_no_candidates_but_may_be_again() -> None:
    known = candidates()
    known.hear_list(1, (5,), now=1.0)
    assert known.next((5,), 1.0) is None
    known.reset()
    assert known.next((), 1.0) == 5


def test_the_node_itself_is_none() -> None:
    known = candidates()
    known.hear_list(1, (0, 5), now=1.0)
    assert list(known) == [5]


def test_the_longest_unheard_makes_room() -> None:
    known = candidates(most=3)
    for moment, peer in enumerate((5, 6, 7)):
        known.hear(peer, float(moment))
    known.hear(5, 3.0)
    known.hear(8, 4.0)
    assert set(known) == {5, 7, 8}


def test_who_is_only_named_in_lists_that_come_again_is_not_forgotten() -> None:
    known = candidates(most=3, memory=10.0)
    names = (5,)
    for moment in range(0, 40, 5):
        known.hear_list(1, names, float(moment))
        known.sweep(float(moment))
    assert 5 in known
    known.sweep(100.0)
    assert 5 not in known


lists = st.lists(
    st.tuples(st.integers(1, 4), st.lists(st.integers(0, 9), max_size=4, unique=True)), max_size=40
)


@given(lists)
def test_counting_lists_once_gives_the_same_votes_as_counting_each_name(
    spoken: list[tuple[int, list[int]]],
) -> None:
    known = candidates(most=20)
    votes: dict[int, int] = {}
    kept = {tuple(names): tuple(names) for _, names in spoken}
    for speaker, names in spoken:
        known.hear_list(speaker, kept[tuple(names)], now=1.0)
        for name in names:
            if name:
                votes[name] = votes.get(name, 0) + 1
    assert {peer: known.votes(peer) for peer in known} == votes
