"""The epidemic maximum."""

from __future__ import annotations

import random
from typing import Any, cast

from topicweave.port import World
from topicweave.systems.omen.highest_degree import MAX_AGE, HighestDegree


class Clock:
    now = 100.0
    random = random.Random(0)


def test_the_highest_lately_heard_of() -> None:
    clock: Any = Clock()
    highest = HighestDegree(cast(World, clock), lambda: 3, believable=50)
    assert highest.tell() == (3, 0.0)
    highest.hear(9, 2.0)
    assert highest.tell() == (9, 2.0)
    highest.hear(5, 0.0)
    highest.hear(9, 1.0)  # newer news of the same
    assert highest.tell() == (9, 1.0)
    for degree, age in ((51, 0.0), (-1, 0.0), (10, -1.0), (10, MAX_AGE + 1), (10, float("nan"))):
        highest.hear(degree, age)
    assert highest.tell() == (9, 1.0)
    clock.now += MAX_AGE
    assert highest.tell() == (3, 0.0)  # nobody has said it for long: its owner is gone
    highest.hear(7, 0.0)
    assert highest.tell() == (7, 0.0)
