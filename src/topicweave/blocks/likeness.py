"""How alike two interests are: the rule that Vitis (Eq. 1) and Magnet (§2.1) share."""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum

from topicweave.model.ids import Interest, TopicId


def likeness(
    mine: Interest, theirs: Interest, rates: Mapping[TopicId, float] | None = None, unknown: float = 0.0
) -> float:
    """The rate of what both want over that of what either wants, from 0 to 1.

    Without `rates` all topics count the same; topics that `rates` does not name count `unknown`. Where no event
    at all is expected, it is 0.

    >>> likeness(frozenset("ABC"), frozenset("CD")), likeness(frozenset("AB"), frozenset("B"), {"A": 1.0, "B": 3.0})
    (0.25, 0.75)
    """
    shared = mine & theirs
    if not shared:
        return 0.0
    if rates is None:
        return len(shared) / (len(mine) + len(theirs) - len(shared))
    rate = rates.get
    # fsum: the plain sum of floats depends on their order, and that of a set on the way the set was made.
    both = fsum([rate(topic, unknown) for topic in shared])
    either = fsum([rate(topic, unknown) for topic in mine | theirs])
    return both / either if either > 0.0 else 0.0
