"""Delivery measures against plain Python, which takes the definitions word for word."""

import math
import statistics
from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.measures.builders import churn_table, subscriptions_table, telemetry_table
from tests.measures.test_uptime import Changes, churns, is_up
from topicweave.measures import delivery, traffic
from topicweave.measures.delivery import Receptions
from topicweave.measures.interests import Interests
from topicweave.measures.uptime import Uptime

pytestmark = pytest.mark.filterwarnings("error")

NODES = ["a", "b", "c", "d", "e"]
TOPICS = ["x", "y", "z"]


class Publish(NamedTuple):
    event: int
    topic: str
    node: str
    time: float


class Reception(NamedTuple):
    event: int
    node: str
    time: float
    hops: int
    sender: str
    wanted: bool


@dataclass(frozen=True)
class Run:
    wants: set[tuple[str, str]]
    publishes: list[Publish]
    received: list[Reception]

    def receptions(self) -> Receptions:
        return Receptions.of(
            telemetry_table("publishes", self.publishes), telemetry_table("deliveries", self.received)
        )

    def interests(self) -> Interests:
        return Interests.of(subscriptions_table(self.wants))

    # The definitions, word for word.

    def events(self) -> dict[int, Publish]:
        return {publish.event: publish for publish in self.publishes}

    def measured(self) -> list[Reception]:
        return [one for one in self.received if one.event in self.events()]

    def first(self) -> list[Reception]:
        firsts: dict[tuple[int, str], Reception] = {}
        for one in self.measured():
            if one.node == self.events()[one.event].node:
                continue
            known = firsts.get((one.event, one.node))
            if known is None or one.time < known.time:
                firsts[one.event, one.node] = one
        return list(firsts.values())

    def wanted_first(self) -> list[Reception]:
        return [one for one in self.first() if one.wanted]

    def pairs_expected(self) -> set[tuple[int, str]]:
        return {
            (event.event, node)
            for event in self.publishes
            for node, topic in self.wants
            if topic == event.topic and node != event.node
        }


@st.composite
def runs(draw: st.DrawFn) -> Run:
    wants = draw(st.sets(st.tuples(st.sampled_from(NODES), st.sampled_from(TOPICS)), max_size=12))
    some_node, some_time = st.sampled_from([*NODES, "stranger"]), st.integers(0, 8).map(float)
    events = draw(st.lists(st.integers(0, 2**63 - 1), unique=True, max_size=5))
    publishes = [
        Publish(event, draw(st.sampled_from(TOPICS)), draw(some_node), draw(some_time)) for event in events
    ]
    carried = st.sampled_from([*events, 77])  # 77 is published nowhere (or, rarely, is one of the events)
    received = draw(
        st.lists(
            st.builds(Reception, carried, some_node, some_time, st.integers(1, 9), some_node, st.booleans()),
            max_size=30,
        )
    )
    return Run(wants, publishes, received)


def share(values: "list[bool]") -> float:
    return sum(values) / len(values) if values else math.nan


def same(value: float) -> object:
    return pytest.approx(value, nan_ok=True)


@given(runs())
def test_noise(run: Run) -> None:
    receptions = run.receptions()
    assert receptions.traffic.sums.noise == same(share([not one.wanted for one in run.first()]))
    assert receptions.traffic.sums.noise_all == same(share([not one.wanted for one in run.measured()]))
    for repetitions, counted in ((False, run.first()), (True, run.measured())):
        per_node = defaultdict(list)
        for one in counted:
            per_node[one.node].append(not one.wanted)
        shares = {node: share(unwanted) for node, unwanted in per_node.items()}
        mean = statistics.fmean(shares.values()) if shares else math.nan
        assert traffic.noise_node_mean(receptions.traffic, repetitions) == same(mean)
        by_node = traffic.noise_by_node(receptions.traffic, repetitions).tolist()
        assert by_node == [same(shares.get(node, math.nan)) for node in receptions.nodes.to_pylist()]


