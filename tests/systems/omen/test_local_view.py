"""Whom a node asks for what it wants: those whom it must know, and so many others."""

from __future__ import annotations

import random

from topicweave.model.ids import RING_SIZE
from topicweave.systems.omen.local_view import LOT, LOT_EVERY, LOTS_AT_ONCE, LocalView
from topicweave.systems.omen.parameters import OMenParameters

STEP = RING_SIZE // 4096


def test_strangers_are_asked_about_at_a_bounded_rate_but_always_those_next_on_the_circle() -> None:
    now = [0.0]
    view = LocalView(0, OMenParameters(), random.Random(1), lambda: now[0], dict)
    view.place([STEP * number for number in (10, 20, -10 % 4096, -20 % 4096)])
    far = [STEP * number for number in range(1000, 3000)]
    assert view.worth_asking(far) == far[: int(LOT * LOTS_AT_ONCE)]
    assert view.worth_asking(far) == []
    now[0] = 2.5 * LOT_EVERY
    assert view.worth_asking(far) == far[: 2 * LOT]
    nearer, known = [STEP * 15, STEP * -15 % RING_SIZE], [STEP * 10]
    assert view.worth_asking([*far, *nearer, *known, STEP * 30]) == [*nearer, *known]
