"""Measures of the trees that carry each topic's events, by topics and their rates (Magnet §4).

A tree's relays are its nodes that do not want the topic, the home included: whatever is published, they are
handed every event. One event on each topic counts the same nodes, so `relays_per_topic` is `traffic`'s. What
is here weighs topics by how many events they have, which no events need to be spread for.
"""

from __future__ import annotations

import numpy as np

from topicweave.measures.columns import ratio
from topicweave.model.arrays import FloatArray, IntArray


def relays_by_rate(relays: IntArray, wanted: IntArray, rates: FloatArray) -> float:
    """Relays that an event has, when topics have events at these rates. By topic: relays, subscribers, rates;
    topics that nobody wants do not count.
    """
    used = wanted > 0
    return ratio(float((relays * rates)[used].sum()), float(rates[used].sum()))


def share_uninterested(relays: IntArray, wanted: IntArray, rates: FloatArray, topics: int) -> float:
    """The share of all messages that goes to uninterested nodes, of so many of the most popular topics.

    Of all nodes of the trees, as the paper counts. `traffic.noise` is of first receptions: without the
    publisher, to whom its own event comes back.
    """
    order = np.argsort(-wanted, kind="stable")[:topics]
    lost = (rates * relays)[order].sum()
    return ratio(float(lost), float(lost + (rates * wanted)[order].sum()))