@given(runs())
def test_duplicates(run: Run) -> None:
    repeated, wanted = len(run.measured()) - len(run.first()), len(run.wanted_first())
    assert run.receptions().traffic.sums.duplicates == same(repeated / wanted if wanted else math.nan)


@given(runs())
def test_relays_per_topic(run: Run) -> None:
    carriers: dict[str, set[str]] = {publish.topic: set() for publish in run.publishes}
    for one in run.first():
        if not one.wanted:
            carriers[run.events()[one.event].topic].add(one.node)
    expected = statistics.fmean(map(len, carriers.values())) if carriers else math.nan
    assert run.receptions().traffic.sums.relays_per_topic == same(expected)


@given(runs())
def test_hops_and_latency(run: Run) -> None:
    receptions, counted = run.receptions(), run.wanted_first()
    hops = [one.hops for one in counted]
    waits = [one.time - run.events()[one.event].time for one in counted]
    assert receptions.traffic.sums.hops_measures == {
        "hops_mean": same(statistics.fmean(hops) if hops else math.nan),
        "hops_max": same(max(hops, default=math.nan)),
    }
    assert delivery.latency_measures(receptions) == {
        "latency_p50": same(statistics.median(waits) if waits else math.nan),
        "latency_p95": same(stats.scoreatpercentile(waits, 95) if waits else math.nan),
        "latency_max": same(max(waits, default=math.nan)),
    }


@given(runs())
def test_fairness(run: Run) -> None:
    handled = [node for one in run.measured() for node in (one.node, one.sender)]
    # Publishers count as well: their names stand in the tables.
    strangers = {one.node for one in run.publishes} | {
        node for one in run.received for node in (one.node, one.sender)
    }
    nodes = sorted({node for node, _ in run.wants} | strangers)
    traffic = [handled.count(node) for node in nodes]
    demand = [sum(1 for _, subscriber in run.pairs_expected() if subscriber == node) for node in nodes]
    if len(set(traffic)) < 2 or len(set(demand)) < 2:
        expected = math.nan
    else:
        expected = stats.pearsonr(traffic, demand).statistic
    assert delivery.fairness(run.receptions(), run.interests()) == same(expected)


@given(runs(), st.sampled_from([0.0, 2.0, math.inf]))
def test_hit_ratio(run: Run, window: float) -> None:
    events = run.events()
    arrived = {(one.event, one.node) for one in run.first() if one.time <= events[one.event].time + window}
    expected = share([pair in arrived for pair in run.pairs_expected()])
    assert delivery.hit_ratio(run.receptions(), run.interests(), window=window) == same(expected)


@settings(max_examples=300)
@given(runs(), churns(), st.sampled_from([0.0, 1.0, 2.5]), st.sampled_from([0.0, 2.0, math.inf]))
def test_hit_ratio_under_churn(run: Run, changes: Changes, grace: float, window: float) -> None:
    events = run.events()

    def up(event: int, node: str) -> bool:
        start, end = events[event].time - grace, events[event].time + window
        instants = [start, *(time for time, _, _ in changes if start <= time <= end), min(end, 1e9)]
        return all(is_up(changes, node, time) for time in instants)

    arrived = {(one.event, one.node) for one in run.first() if one.time <= events[one.event].time + window}
    expected = share([pair in arrived for pair in run.pairs_expected() if up(*pair)])
    interests = run.interests()
    uptime = Uptime(interests.nodes, churn_table(changes))
    measured = delivery.hit_ratio(run.receptions(), interests, uptime, grace=grace, window=window)
    assert measured == same(expected)


def test_latency_counts_those_who_were_there() -> None:
    """b came long before the event, c shortly before it, d after it, and e left before it got it."""
    run = Run(
        {(node, "x") for node in NODES},
        [Publish(1, "x", "a", 100.0)],
        [
            Reception(1, node, time, 1, "a", True)
            for node, time in zip("bcde", (100.5, 101, 103, 104), strict=True)
        ],
    )
    changes = [(50.0, "b", "join"), (95.0, "c", "join"), (102.0, "d", "join"), (103.0, "e", "leave")]
    everyone = pa.array(NODES)
    uptime = Uptime(everyone, churn_table(changes))
    for grace, slowest in ((10.0, 0.5), (0.0, 1.0)):
        there = delivery.of_those_there(run.receptions(), everyone, uptime, grace)
        assert delivery.latency_measures(there)["latency_max"] == slowest


