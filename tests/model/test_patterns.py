"""Names by their levels, and patterns of them."""

from __future__ import annotations

import doctest
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topicweave.errors import BadInput
from topicweave.model import patterns
from topicweave.model.patterns import (
    BadPattern,
    check_name,
    check_pattern,
    covers,
    hidden,
    is_pattern,
    matches,
    reaches_below,
)

LEVELS = ("a", "b", "", "$s")
NAMES = [
    "/".join(levels) for count in (1, 2, 3, 4) for levels in itertools.product((*LEVELS, "x"), repeat=count)
]


def is_sound(text: str) -> bool:
    try:
        return bool(check_pattern(text))
    except BadPattern:
        return False


PATTERNS = [
    pattern
    for count in (1, 2, 3)
    for levels in itertools.product((*LEVELS, "+", "#"), repeat=count)
    if is_sound(pattern := "/".join(levels))
]
names = st.lists(st.sampled_from(LEVELS), min_size=1, max_size=6).map("/".join).filter(bool)
all_patterns = st.sampled_from(PATTERNS)


def by_the_book(pattern: list[str], name: list[str]) -> bool:
    """The standard's sentences, one at a time."""
    if not pattern:
        return not name
    if pattern == ["#"]:
        return True
    return bool(name) and pattern[0] in ("+", name[0]) and by_the_book(pattern[1:], name[1:])


def test_the_examples_in_the_docstrings() -> None:
    assert doctest.testmod(patterns).failed == 0


@pytest.mark.parametrize(
    ("pattern", "name", "is_matched"),
    [
        ("sport/tennis/player1/#", "sport/tennis/player1", True),
        ("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon", True),
        ("sport/#", "sport", True),
        ("sport/tennis/+", "sport/tennis/player1/ranking", False),
        ("sport/+", "sport", False),
        ("sport/+", "sport/", True),
        ("+/+", "/finance", True),
        ("/+", "/finance", True),
        ("+", "/finance", False),
        ("#", "$SYS/monitor", False),
        ("+/monitor/Clients", "$SYS/monitor/Clients", False),
        ("$SYS/#", "$SYS/monitor", True),
        ("$SYS/monitor/+", "$SYS/monitor/Clients", True),
    ],
)
def test_the_examples_of_the_standard(pattern: str, name: str, is_matched: bool) -> None:
    """MQTT 5.0, sections 4.7.1 and 4.7.2."""
    assert matches(pattern, name) is is_matched


@given(all_patterns, names)
def test_a_match_is_what_the_book_says(pattern: str, name: str) -> None:
    own = name.startswith("$") and pattern[0:1] in ("+", "#")
    assert matches(pattern, name) is (not own and by_the_book(pattern.split("/"), name.split("/")))


@given(all_patterns, all_patterns)
def test_one_pattern_covers_another_if_it_matches_all_that_it_matches(wider: str, pattern: str) -> None:
    theirs = {name for name in NAMES if matches(pattern, name)}
    assert covers(wider, pattern) is all(matches(wider, name) for name in theirs)


@given(all_patterns, names)
def test_hashed_levels_match_as_the_clear_ones_do(pattern: str, name: str) -> None:
    assert matches(hidden(pattern), hidden(name)) is matches(pattern, name)


@given(all_patterns, st.lists(st.sampled_from(LEVELS), max_size=4))
def test_what_a_pattern_matches_is_below_the_prefixes_that_it_reaches(
    pattern: str, levels: list[str]
) -> None:
    prefix = "".join(f"{level}/" for level in levels)
    below = [name for name in NAMES if f"{name}/".startswith(prefix)]
    if any(matches(pattern, name) for name in below):
        assert reaches_below(pattern, prefix)


@pytest.mark.parametrize("text", ["", "a/#/b", "a+/b", "a/b#", "#/", "x" * 1025, "/" * 128, "a\0b", "\ud800"])
def test_what_is_no_pattern_is_refused_with_one_error(text: str) -> None:
    with pytest.raises(BadPattern) as refused:
        check_pattern(text)
    assert isinstance(refused.value, BadInput)


@pytest.mark.parametrize("text", ["a/+", "#", "", "x" * 1025])
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(BadPattern):
        check_name(text)


def test_a_name_is_a_pattern_of_itself() -> None:
    assert check_pattern("a/b") == "a/b"
    assert not is_pattern("a/b")
    assert matches("a/b", "a/b")
