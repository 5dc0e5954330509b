"""What goes wrong on purpose: each fault does what it says, as often as it says, for as long as it says."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pytest

from topicweave.errors import BadInput
from topicweave.sim.faults import (
    SECOND_COPY,
    Crash,
    Duplication,
    Fault,
    FaultyLinks,
    LinkFault,
    Loss,
    Partition,
    Reordering,
    SlowNode,
)
from topicweave.sim.latency import Constant
from topicweave.testing.toys import Note, Toys

TIMES = 10_000
DELAY = 0.25


def links(*faults: LinkFault) -> FaultyLinks:
    faulty = FaultyLinks(random.Random("faults"))
    for fault in faults:
        faulty.begin(fault)
    return faulty


def fates(faulty: FaultyLinks, times: int = TIMES) -> list[list[float]]:
    return [list(faulty.fates(0, 1)) for _ in range(times)]


def near(count: int, share: float) -> bool:
    """Within four standard deviations of `share` of all times."""
    return abs(count - TIMES * share) < 4 * math.sqrt(TIMES * share * (1 - share))


# One by one.


def test_without_faults_each_message_arrives_once_and_in_time() -> None:
    faulty = links()
    assert not faulty
    assert list(faulty.fates(0, 1)) == [0.0]


@pytest.mark.parametrize("share", [0.05, 0.3, 0.9])
def test_loss_loses_its_share(share: float) -> None:
    counts = Counter(map(tuple, fates(links(Loss(0, 1, share)))))
    assert set(counts) == {(), (0.0,)}
    assert near(counts[()], share)


def test_loss_at_its_ends() -> None:
    assert fates(links(Loss(0, 1, 0.0)), 100) == [[0.0]] * 100
    assert fates(links(Loss(0, 1, 1.0)), 100) == [[]] * 100


def test_loss_of_some_nodes_spares_the_others() -> None:
    faulty = links(Loss(0, 1, 1.0, frozenset({1, 2})))
    arrives = {
        (source, target): bool(faulty.fates(source, target)) for source in range(4) for target in range(4)
    }
    assert arrives == {(source, target): {source, target} <= {0, 3} for source, target in arrives}


@pytest.mark.parametrize("share", [0.05, 0.3, 0.9])
def test_duplication_adds_one_later_copy(share: float) -> None:
    got = fates(links(Duplication(0, 1, share)))
    assert near(sum(len(copies) == 2 for copies in got), share)
    assert all(copies[0] == 0.0 and len(copies) <= 2 for copies in got)
    later = [copies[1] for copies in got if len(copies) == 2]
    assert all(0.0 < delay <= SECOND_COPY for delay in later)
    assert max(later) > 0.9 * SECOND_COPY


def test_reordering_holds_back_its_share_for_up_to_its_delay() -> None:
    got = fates(links(Reordering(0, 1, 0.4, delay=2.0)))
    assert all(len(copies) == 1 for copies in got)
    held = [copies[0] for copies in got if copies[0] > 0.0]
    assert near(len(held), 0.4)
    assert max(held) <= 2.0
    assert abs(sum(held) / len(held) - 1.0) < 0.05


def test_a_partition_drops_what_crosses_it_either_way_and_nothing_else() -> None:
    faulty = links(Partition(0, 1, frozenset({0, 1})))
    passes = {(a, b): list(faulty.fates(a, b)) == [0.0] for a in range(4) for b in range(4)}
    assert passes == {(a, b): (a < 2) == (b < 2) for a in range(4) for b in range(4)}


def test_a_slow_node_is_slow_to_send_and_to_be_sent_to() -> None:
    faulty = links(SlowNode(0, 1, node=2, delay=0.7))
    assert [list(faulty.fates(a, b)) for a, b in [(0, 1), (2, 1), (1, 2)]] == [[0.0], [0.7], [0.7]]


def test_faults_add_up() -> None:
    slow = links(SlowNode(0, 1, 0, 0.5), SlowNode(0, 1, 1, 0.25), Duplication(0, 1, 1.0))
    first, second = slow.fates(0, 1)
    assert first == 0.75 < second <= 0.75 + SECOND_COPY
    assert fates(links(Loss(0, 1, 1.0), Duplication(0, 1, 1.0)), 10) == [[]] * 10
    twice = links(Loss(0, 1, 0.5), Loss(0, 1, 0.5))
    assert near(sum(not copies for copies in fates(twice)), 0.75)


def test_ending_one_of_two_equal_faults_leaves_the_other() -> None:
    faulty = links(Loss(0, 1, 1.0), Loss(0, 1, 1.0))
    faulty.end(Loss(0, 1, 1.0))
    assert faulty
    assert list(faulty.fates(0, 1)) == []
    faulty.end(Loss(0, 1, 1.0))
    assert not faulty


# In a simulation.


def talk(faults: list[Fault], seconds: int = 10, seed: int = 0) -> dict[int, list[float]]:
    """Node 0 and each other node write to each other at every full second.

    Returns when node i heard from node 0, and under -i when node 0 heard from node i.
    """
    toys = Toys(4, faults=faults, latency=Constant(DELAY), seed=seed)
    for second in range(seconds):
        for peer in (1, 2, 3):
            toys.send(second, 0, peer, Note("out"))
            toys.send(second, peer, 0, Note(f"{peer}"))
    toys.run(seconds + 20)
    heard = {peer: [time for time, _ in toys.node(peer).noted("message")] for peer in (1, 2, 3)}
    for time, (_, message) in toys.node(0).noted("message"):
        heard.setdefault(-int(message.text), []).append(time)
    return heard


EVERY_SECOND = [second + DELAY for second in range(10)]


def test_nothing_is_wrong_without_faults() -> None:
    assert talk([]) == dict.fromkeys((1, 2, 3, -1, -2, -3), EVERY_SECOND)


def test_a_partition_in_time_heals() -> None:
    """It acts on what is sent while it is in force; its end is not part of it any more, its start is."""
    heard = talk([Partition(3.0, 6.0, frozenset({1}))])
    outside = [time for time in EVERY_SECOND if not 3 <= time < 6]
    assert heard == {1: outside, -1: outside, **dict.fromkeys((2, 3, -2, -3), EVERY_SECOND)}


def test_loss_in_time() -> None:
    heard = talk([Loss(3.0, 6.0, 1.0)])
    outside = [time for time in EVERY_SECOND if not 3 <= time < 6]
    assert heard == dict.fromkeys(heard, outside)


def test_a_slow_node_in_time() -> None:
    heard = talk([SlowNode(3.0, 6.0, node=1, delay=0.5)])
    late = [time + 0.5 * (3 <= time < 6) for time in EVERY_SECOND]
    assert heard == {1: late, -1: late, **dict.fromkeys((2, 3, -2, -3), EVERY_SECOND)}


def test_duplicates_arrive_after_their_originals() -> None:
    heard = talk([Duplication(0.0, 100.0, 1.0)])
    for times in heard.values():
        assert times[::2] == EVERY_SECOND
        assert all(
            0 < again - time <= SECOND_COPY for time, again in zip(times[::2], times[1::2], strict=True)
        )


def test_reordering_lets_messages_overtake_each_other() -> None:
    toys = Toys(2, faults=[Reordering(0.0, 100.0, 0.5, delay=5.0)])
    for second in range(20):
        toys.send(second, 0, 1, Note(f"{second:02}"))
    toys.run(100.0)
    texts = [message.text for _, (_, message) in toys.node(1).noted("message")]
    assert len(texts) == 20
    assert texts != sorted(texts)
    assert sorted(texts) == [f"{second:02}" for second in range(20)]


def test_faults_replay_from_the_seed() -> None:
    faults: list[Fault] = [Loss(0.0, 10.0, 0.4), Duplication(2.0, 8.0, 0.5), Reordering(0.0, 10.0, 0.5, 2.0)]
    assert talk(faults, seed=1) == talk(faults, seed=1)
    assert talk(faults, seed=1) != talk(faults, seed=2)


def test_a_fault_of_no_length_begins_and_ends() -> None:
    heard = talk([Loss(3.0, 3.0, 1.0)])
    assert heard == dict.fromkeys(heard, EVERY_SECOND)


# What is refused.


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Loss(5.0, 4.0, 0.1), r"Loss\(start=5.0, end=4.0, .*: a fault needs 0 <= start <= end"),
        (lambda: Crash(-1.0, 4.0, 0, False), "needs 0 <= start"),
        (lambda: Partition(math.nan, 4.0, frozenset()), "needs 0 <= start"),
        (lambda: Loss(0.0, 1.0, 1.1), "Loss.*: a probability lies between 0 and 1"),
        (lambda: Duplication(0.0, 1.0, -0.1), "Duplication.*: a probability lies between 0 and 1"),
        (lambda: Reordering(0.0, 1.0, math.nan, 1.0), "Reordering.*: a probability lies between 0 and 1"),
        (lambda: Reordering(0.0, 1.0, 0.5, -1.0), "Reordering.*: a delay is 0 or more seconds"),
        (lambda: SlowNode(0.0, 1.0, 0, math.inf), "SlowNode.*: a delay is 0 or more seconds"),
    ],
)
def test_impossible_faults_are_refused(make: Any, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        make()


@pytest.mark.parametrize(
    "fault",
    [
        Crash(0.0, 1.0, 4, False),
        Crash(0.0, 1.0, -1, False),
        SlowNode(0.0, 1.0, 4, 1.0),
        Partition(0.0, 1.0, frozenset({0, 4})),
    ],
)
def test_a_plan_for_nodes_that_do_not_exist_is_refused(fault: Fault) -> None:
    with pytest.raises(BadInput, match=r"^fault .*no node number (4|-1); the workload has 0 to 3"):
        Toys(4, faults=[fault])