def test_many_events_with_a_large_audience() -> None:
    """More expected pairs than are looked at in one piece."""
    subscribers = [f"n{number:04}" for number in range(3000)]
    wants = subscriptions_table([(node, "t") for node in subscribers])
    publishes = [Publish(event, "t", "n0000", 1.0) for event in range(3000)]
    # Every event reaches its neighbour only.
    received = [Reception(event, "n0001", 2.0, 1, "n0000", True) for event in range(3000)]
    receptions = Run(set(), publishes, received).receptions()
    interests = Interests.of(wants)
    assert delivery.hit_ratio(receptions, interests) == 1 / 2999
    assert delivery.hit_ratio(receptions, interests, Uptime(interests.nodes)) == 1 / 2999


def test_nothing_happened() -> None:
    receptions = Run(set(), [], []).receptions()
    interests = Interests.of(subscriptions_table([]))
    values = [
        delivery.hit_ratio(receptions, interests),
        delivery.hit_ratio(receptions, interests, Uptime(pa.array([], pa.string()))),
        receptions.traffic.sums.noise,
        traffic.noise_node_mean(receptions.traffic),
        receptions.traffic.sums.noise_all,
        receptions.traffic.sums.duplicates,
        receptions.traffic.sums.relays_per_topic,
        delivery.fairness(receptions, interests),
        *receptions.traffic.sums.hops_measures.values(),
        *delivery.latency_measures(receptions).values(),
    ]
    assert all(math.isnan(value) for value in values)


def test_by_hand() -> None:
    """a publishes on x, wanted by a, b, c and e; d relays to c; b hears it twice, a hears it back, e never."""
    run = Run(
        wants={(node, "x") for node in "abce"},
        publishes=[Publish(5, "x", "a", 10.0)],
        received=[
            Reception(5, "b", 10.5, 2, "d", True),
            Reception(5, "b", 10.25, 1, "a", True),
            Reception(5, "d", 10.25, 1, "a", False),
            Reception(5, "c", 11.0, 2, "d", True),
            Reception(5, "a", 10.75, 2, "b", True),
        ],
    )
    receptions = run.receptions()
    assert delivery.hit_ratio(receptions, run.interests()) == 2 / 3
    assert delivery.hit_ratio(receptions, run.interests(), window=0.25) == 1 / 3
    assert receptions.traffic.sums.noise == 1 / 3  # d, of b, c and d
    assert traffic.noise_node_mean(receptions.traffic) == 1 / 3
    assert receptions.traffic.sums.noise_all == 1 / 5
    # Four nodes received something: a, b, c and d.
    assert traffic.noise_node_mean(receptions.traffic, repetitions=True) == 1 / 4
    assert receptions.traffic.sums.duplicates == 1.0  # b's second and a's own, per b's and c's first
    assert receptions.traffic.sums.relays_per_topic == 1.0
    assert receptions.traffic.sums.hops_measures == {"hops_mean": 1.5, "hops_max": 2.0}
    assert delivery.latency_measures(receptions)["latency_p50"] == 0.625
    assert delivery.latency_measures(receptions)["latency_max"] == 1.0


def test_fairness_of_work_in_proportion_to_demand() -> None:
    """Each of three nodes is sent just what it wants, by a publisher outside."""
    topics = {"a": 1, "b": 2, "c": 3}
    run = Run(
        wants={(node, f"t{number}") for node, count in topics.items() for number in range(count)},
        publishes=[Publish(number, f"t{number}", "p", 0.0) for number in range(3)],
        received=[
            Reception(number, node, 1.0, 1, node, True)
            for node, count in topics.items()
            for number in range(count)
        ],
    )
    # Work: 2, 4, 6 and nothing for p; demand: 1, 2, 3 and nothing.
    assert delivery.fairness(run.receptions(), run.interests()) == pytest.approx(1.0)
