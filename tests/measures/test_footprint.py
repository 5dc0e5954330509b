"""What an object keeps in memory is the same whatever others of its kind are like."""

from __future__ import annotations

import doctest

from topicweave.measures import footprint
from topicweave.measures.footprint import deep_size


class Thing:
    def __init__(self) -> None:
        self.name = "a thing"
        self.parts = [1.5, 2.5]


def test_the_example_in_the_docstring() -> None:
    assert doctest.testmod(footprint).failed == 0


def test_each_part_counts_once() -> None:
    one, other = 1.5, 2.5
    assert deep_size([one, one]) < deep_size([one, other])


def test_how_many_of_its_kind_there_were_changes_nothing() -> None:
    """Python keeps room for attributes that later objects of a class may have, and less of it the more there are."""
    first = deep_size(Thing())
    others = [Thing() for _ in range(40)]
    for number in range(3):
        setattr(others[0], f"more{number}", None)
    assert {deep_size(thing) for thing in (*others[1:], Thing())} == {first}
