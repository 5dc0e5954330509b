"""Many patterns at once agree with each pattern by itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from topicweave.model.name_index import NameIndex
from topicweave.model.pattern_tree import PatternTree
from topicweave.model.patterns import matches

LEVEL = st.sampled_from(["a", "b", "", "$x", "c+"])
NAMES = st.lists(LEVEL, min_size=1, max_size=5).map("/".join).filter(bool)
PATTERNS = st.tuples(
    st.lists(st.one_of(LEVEL, st.just("+")), min_size=1, max_size=4), st.sampled_from([[], ["#"]])
).map(lambda both: "/".join([*both[0], *both[1]])).filter(bool) | st.just("#")  # fmt: skip


@given(st.lists(st.tuples(PATTERNS, st.integers(0, 2)), max_size=12), st.lists(NAMES, min_size=1), st.data())
def test_the_tree_finds_what_single_patterns_match(
    held: list[tuple[str, int]], names: list[str], data: st.DataObject
) -> None:
    tree = PatternTree[int, str]()
    pairs = dict.fromkeys(held)
    for pattern, holder in held:
        tree.put(pattern, holder, pattern.upper())
    gone = data.draw(st.lists(st.sampled_from(list(pairs)))) if pairs else []
    for pattern, holder in gone:
        had = (pattern, holder) in pairs
        pairs.pop((pattern, holder), None)
        assert tree.remove(pattern, holder) == (pattern.upper() if had else None)
    assert len(tree) == len(pairs)
    for name in names:
        wanted = sorted((pattern, holder) for pattern, holder in pairs if matches(pattern, name))
        assert sorted((pattern, holder) for pattern, holder, _ in tree.matching(name)) == wanted
        assert (name in tree) == bool(wanted)
    for pattern, holder in list(pairs):
        tree.remove(pattern, holder)
    assert not tree._root, "nothing is left of patterns that went"


def test_one_that_is_put_again_takes_the_place_of_the_first() -> None:
    tree = PatternTree[str, int]()
    assert tree.matching("a/b") == []
    tree.put("a/+", "me", 1)
    tree.put("a/+", "me", 2)
    assert tree.matching("a/b") == [("a/+", "me", 2)]
    assert len(tree) == 1


@given(st.lists(NAMES), st.lists(NAMES), PATTERNS)
def test_an_index_of_names_finds_what_a_pattern_matches(
    names: list[str], gone: list[str], pattern: str
) -> None:
    index = NameIndex()
    for name in names:
        index.add(name)
    for name in gone:
        index.discard(name)
    left = set(names) - set(gone)
    assert len(index) == len(left)
    assert sorted(index.matching(pattern)) == sorted(name for name in left if matches(pattern, name))
    assert all((name in index) == (name in left) for name in (*names, *gone))
