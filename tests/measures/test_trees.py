"""Costs of trees by topics and rates, by hand."""

import math

import numpy as np

from topicweave.measures.trees import relays_by_rate, share_uninterested

RELAYS, WANTED = np.array([3, 0, 6, 7]), np.array([5, 9, 1, 0])


def test_relays_weigh_as_often_as_a_topic_has_events() -> None:
    assert relays_by_rate(RELAYS, WANTED, np.ones(4)) == 3.0
    assert relays_by_rate(RELAYS, WANTED, np.array([1.0, 0.0, 3.0, 100.0])) == 21 / 4
    assert math.isnan(relays_by_rate(RELAYS, np.zeros(4, int), np.ones(4)))


def test_the_share_that_is_lost_on_the_most_popular_topics() -> None:
    rates = np.array([1.0, 2.0, 1.0, 5.0])
    assert share_uninterested(RELAYS, WANTED, rates, 1) == 0.0
    assert share_uninterested(RELAYS, WANTED, rates, 2) == 3 / (3 + 18 + 5)
    assert share_uninterested(RELAYS, WANTED, rates, 3) == 9 / (9 + 18 + 5 + 1)
