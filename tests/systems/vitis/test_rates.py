"""Publication rates: given, or measured as events come in."""

from __future__ import annotations

from topicweave.systems.vitis.rates import EqualRates, GivenRates, MeasuredRates
from topicweave.testing import VirtualNetwork

MINE, HOT, COLD = frozenset({1, 2}), frozenset({1, 3}), frozenset({2, 3})


def test_given_rates_weigh_topics() -> None:
    rates = GivenRates({1: 9.0, 2: 1.0, 3: 1.0})
    assert rates.utility(MINE, HOT) == 9 / 11
    assert rates.utility(MINE, COLD) == 1 / 11
    assert EqualRates().utility(MINE, HOT) == EqualRates().utility(MINE, COLD)


def test_measured_rates_start_equal_follow_events_and_forget() -> None:
    net = VirtualNetwork()
    rates = MeasuredRates(net.world(1), memory=60.0)
    assert rates.utility(MINE, HOT) == rates.utility(MINE, COLD) == 1 / 3
    for second in range(60):
        net.run(float(second))
        rates.event(1)
    assert rates.revise(MINE)
    assert rates.utility(MINE, HOT) > 2 * rates.utility(MINE, COLD)
    net.run(2000.0)
    assert rates.revise(MINE)
    assert abs(rates.utility(MINE, HOT) - rates.utility(MINE, COLD)) < 0.01


def test_rates_are_looked_at_a_few_times_per_memory() -> None:
    net = VirtualNetwork()
    rates = MeasuredRates(net.world(1), memory=60.0)
    rates.event(1)
    assert not rates.revise(MINE)
    net.run(11.0)
    assert rates.revise(MINE)
    assert not rates.revise(MINE)


def test_topics_no_longer_wanted_are_not_remembered() -> None:
    net = VirtualNetwork()
    rates = MeasuredRates(net.world(1), memory=60.0)
    rates.event(7)
    net.run(11.0)
    rates.revise(MINE)
    assert not rates._averages
