"""Whole nodes, two or three at a time: what they say to each other and what becomes of it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.systems.spidercast.lab import Lab
from topicweave.blocks.broadcast_tree import Push
from topicweave.blocks.interest_news import InterestChange
from topicweave.blocks.label_table import LabelTable, Lifetime, labels_of
from topicweave.model.event import Event
from topicweave.model.ids import NodeId, TopicId
from topicweave.port import Link, Message
from topicweave.systems.spidercast.messages import (
    Connect,
    ConnectOk,
    Disconnect,
    DisconnectNo,
    DisconnectOk,
    Heartbeat,
    InterestQuery,
    InterestUpdate,
    Leave,
    Redirect,
    TaskState,
)
from topicweave.systems.spidercast.node import degree_limit
from topicweave.systems.spidercast.parameters import LinkParameters
from topicweave.testing import Sent
from topicweave.testing.bench import LATENCY

NEWS, SPORT, JAZZ = 101, 102, 103


def couple(**parameters: float) -> Lab:
    """Nodes 1 and 2, linked over NEWS."""
    lab = Lab(seed=0, **parameters)
    lab.add(1, NEWS)
    lab.add(2, NEWS)
    lab.run_for(5.0)
    return lab


# Links come.


def test_two_nodes_with_a_common_topic_connect() -> None:
    lab = couple()
    assert lab.linked(1, 2) == (True, True)
    assert len(lab.sent(Connect)) == len(lab.sent(ConnectOk))
    assert list(lab.nodes[1].links()) == [Link(2, "greedy")]
    assert lab.nodes[1].degree == 1


def test_nodes_without_a_common_topic_do_not() -> None:
    lab = Lab()
    lab.add(1, NEWS)
    lab.add(2, SPORT)
    lab.run_for(5.0)
    assert lab.sent(Connect) == []


def test_a_refused_node_connects_to_the_one_it_was_redirected_to() -> None:
    lab = Lab(margin=0, k_greedy=1)
    for node in (1, 2):
        lab.add(node, NEWS)
    lab.run_for(2.0)
    assert lab.linked(1, 2) == (True, True)
    # Both are full, but node 1 thinks that 2 has room.
    lab.lose = lambda sent: isinstance(sent.message, Heartbeat)
    lab.run_for(2 * LATENCY)
    lab.tell(2, 1, Heartbeat(0, (TaskState("greedy", 1, 2),)))
    newcomer = lab.add(3, NEWS)
    newcomer.view.lost(2)  # it knows of node 1 only
    lab.run_for(1.0)
    assert lab.sent(Redirect, 1, 3) == [Redirect("greedy", 2)]
    assert [entry.receiver for entry in lab.log if entry.sender == 3 and isinstance(entry.message, Connect)][
        :2
    ] == [1, 2]


def test_an_unanswered_connect_is_reported_to_the_view() -> None:
    lab = Lab()
    node = lab.add(1, NEWS)
    lab.directory.put(2, frozenset({NEWS}))  # nobody is there
    lab.run_for(4.0)
    assert node.view.peers() == [2]
    lab.run_for(3.0)
    assert node.view.peers() == []
    assert len(lab.sent(Connect, 1, 2)) == 1


def test_a_full_node_lets_the_late_answer_go() -> None:
    """CONNECT-OK to a node that has filled up meanwhile: LEAVE, and no link at either end."""
    lab = Lab(margin=0, k_greedy=1)
    lab.add(1, NEWS)
    lab.tell(8, 1, Connect("greedy", 0, 1, 0, frozenset({NEWS})))
    lab.tell(9, 1, ConnectOk("greedy", 0, 1, 0, frozenset({NEWS})))
    assert lab.sent(Leave, 1, 9) == [Leave("greedy")]
    assert [link.peer for link in lab.nodes[1].links()] == [8]


def test_a_node_does_not_connect_to_itself() -> None:
    lab = Lab()
    node = lab.add(1, NEWS)
    lab.run_for(2.0)
    lab.tell(1, 1, Connect("greedy", 0, 3, 0, frozenset({NEWS})))
    lab.tell(1, 1, ConnectOk("greedy", 0, 3, 0, frozenset({NEWS})))
    assert list(node.links()) == []
    assert lab.sent(Connect) == []


# Links go.


def test_superfluous_links_are_given_up_and_needed_ones_kept() -> None:
    lab = Lab(k_greedy=1)
    for node in range(1, 7):
        lab.add(node, NEWS, SPORT)
    for node in range(1, 7):  # everybody links to everybody
        for peer in range(1, 7):
            if node != peer:
                lab.tell(peer, node, ConnectOk("greedy", 5, 5, 0, frozenset({NEWS, SPORT})))
    lab.run_for(20.0)
    ends = [(node, link.peer) for node in lab.nodes for link in lab.nodes[node].links()]
    assert 6 <= len(ends) < 20
    assert all((peer, node) in ends for node, peer in ends)
    assert all(lab.nodes[node].degree >= 1 for node in lab.nodes)
    assert lab.sent(DisconnectOk)


def test_parting_asks_for_consent() -> None:
    lab = Lab(k_greedy=1)
    lab.add(1, NEWS)
    lab.add(2, NEWS)
    lab.run_for(2.0)
    lab.tell(2, 1, Disconnect("greedy"))
    assert lab.sent(DisconnectNo, 1, 2)
    assert lab.linked(1, 2) == (True, True)


def test_an_orderly_leave_ends_all_links_at_once() -> None:
    lab = couple()
    lab.add(3, NEWS)
    lab.run_for(5.0)
    before = lab.now
    lab.leave(1)
    lab.run_for(2 * LATENCY)
    assert [
        entry.receiver for entry in lab.log if isinstance(entry.message, Leave) and entry.time >= before
    ] == [2, 3]
    for node in (2, 3):
        assert 1 not in lab.nodes[node].known_peers()
        assert lab.linked(node, 1)[0] is False
    assert lab.linked(2, 3) == (True, True)


def test_a_silent_neighbour_is_suspected_and_forgotten() -> None:
    lab = couple()
    lab.add(3, NEWS)
    lab.run_for(3.0)
    lab.crash(1)
    lab.run_for(lab.parameters.suspect_after - 0.5)
    assert 1 in lab.nodes[2].known_peers()
    lab.run_for(2.0)
    assert 1 not in lab.nodes[2].known_peers()
    assert not any(1 in key for key in lab.worlds[2].pending)
    assert lab.linked(2, 3) == (True, True)


def test_a_broken_connection_is_as_good_as_a_suspicion() -> None:
    lab = couple()
    lab.nodes[1].peer_lost(2)
    assert list(lab.nodes[1].links()) == []
    assert lab.nodes[1].view.peers() == []


# What gets lost is set right.


@pytest.mark.parametrize("kind", [ConnectOk, Connect, Leave, DisconnectOk])
def test_links_are_symmetric_again_after_a_loss(kind: type[Message]) -> None:
    lab = Lab(seed=3, k_greedy=1)
    lost: list[Sent] = []

    def first_of_its_kind(sent: Sent) -> bool:
        if isinstance(sent.message, kind) and len(lost) < 3:
            lost.append(sent)
            return True
        return False

    lab.lose = first_of_its_kind
    for node in range(1, 7):
        lab.add(node, NEWS, SPORT)
        lab.run_for(1.0)
    lab.leave(6)
    lab.run_for(15.0)
    assert lost or kind is DisconnectOk
    ends = {(node, link.peer) for node in lab.nodes for link in lab.nodes[node].links()}
    assert all((peer, node) in ends for node, peer in ends)
    assert all(lab.nodes[node].degree for node in lab.nodes)


def test_a_one_sided_link_is_ended_by_the_next_heartbeat() -> None:
    lab = Lab()
    lab.add(1, NEWS)
    lab.add(2, SPORT)
    lab.tell(2, 1, ConnectOk("greedy", 0, 3, 0, frozenset({NEWS})))
    assert lab.linked(1, 2) == (True, False)
    lab.run_for(1.0 + 2 * LATENCY)
    assert lab.sent(Leave, 2, 1)
    assert lab.linked(1, 2) == (False, False)


# Interests change.


def test_a_new_topic_makes_new_links() -> None:
    lab = Lab()
    lab.add(1, NEWS)
    lab.add(2, SPORT)
    lab.run_for(3.0)
    lab.nodes[1].subscribe(SPORT)
    lab.run_for(3.0)
    assert lab.linked(1, 2) == (True, True)
    assert lab.nodes[2].tasks["greedy"].neighbours[1].interest == {NEWS, SPORT}


def test_neighbours_learn_of_a_change_and_drop_a_useless_link() -> None:
    lab = couple()
    lab.nodes[1].unsubscribe(NEWS)
    lab.run_for(2 * LATENCY)
    assert lab.nodes[2].tasks["greedy"].neighbours[1].interest == frozenset()
    assert lab.nodes[2].tasks["greedy"].selection.lacking() == 1
    lab.run_for(5.0)
    assert lab.linked(1, 2) == (False, False)


def test_an_interest_of_another_version_is_asked_for() -> None:
    lab = couple()
    lab.lose = lambda sent: isinstance(sent.message, (InterestUpdate, InterestChange))
    lab.nodes[1].subscribe(SPORT)
    lab.run_for(2 * LATENCY)
    lab.lose = lambda sent: False
    assert lab.nodes[2].tasks["greedy"].neighbours[1].interest == {NEWS}
    lab.run_for(1.5)
    assert lab.sent(InterestQuery, 2, 1)
    assert lab.nodes[2].tasks["greedy"].neighbours[1].interest == {NEWS, SPORT}
    asked = len(lab.sent(InterestQuery))
    lab.run_for(5.0)
    assert len(lab.sent(InterestQuery)) == asked


def test_strangers_get_no_interest() -> None:
    """A few bytes must not buy a long answer to wherever they claim to come from."""
    lab = couple()
    lab.tell(99, 1, InterestQuery())
    lab.tell(99, 1, InterestUpdate(3, frozenset({NEWS})))
    assert lab.sent(InterestUpdate, 1, 99) == []
    assert 99 not in lab.nodes[1].known_peers()


# Restarts.


def test_a_restart_with_memory_goes_on_where_it_stopped() -> None:
    lab = couple()
    lab.nodes[1].publish(NEWS, b"before")
    lab.run_for(1.0)
    memory = lab.crash(1)
    lab.run_for(1.0)  # too short to be noticed
    lab.restart(memory)
    lab.run_for(3.0)
    assert lab.linked(1, 2) == (True, True)
    lab.nodes[1].publish(NEWS, b"after")
    lab.run_for(1.0)
    assert [(event.sequence, event.payload) for event in lab.worlds[2].delivered] == [
        (0, b"before"),
        (1, b"after"),
    ]
    assert len({event.epoch for event in lab.worlds[2].delivered}) == 1


def test_a_restart_with_memory_after_everybody_forgot() -> None:
    lab = couple()
    memory = lab.crash(1)
    lab.run_for(10.0)
    lab.restart(memory)
    lab.run_for(15.0)
    assert lab.linked(1, 2) == (True, True)


def test_a_restart_without_memory_begins_a_new_epoch() -> None:
    lab = couple()
    lab.nodes[1].publish(NEWS, b"before")
    lab.run_for(1.0)
    lab.crash(1)
    lab.run_for(1.0)
    lab.add(1, NEWS)
    lab.run_for(15.0)
    assert lab.linked(1, 2) == (True, True)
    lab.nodes[1].publish(NEWS, b"after")
    lab.run_for(1.0)
    before, after = lab.worlds[2].delivered
    assert (before.sequence, after.sequence) == (0, 0)
    assert before.epoch < after.epoch


# Events.


def test_subscribers_get_an_event_once_and_the_publisher_its_own() -> None:
    lab = Lab()
    for node in range(1, 8):
        lab.add(node, NEWS, *([SPORT] if node > 3 else []))
    lab.run_for(10.0)
    receipt = lab.nodes[1].publish(NEWS, b"hello")
    lab.nodes[4].publish(SPORT, b"goal")
    lab.run_for(3.0)
    assert receipt.sent_to > 0
    for node in range(1, 8):
        expected = [b"hello"] + [b"goal"] * (node > 3)
        assert sorted(event.payload for event in lab.worlds[node].delivered) == sorted(expected)
    assert lab.noise == []


def test_who_publishes_without_wanting_joins_the_topic_for_a_while() -> None:
    lab = couple()
    lab.add(3, SPORT)
    lab.run_for(2.0)
    receipt = lab.nodes[3].publish(NEWS, b"from outside")
    assert receipt.sent_to == 0
    assert receipt.reason
    lab.run_for(3.0)
    for node in (1, 2):
        assert [event.payload for event in lab.worlds[node].delivered] == [b"from outside"]
    assert lab.worlds[3].delivered == []
    assert lab.nodes[3].subscriptions == {SPORT}
    assert lab.linked(3, 1) == (True, True)
    lab.run_for(lab.parameters.publisher_interest + 10)
    assert lab.nodes[3].degree == 0
    assert not any(key[0] == "publishing" for key in lab.worlds[3].pending)


def test_publishing_again_prolongs_the_stay() -> None:
    lab = couple()
    lab.add(3, SPORT)
    lab.nodes[3].publish(NEWS)
    lab.run_for(lab.parameters.publisher_interest - 1)
    lab.nodes[3].publish(NEWS)
    lab.run_for(lab.parameters.publisher_interest - 1)
    assert lab.linked(3, 1) == (True, True)


def test_a_publisher_that_subscribes_stays() -> None:
    lab = couple()
    lab.add(3, SPORT)
    lab.nodes[3].publish(NEWS)
    lab.run_for(1.0)
    lab.nodes[3].subscribe(NEWS)
    lab.run_for(lab.parameters.publisher_interest + 5)
    lab.nodes[1].publish(NEWS, b"hello")
    lab.run_for(2.0)
    assert [event.payload for event in lab.worlds[3].delivered] == [b"hello"]


def test_resumed_numbering() -> None:
    lab = couple()
    lab.nodes[1].resume(77, {NEWS: 5})
    assert lab.nodes[1].publish(NEWS).event == Event(1, NEWS, 77, 5, b"")


# Peers that make things up.


def everything(task: str) -> list[Message]:
    return [
        Connect(task, 0, 1, 0, frozenset({NEWS})),
        ConnectOk(task, 0, 1, 0, frozenset({NEWS})),
        Redirect(task, 99),
        Disconnect(task),
        DisconnectOk(task),
        DisconnectNo(task),
        Leave(task),
        Heartbeat(0, (TaskState(task, 1, 1),)),
    ]


def test_a_task_that_does_not_exist_is_ignored() -> None:
    lab = couple()
    before, sent = list(lab.nodes[1].links()), len(lab.log)
    for message in everything("no-such-task"):
        lab.tell(99, 1, message)
    assert len(lab.log) == sent
    assert list(lab.nodes[1].links()) == before
    assert 99 not in lab.nodes[1].known_peers()


@pytest.mark.parametrize("sender", [2, 99])
def test_no_message_at_a_wrong_time_does_harm(sender: int) -> None:
    lab = couple()
    for task in ("greedy", "random"):
        for message in [
            *everything(task),
            InterestQuery(),
            InterestUpdate(9, frozenset({SPORT})),
            Leave(gone=True),
        ]:
            lab.tell(sender, 1, message)
            lab.run_for(0.01)
    lab.run_for(20.0)
    assert lab.linked(1, 2) == (True, True)
    assert lab.nodes[1].known_peers() == {2}


def test_made_up_neighbours_fill_no_more_than_the_room_and_are_forgotten() -> None:
    lab = couple(bridges=8)
    node = lab.nodes[1]
    huge = frozenset(range(2000))
    for stranger in range(1000, 1300):
        for task in node.tasks:
            lab.tell(stranger, 1, Connect(task, -5, 10**9, stranger, huge))
            lab.tell(stranger, 1, Redirect(task, stranger + 5000))
            lab.tell(
                stranger, 1, Heartbeat(1, (TaskState(task, 0, 0),) * 50, claim(stranger, node.subscriptions))
            )
    for kept in node.tasks.values():
        assert len(kept.neighbours) <= kept.selection.limit() + node.parameters.margin
    assert node.degree <= degree_limit(node)
    assert len(node.known_peers()) <= degree_limit(node) + 2
    lab.run_for(60.0)
    assert node.known_peers() == {2}
    assert lab.linked(1, 2) == (True, True)


def test_a_long_list_of_states_does_not_buy_as_many_answers() -> None:
    lab = couple()
    lab.tell(99, 1, Heartbeat(0, (TaskState("greedy", 1, 1),) * 1000))
    assert len(lab.sent(Leave, 1, 99)) <= len(lab.nodes[1].tasks)


def claim(leader: NodeId, topics: Iterable[TopicId]) -> LabelTable:
    """A table that names somebody as the lowest in all these topics."""
    return labels_of(frozenset(topics), leader, Lifetime(30.0)).tell(frozenset(topics), 0.0)


def test_nobody_listens_to_beacons_of_strangers_or_without_bridges() -> None:
    for bridges, sender, heard in ((0, 2, False), (8, 99, False), (8, 2, True)):
        lab = couple(bridges=bridges)
        lab.tell(sender, 1, Heartbeat(0, (TaskState("greedy", 1, 1),), claim(0, lab.nodes[1].subscriptions)))
        assert (0 in lab.nodes[1].known_peers()) is heard


def test_made_up_events_go_nowhere() -> None:
    lab = couple()
    lab.tell(2, 1, Push(Event(9, JAZZ, 1, 0, b""), 1))
    lab.run_for(1.0)
    assert lab.worlds[1].delivered == []
    assert lab.sent(Push) == []


# Mending.


def split(lab: Lab, left: set[int]) -> None:
    lab.lose = lambda sent: (sent.sender in left) != (sent.receiver in left)


@pytest.mark.parametrize("bridges", [0, 8])
def test_parts_that_cover_themselves_meet_again_through_bridges_only(bridges: int) -> None:
    lab = Lab(bridges=bridges, k_greedy=1)
    split(lab, {1, 2, 3})
    for node in range(1, 7):
        lab.add(node, NEWS)
    lab.run_for(20.0)
    lab.lose = lambda sent: False
    lab.run_for(60.0)
    lab.nodes[1].publish(NEWS, b"all")
    lab.run_for(3.0)
    got = {node for node, world in lab.worlds.items() if world.delivered}
    assert got == (set(range(1, 7)) if bridges else {1, 2, 3})
    bridge = [link for node in lab.nodes.values() for link in node.links() if link.kind == "bridge"]
    assert bool(bridge) == bool(bridges)


def test_an_introduction_is_followed_whatever_bridges_there_are() -> None:
    lab = Lab(bridges=1, margin=0)
    node = lab.add(1, NEWS)
    for peer in (11, 12):
        node._introduced(NEWS, peer, peer)
        lab.run_for(1.0)
        assert lab.sent(Connect, 1, peer)
        assert not lab.sent(Leave, 1)
        lab.tell(peer, 1, ConnectOk("bridge", 1, 1, 1, frozenset({NEWS})))
    assert list(node.links()) == [Link(12, "bridge")]
    assert lab.sent(Leave, 1, 11)


def test_a_node_between_many_parts_keeps_its_link_to_each() -> None:
    """Each may be the only one."""
    lab = Lab(bridges=LinkParameters().bridges)
    node, parts = lab.add(1, NEWS), range(11, 31)
    for peer in parts:
        node._introduced(NEWS, peer, peer)
        lab.run_for(0.1)
        lab.tell(peer, 1, ConnectOk("bridge", 1, 1, 1, frozenset({NEWS})))
    assert list(node.links()) == [Link(peer, "bridge") for peer in parts]
    assert not lab.sent(Leave, 1)


def test_heartbeats_without_beacons_are_made_once() -> None:
    """A message made once is measured and encoded once; that is most of what a quiet network does."""
    lab = Lab(k_greedy=3)
    for node in range(1, 5):
        lab.add(node, NEWS)
    lab.run_for(20.0)
    lab.log.clear()
    lab.run_for(1.0)
    beats = lab.sent(Heartbeat, sender=1)
    assert len(beats) == lab.nodes[1].degree == 3
    assert len({id(beat) for beat in beats}) == 1


def test_beacons_name_the_topics_shared_with_each_neighbour() -> None:
    lab = Lab(bridges=8)
    lab.add(1, NEWS, SPORT, JAZZ)
    lab.add(2, NEWS, SPORT)
    lab.add(3, JAZZ)
    lab.run_for(10.0)
    for receiver, shared in ((2, {NEWS, SPORT}), (3, {JAZZ})):
        assert lab.sent(Heartbeat, 1, receiver)[-1].labels == claim(1, shared)
    told = lab.sent(Heartbeat, 2, 1)[-1].labels
    assert told is not None
    assert told.leaders == (1,)


# Adaptive coverage.


def test_adaptive_nodes_raise_k_random_when_all_want_the_same() -> None:
    lab = Lab(adaptive=True)
    for node in range(1, 15):
        lab.add(node, *range(101, 111))
    lab.run_for(20.0)
    assert any(node.gauges()["k_random"] > 0 for node in lab.nodes.values())
    assert all(node.gauges()["k_random"] <= 4 for node in lab.nodes.values())
    raised = next(node for node in lab.nodes.values() if node.gauges()["k_random"] > 0)
    assert raised.tasks["random"].selection.lacking() == 0


def test_a_quiet_network_says_nothing_but_heartbeats() -> None:
    lab = Lab(seed=1, k_greedy=2)
    for node in range(1, 25):
        lab.add(node, 200 + node % 3, 300 + node % 4, 400 + node % 5)
    lab.run_for(40.0)
    lab.log.clear()
    lab.run_for(30.0)
    assert {type(entry.message) for entry in lab.log} == {Heartbeat}
