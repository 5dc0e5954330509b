"""Whole runs of a toy system: comings and goings, crashes, events, and what the telemetry says of them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from topicweave.blocks.membership import GOSSIP, Membership
from topicweave.blocks.views import FullView, GossipView, ShareView
from topicweave.errors import BadInput
from topicweave.model.event import Event
from topicweave.port import Message
from topicweave.sim.churn import CONTACTS, Change, Churn, always_up
from topicweave.sim.faults import Crash, Duplication, Loss
from topicweave.sim.latency import Constant
from topicweave.sim.network import EVENT_KEYS
from topicweave.sim.simulation import Simulation
from topicweave.telemetry.schema import event_key
from topicweave.testing.toys import TOY, Flyer, Note, ToyNode, Toys, Wave, toy_workload

NEWS, SPORT = 0, 1


# The start, and contacts.


def test_all_start_at_once_unless_told_otherwise() -> None:
    toys = Toys(4)
    assert toys.simulation.up() == []
    toys.run(0.0)
    assert toys.simulation.up() == [0, 1, 2, 3]


def test_a_start_window_spreads_the_starts() -> None:
    toys = Toys(50, churn=always_up(50)._replace(start_window=10.0), seed=3)
    toys.run(5.0)
    assert 10 < len(toys.simulation.up()) < 40
    toys.run(10.0)
    assert sorted(toys.simulation.up()) == list(range(50))
    starts = [toys.hosts[index].up_since for index in toys.simulation.up()]
    assert starts == sorted(starts)
    assert len(set(starts)) == 50


@pytest.mark.parametrize("start_window", [0.0, 5.0])
@pytest.mark.parametrize("nodes", [1, 2, 5, 6, 30])
def test_contacts_are_a_few_others_never_oneself(nodes: int, start_window: float) -> None:
    toys = Toys(nodes, churn=always_up(nodes)._replace(start_window=start_window))
    toys.run(5.0)
    everybody = set(toys.ids)
    for index in range(nodes):
        ((_, contacts),) = toys.node(index).noted("start")
        assert len(set(contacts)) == len(contacts) == min(CONTACTS, nodes - 1)
        assert set(contacts) <= everybody - {toys.ids[index]}


def test_contacts_of_a_latecomer_are_up() -> None:
    churn = Churn(frozenset({0, 1, 2}), (Change(1.0, 2, False), Change(2.0, 3, True)))
    toys = Toys(6, churn=churn)
    toys.run(3.0)
    ((_, contacts),) = toys.node(3).noted("start")
    assert sorted(contacts) == sorted([toys.ids[0], toys.ids[1]])


def test_contacts_are_chosen_evenly() -> None:
    named: dict[int, int] = dict.fromkeys(Toys(30).ids, 0)
    for seed in range(20):
        toys = Toys(30, seed=seed)
        toys.run(0.0)
        for index in range(30):
            for contact in toys.node(index).noted("start")[0][1]:
                named[contact] += 1
    # Each of 30 is named by each of the 29 others with probability 5 / 29, in 20 runs: 100, standard deviation 9.
    assert all(60 < times < 140 for times in named.values())


# Churn.


def test_churn_is_carried_out_and_a_leaver_says_goodbye() -> None:
    churn = Churn(frozenset({0, 1, 2}), (Change(1.0, 3, True), Change(2.0, 0, False), Change(3.0, 0, True)))
    toys = Toys(4, churn=churn)
    toys.run(1.5)
    assert toys.simulation.up() == [0, 1, 2, 3]
    first_life = toys.node(0)
    first_life.links_to = [toys.ids[1]]
    toys.run(2.5)
    assert toys.simulation.up() == [1, 2, 3]
    assert first_life.noted("leave") == [(2.0, None)]
    assert toys.node(1).noted("message") == [(2.05, (toys.ids[0], Note("goodbye")))]
    toys.run(3.5)
    assert toys.simulation.up() == [1, 2, 3, 0]
    assert toys.node(0) is not first_life
    assert toys.hosts[0].up_since == 3.0
    assert toys.simulation.churn_operations == 3


def test_changes_that_change_nothing_do_not_count() -> None:
    churn = Churn(frozenset({0}), (Change(1.0, 0, True), Change(2.0, 1, False), Change(3.0, 1, True)))
    toys = Toys(2, churn=churn)
    toys.run(5.0)
    assert toys.simulation.churn_operations == 1
    assert len(toys.node(0).noted("start")) == 1


@pytest.mark.parametrize(
    "churn",
    [Churn(frozenset({4}), ()), Churn(frozenset(), (Change(1.0, 7, True),)), Churn(frozenset({-1}), ())],
)
def test_churn_of_another_workload_is_refused(churn: Churn) -> None:
    with pytest.raises(BadInput, match=r"^churn: there is no node number (4|7|-1); the workload has 0 to 3"):
        Toys(4, churn=churn)


def test_each_life_may_want_something_else() -> None:
    asked: list[tuple[int, int]] = []

    def interest(index: int, life: int) -> frozenset[int]:
        asked.append((index, life))
        return frozenset({index, 100 + life})

    churn = Churn(frozenset({0, 1}), (Change(1.0, 0, False), Change(2.0, 0, True)))
    toys = Toys(2, churn=churn, interest_of_life=interest)
    toys.run(3.0)
    assert asked == [(0, 0), (1, 0), (0, 1)]
    assert toys.node(0).subscriptions == {0, 101}
    assert toys.simulation.directory.interest_of(toys.ids[0]) == {0, 101}


def test_by_default_a_node_wants_what_the_workload_says() -> None:
    toys = Toys(4)
    toys.run(0.0)
    news, sport = toys.topics
    assert [toys.node(index).subscriptions for index in range(4)] == [{news, sport}, set(), {news}, {sport}]


# Crashes.


def crashed(keeps_memory: bool, **more: Any) -> Toys:
    """Node 0 crashes at 2 and comes back at 5; it had a timer for 6, and a link."""
    toys = Toys(3, faults=[Crash(2.0, 5.0, 0, keeps_memory)], **more)
    toys.run(1.0)
    toys.node(0).links_to = [toys.ids[1]]
    toys.hosts[0].set_timer(("toy",), 5.0)
    return toys


@pytest.mark.parametrize("keeps_memory", [False, True])
def test_a_crash_comes_without_a_word_and_ends(keeps_memory: bool) -> None:
    toys = crashed(keeps_memory)
    before = toys.node(0)
    toys.run(4.9)
    assert toys.simulation.up() == [1, 2]
    assert toys.ids[0] not in toys.simulation.directory
    with pytest.raises(BadInput, match=r"node 'n0' is down at 4.9 s"):
        toys.simulation.node(0)
    toys.run(10.0)
    assert toys.simulation.up() == [1, 2, 0]
    assert toys.ids[0] in toys.simulation.directory
    assert (toys.node(0) is before) == keeps_memory
    assert before.noted("leave") == []
    assert toys.node(1).noted("message") == []
    assert [time for time, _ in toys.node(0).noted("start")] == ([0.0, 5.0] if keeps_memory else [5.0])
    assert toys.node(0).noted("timer") == [], "the timer died with the life"
    assert toys.simulation.churn_operations == 0


def test_a_message_under_way_during_a_short_crash_reaches_the_next_life() -> None:
    toys = Toys(2, faults=[Crash(2.0, 2.5, 1, keeps_memory=False)], latency=Constant(1.0))
    for sent in (0.5, 1.2, 1.6):
        toys.send(sent, 0, 1, Note(f"{sent}"))
    toys.run(10.0)
    assert [time for time, _ in toys.node(1).noted("message")] == [2.6]


def test_crashing_a_node_that_is_down_does_nothing() -> None:
    churn = Churn(frozenset({0}), (Change(4.0, 1, True),))
    toys = Toys(
        2,
        churn=churn,
        faults=[Crash(1.0, 2.0, 1, False), Crash(5.0, 9.0, 1, False), Crash(6.0, 7.0, 1, True)],
    )
    toys.run(3.0)
    assert toys.simulation.up() == [0]
    toys.run(8.0)
    assert toys.simulation.up() == [0]
    toys.run(9.0)
    assert toys.simulation.up() == [0, 1]


@pytest.mark.parametrize("keeps_memory", [False, True])
def test_who_was_to_leave_while_it_was_crashed_does_not_come_back(keeps_memory: bool) -> None:
    toys = crashed(
        keeps_memory, churn=Churn(frozenset({0, 1}), (Change(3.0, 0, False), Change(8.0, 0, True)))
    )
    toys.run(7.0)
    assert toys.simulation.up() == [1]
    toys.run(9.0)
    assert toys.simulation.up() == [1, 0]
    assert toys.node(0).noted("start")[0][0] == 8.0


def test_who_comes_before_its_crash_is_over_starts_afresh_once() -> None:
    churn = Churn(frozenset({0, 1}), (Change(3.0, 0, False), Change(4.0, 0, True)))
    toys = crashed(True, churn=churn)
    toys.run(9.0)
    assert [time for time, _ in toys.node(0).noted("start")] == [4.0]


def test_a_crash_for_ever() -> None:
    toys = Toys(2, faults=[Crash(1.0, float("inf"), 0, True)])
    toys.run(1e9)
    assert toys.simulation.up() == [1]


def test_stopping_what_is_down_gives_nothing() -> None:
    toys = Toys(2)
    assert toys.simulation.stop(0, orderly=True) is None


# What an experiment does.


def test_actions_at_a_moment_happen_if_the_node_is_up_then() -> None:
    toys = Toys(2, churn=Churn(frozenset({0}), ()), record=True)
    simulation = toys.simulation
    for index in (0, 1):
        simulation.at(1.0, simulation.unsubscribe, index, NEWS)
        simulation.at(2.0, simulation.subscribe, index, SPORT)
        simulation.at(3.0, simulation.publish, index, SPORT)
    toys.run(1.5)
    assert toys.node(0).subscriptions == {toys.topics[SPORT]}
    toys.run(5.0)
    assert [time for time, _ in toys.node(0).noted("publish")] == [3.0]
    assert toys.tables().publishes.num_rows == 1


def test_whoever_is_down_cannot_be_asked_at_once() -> None:
    toys = Toys(2, churn=Churn(frozenset({0}), ()))
    toys.run(1.0)
    for action in (toys.simulation.publish, toys.simulation.subscribe, toys.simulation.unsubscribe):
        with pytest.raises(BadInput, match="node 'n1' is down at 1 s"):
            action(1, NEWS)


def test_gauges_are_means_over_those_who_are_up() -> None:
    toys = Toys(4, churn=Churn(frozenset({0, 1}), ()))
    assert toys.simulation.gauges() == {}
    toys.run(0.0)
    toys.node(0).links_to = [toys.ids[1], toys.ids[2], toys.ids[3]]
    assert toys.simulation.gauges() == {"links_to": 1.5}


def test_parameters_default_to_the_systems_own() -> None:
    assert Simulation(toy_workload(1), TOY).parameters == TOY.settings()


@pytest.mark.parametrize(
    ("membership", "view"),
    [(Membership.parse("full"), FullView), (Membership.parse("50%"), ShareView), (GOSSIP, GossipView)],
)
def test_nodes_get_the_view_that_the_membership_says(membership: Membership, view: type) -> None:
    toys = Toys(2, membership=membership)
    toys.run(0.0)
    assert type(toys.node(0).view) is view


# Telemetry.


def rows(table: Any, *columns: str) -> list[tuple[Any, ...]]:
    return list(zip(*(table[column].to_pylist() for column in columns), strict=True))


def test_a_publish_leaves_a_row_and_every_reception_another() -> None:
    toys = Toys(4, record=True, latency=Constant(0.5))
    toys.run(1.0)
    toys.node(0).links_to = [toys.ids[1], toys.ids[2], toys.ids[2], toys.ids[3]]
    event = toys.simulation.publish(0, NEWS, b"x").event
    toys.run(5.0)
    toys.simulation.flush_control()
    tables, key = toys.tables(), event_key(event.id)
    assert rows(tables.publishes, "run", "event", "topic", "node", "time") == [
        ("run", key, "news", "n0", 1.0)
    ]
    receptions = rows(tables.deliveries, "event", "node", "time", "hops", "sender", "wanted")
    assert receptions == [
        (key, "n1", 1.5, 1, "n0", False),
        (key, "n2", 1.5, 1, "n0", True),
        (key, "n2", 1.5, 1, "n0", True),
        (key, "n3", 1.5, 1, "n0", False),
    ]
    assert tables.control.num_rows == 0, "what carries an event is no control"


def test_duplicates_that_the_network_makes_are_receptions_and_lost_messages_are_not() -> None:
    toys = Toys(2, record=True, faults=[Duplication(1.0, 2.0, 1.0), Loss(3.0, 4.0, 1.0)])
    event = Event(1, toys.topics[NEWS], 0, 0)
    toys.send(1.5, 0, 1, Flyer(event, 7))
    toys.send(3.5, 0, 1, Flyer(event, 8))
    toys.send(5.5, 0, 1, Flyer(event, 9))
    toys.run(10.0)
    assert rows(toys.tables().deliveries, "hops") == [(7,), (7,), (9,)]


def test_wanted_is_what_the_receiver_wants_at_that_moment() -> None:
    toys = Toys(2, record=True)
    simulation, event = toys.simulation, Event(1, toys.topics[NEWS], 0, 0)
    simulation.at(2.0, simulation.subscribe, 1, NEWS)
    simulation.at(4.0, simulation.unsubscribe, 1, NEWS)
    for time in (1.0, 3.0, 5.0):
        toys.send(time, 0, 1, Flyer(event, 1))
    toys.run(10.0)
    assert rows(toys.tables().deliveries, "wanted") == [(False,), (True,), (False,)]


def test_what_reaches_nobody_is_no_reception() -> None:
    toys = Toys(2, record=True, churn=Churn(frozenset({0}), ()))
    toys.run(0.0)
    toys.node(0).links_to = [toys.ids[1], 12345]
    toys.simulation.publish(0, NEWS)
    toys.run(5.0)
    assert toys.tables().deliveries.num_rows == 0
    assert toys.tables().publishes.num_rows == 1


def encoded(message: Message) -> int:
    return len(msgspec.msgpack.encode(message))


def test_control_is_counted_by_sender_and_kind_with_the_encoded_size() -> None:
    toys = Toys(3, record=True, faults=[Loss(0.0, 2.0, 1.0)])
    short, long = Note("hi"), Note("a much longer note" * 10)
    for peer in (1, 2):
        toys.send(1.0, 0, peer, short)
    toys.send(1.0, 0, 1, long)
    toys.send(1.0, 0, 1, short)
    toys.send(1.0, 0, 1, Wave())
    toys.send(1.5, 2, 0, Wave())
    toys.run(2.0)
    toys.hosts[1].send(12345, Wave())
    toys.simulation.flush_control()
    columns = ("time", "node", "kind", "messages", "bytes")
    # Lost messages and those to nobody were sent all the same.
    expected = [
        (2.0, "n0", "toy-note", 4, 3 * encoded(short) + encoded(long)),
        (2.0, "n0", "toy-wave", 1, encoded(Wave())),
        (2.0, "n2", "toy-wave", 1, encoded(Wave())),
        (2.0, "n1", "toy-wave", 1, encoded(Wave())),
    ]
    assert rows(toys.tables().control, *columns) == expected
    toys.hosts[1].send(toys.ids[0], short)
    toys.run(3.0)
    toys.simulation.flush_control()
    toys.simulation.flush_control()
    expected.append((3.0, "n1", "toy-note", 1, encoded(short)))
    assert rows(toys.tables().control, *columns) == expected, "each flush tells what came since the last one"


def test_a_snapshot_writes_the_links_of_those_who_are_up_by_node_and_the_control() -> None:
    toys = Toys(
        3, record=True, churn=Churn(frozenset({0, 1, 2}), (Change(1.0, 0, False), Change(2.0, 0, True)))
    )
    toys.run(3.0)
    assert toys.simulation.up() == [1, 2, 0]
    toys.node(0).links_to = [toys.ids[1], toys.ids[2]]
    toys.node(2).links_to = [toys.ids[0]]
    toys.hosts[1].send(toys.ids[0], Wave())
    toys.simulation.snapshot()
    tables = toys.tables()
    assert rows(tables.links, "time", "node", "peer", "kind") == [
        (3.0, "n0", "n1", "toy"),
        (3.0, "n0", "n2", "toy"),
        (3.0, "n2", "n0", "toy"),
    ]
    assert rows(tables.control, "node", "kind") == [("n1", "toy-wave")]


def test_without_telemetry_nothing_is_kept_or_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    toys = Toys(2)
    network = toys.simulation._network
    monkeypatch.setattr(network, "_encode", lambda message: pytest.fail("encoded for nobody"))
    monkeypatch.setattr(network, "_key", lambda event: pytest.fail("hashed for nobody"))
    toys.run(0.0)
    toys.node(0).links_to = [toys.ids[1]]
    toys.simulation.publish(0, NEWS)
    toys.send(1.0, 0, 1, Note("hi"))
    toys.run(5.0)
    toys.simulation.snapshot()
    assert len(toys.node(1).diary) == 3
    assert network._sent == {}


def test_the_keys_at_hand_are_bounded_and_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many events a run has."""
    assert EVENT_KEYS <= 1 << 20
    monkeypatch.setattr("topicweave.sim.network.EVENT_KEYS", 10)
    toys = Toys(2, record=True)
    events = [Event(1, 2, 0, number % 100) for number in range(200)]
    for number, event in enumerate(events):
        toys.send(number, 0, 1, Flyer(event, 1))
    toys.run(300.0)
    assert rows(toys.tables().deliveries, "event") == [(event_key(event.id),) for event in events]
    assert toys.simulation._network._key.cache_info().currsize == 10


def test_recording_changes_nothing_that_happens() -> None:
    def diaries(record: bool) -> list[Any]:
        churn = Churn(frozenset({0, 1, 2}), (Change(1.0, 3, True), Change(6.0, 2, False)))
        faults = [Loss(0.0, 20.0, 0.3), Duplication(0.0, 20.0, 0.3), Crash(3.0, 4.0, 1, True)]
        toys = Toys(4, record=record, churn=churn, faults=faults, seed=5)
        simulation = toys.simulation
        for second in range(1, 15):
            toys.send(second, second % 4, (second + 1) % 4, Note(f"{second}"))
            simulation.at(second, simulation.publish, second % 4, NEWS)
        toys.run(5.0)
        simulation.snapshot()
        toys.run(20.0)
        return [
            node.diary for index in simulation.up() if isinstance(node := simulation.node(index), ToyNode)
        ]

    assert diaries(True) == diaries(False)
