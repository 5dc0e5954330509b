"""One maintenance task on a bench: what it asks, and what it answers (§2.3.1, Figures 2 and 4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.systems.spidercast.lab import Lab, calc_k_uncovered
from tests.systems.spidercast.task_bench import ME, Bench, P
from topicweave.model.ids import NodeId
from topicweave.systems.spidercast.messages import (
    Connect,
    ConnectOk,
    DisconnectNo,
    DisconnectOk,
    Leave,
    Redirect,
    TaskState,
)
from topicweave.systems.spidercast.parameters import LinkParameters
from topicweave.systems.spidercast.selection import BridgeSelection
from topicweave.systems.spidercast.task import MOST_REDIRECTS, REFUSED

OK, NO, LEAVE = DisconnectOk("greedy"), DisconnectNo("greedy"), Leave("greedy")

# CONNECT.


def test_a_lacking_task_asks_who_covers_most() -> None:
    bench = Bench({1, 2, 3}, {10: {1}, 11: {1, 2, 3}, 12: {2, 3, 9}}, k=1)
    assert bench.step() == [(11, Connect("greedy", 0, 3, 7, frozenset({1, 2, 3})))]


def test_a_covered_task_asks_nobody() -> None:
    bench = Bench({1}, {10: {1}, 11: {1}}, k=1)
    bench.ok(10, {1})
    assert bench.step() == []


def test_a_disabled_task_asks_nobody_sets_no_timer_and_still_serves() -> None:
    bench = Bench({1}, {10: {1}}, k=0)
    bench.world.pending.clear()
    assert bench.step() == []
    bench.task.wake()
    assert not bench.world.pending
    answers = [bench.connect(peer, {1})[0] for peer in range(10, 16)]
    assert [type(answer) for answer in answers] == [ConnectOk] * P.margin + [Redirect]


def test_one_question_at_a_time() -> None:
    bench = Bench({1}, {10: {1}, 11: {1}, 12: {1}}, k=3)
    (first,) = bench.asked()
    assert bench.asked(P.connect_timeout) == []
    bench.ok(first, {1})
    (second,) = bench.asked(P.connect_timeout)
    assert second != first


def test_who_does_not_answer_is_passed_over_and_in_the_end_reported() -> None:
    bench = Bench({1}, {10: {1}, 11: {1}}, k=2)
    (silent,) = bench.asked()
    (other,) = bench.asked(P.answer_timeout)
    assert other != silent
    bench.ok(other, {1})
    assert bench.asked(P.quarantine - P.answer_timeout - 0.1) == []  # still in quarantine
    assert bench.unanswered == []
    assert bench.asked(0.2) == [silent]
    assert bench.unanswered == [silent]


@pytest.mark.parametrize("answer", ["ok", "redirect", "refusal", "question"])
def test_whatever_is_answered_is_an_answer(answer: str) -> None:
    bench = Bench({1}, {10: {1}}, k=1)
    assert bench.asked() == [10]
    match answer:
        case "ok":
            bench.ok(10, {1})
        case "redirect":
            bench.task.receive_redirect(10, Redirect("greedy", 77))
        case "refusal":
            bench.task.receive_leave(10)
        case "question":
            bench.connect(10, {1})
    bench.step(P.quarantine + 1)
    assert bench.unanswered == []


def test_an_accepted_asker_becomes_a_neighbour_and_raises_the_target() -> None:
    bench = Bench({1, 2}, k=1)
    bench.task.target = 1
    assert bench.connect(10, {1, 5}, degree=4, target=6) == [ConnectOk("greedy", 1, 1, 7, frozenset({1, 2}))]
    neighbour = bench.task.neighbours[10]
    assert (neighbour.degree, neighbour.target, list(neighbour.shared)) == (4, 6, [1])
    assert bench.task.target == 2  # Figure 4, lines 4-5
    assert bench.changed == [10]


def test_a_repeated_question_changes_nothing_but_is_answered() -> None:
    bench = Bench({1, 2}, k=3)
    bench.task.target = 1
    bench.connect(10, {1})
    target = bench.task.target
    assert [type(answer) for answer in bench.connect(10, {1})] == [ConnectOk]
    assert (bench.task.target, bench.changed) == (target, [10])


def full(k: int = 1) -> Bench:
    """L^max + margin neighbours, 10 to 15, of one topic."""
    bench = Bench({1, 2}, k=k)
    for peer in range(10, 10 + k * 2 + P.margin):
        assert [type(answer) for answer in bench.connect(peer, {1}, degree=9, target=3)] == [ConnectOk]
    return bench


def test_a_full_task_names_the_neighbour_with_room_that_shares_most() -> None:
    bench = full()
    bench.task.receive_state(11, TaskState("greedy", 3, 9))
    bench.task.receive_state(12, TaskState("greedy", 3, 9))
    bench.task.neighbour_changed(12, frozenset({1, 8, 9}))
    assert bench.connect(99, {8, 9}) == [Redirect("greedy", 12)]
    assert 99 not in bench.neighbours


def test_a_full_task_with_nobody_to_name_says_no() -> None:
    bench = full()
    assert bench.connect(99, {1}) == [LEAVE]
    assert len(bench.neighbours) == 2 + P.margin


def test_a_full_task_still_answers_its_neighbours() -> None:
    assert [type(answer) for answer in full().connect(11, {1})] == [ConnectOk]


def test_full_on_connect_ok_means_leave() -> None:
    """Figure 4, lines 17-18."""
    bench = full()
    assert bench.ok(99, {1, 2}) == [LEAVE]
    assert 99 not in bench.neighbours


# REDIRECT.


def test_the_node_redirected_to_is_asked_next() -> None:
    bench = Bench({1}, {10: {1}, 11: {1}, 12: {1}}, k=1)
    (asked,) = bench.asked()
    bench.task.receive_redirect(asked, Redirect("greedy", 77))
    assert bench.asked(P.connect_timeout) == [77]


def test_redirects_to_known_ones_are_passed_over() -> None:
    bench = Bench({1, 2}, {10: {2}, 11: {2}, 12: {2}}, k=2)
    bench.ok(50, {1})
    asked: set[NodeId] = set()
    for name in (ME, 50, 10):
        (peer,) = bench.asked(P.connect_timeout)
        assert peer in {10, 11, 12} - asked
        asked.add(peer)
        bench.task.receive_redirect(peer, Redirect("greedy", name if name != 10 else peer))


def test_only_who_was_asked_may_redirect_and_only_once() -> None:
    bench = Bench({1}, {10: {1}}, k=1)
    bench.task.receive_redirect(99, Redirect("greedy", 66))
    assert bench.asked() == [10]
    bench.task.receive_redirect(10, Redirect("greedy", 77))
    bench.task.receive_redirect(10, Redirect("greedy", 78))
    assert bench.asked(P.connect_timeout) == [77]
    assert bench.task.known_peers() == {10, 77}


def test_redirects_are_forgotten_when_nothing_is_lacking() -> None:
    bench = Bench({1}, {10: {1}}, k=1)
    bench.asked()
    bench.task.receive_redirect(10, Redirect("greedy", 77))
    bench.connect(11, {1})
    bench.step(P.quarantine)
    assert bench.task.known_peers() == {11}


def test_redirects_are_forgotten_when_there_is_no_room_to_take_them_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A node whose degree is bounded may lack something for ever: a hint must not outlive the peer it names."""
    bench = Bench({1, 2}, {10: {1}}, k=1)
    bench.asked()
    bench.task.receive_redirect(10, Redirect("greedy", 77))
    bench.connect(11, {1})
    monkeypatch.setattr(bench.task.selection, "limit", lambda: 1)
    bench.step(P.quarantine)
    assert bench.task.selection.lacking()
    assert bench.task.known_peers() == {11}


# DISCONNECT (Figure 4, lines 21-26).


def test_a_link_that_is_not_needed_is_given_up() -> None:
    bench = Bench({1, 2}, k=1)
    bench.ok(10, {1, 2})
    bench.ok(11, {2})
    bench.task.target = 9
    assert bench.disconnect(11) == [OK]
    assert bench.neighbours == {10}
    assert bench.task.target == 1  # line 26


def test_a_needed_link_is_kept() -> None:
    bench = Bench({1, 2}, k=1)
    bench.ok(10, {1})
    bench.ok(11, {2})
    assert bench.disconnect(11) == [NO]
    assert bench.neighbours == {10, 11}


def test_a_needed_link_is_given_up_above_the_target() -> None:
    bench = Bench({1, 2}, k=1)
    bench.ok(10, {1})
    bench.ok(11, {2})
    bench.task.target = 1
    assert bench.disconnect(11) == [OK]
    assert bench.neighbours == {10}
    assert bench.task.target == 1


def test_a_link_given_up_above_the_limit_leaves_the_target_at_the_limit() -> None:
    bench = full()
    bench.connect(11, {2}, degree=9, target=3)
    assert len(bench.neighbours) > bench.selection.limit() + 1
    bench.step()
    assert bench.disconnect(10) == [OK]
    assert bench.task.target == bench.selection.limit()


def test_a_building_task_keeps_what_it_has() -> None:
    """Line 23: something is lacking, so nothing is spared, although this link does not help."""
    bench = Bench({1, 2}, {30: {2}}, k=2)
    for peer in (10, 11, 12):
        bench.ok(peer, {1})
    assert bench.asked() == [30]
    assert bench.disconnect(11) == [NO]


def test_a_stranger_may_go() -> None:
    assert Bench({1}).disconnect(10) == [OK]


def test_a_departure_wakes_the_task() -> None:
    bench = Bench({1}, {10: {1}, 11: {1}}, k=1)
    bench.ok(10, {1})
    bench.step()
    sleeping = bench.world.pending["maintain", "greedy"]
    bench.task.receive_leave(10)
    assert bench.changed == [10, 10]
    assert bench.world.pending["maintain", "greedy"] != sleeping


# Offers.


def test_links_are_offered_when_neither_end_needs_them() -> None:
    bench = Bench({1, 2, 3}, k=1)
    for peer in (10, 11, 12):
        bench.ok(peer, {1, 2, 3})
    assert bench.offered() == []  # nobody said it could spare us
    assert bench.task.state(10) == TaskState("greedy", 3, 3, True)
    bench.beat(11, spare=True)
    assert bench.offered() == [11]
    assert bench.offered(P.connect_timeout) == []


def test_by_the_letter_a_link_is_offered_to_who_reached_its_target() -> None:
    """Figure 2 lines 25-35 and Figure 3 lines 9-25: spare or not, the other end is asked, and with it both of
    two that replace each other.
    """
    bench = Bench({1, 2}, k=1, parameters=LinkParameters(disconnect="reached"))
    bench.ok(10, {1, 2})
    bench.ok(11, {1, 2})
    assert bench.offered() == []  # both are far below their targets
    bench.beat(10, spare=False, degree=5, target=5)
    assert bench.offered() == [10]
    bench.beat(11, spare=False, degree=5, target=5)
    assert bench.offered(P.connect_timeout) == [11]
    assert bench.disconnect(10) == [OK]  # Figure 4 line 23: still covered without it
    assert bench.disconnect(11) == [NO]


def test_as_printed_a_neighbour_must_be_above_its_target() -> None:
    bench = Bench({1, 2}, k=1, parameters=LinkParameters(disconnect="printed"))
    bench.ok(10, {1, 2})
    bench.ok(11, {1, 2})
    bench.beat(10, spare=True, degree=5, target=5)
    assert bench.offered() == []
    bench.beat(10, spare=False, degree=6, target=5)
    assert bench.offered() == [10]


def test_by_the_letter_needed_links_go_above_l_max() -> None:
    bench = Bench({1}, k=1, parameters=LinkParameters(disconnect="reached"))
    bench.ok(10, {1})
    bench.ok(11, {2})
    bench.beat(10, spare=False)
    assert bench.neighbours == {10, 11}
    # The only one that covers anything, since the other has not reached its target.
    assert bench.offered() == [10]


def test_needed_links_are_not_offered() -> None:
    bench = Bench({1, 2}, k=1)
    bench.ok(10, {1})
    bench.ok(11, {2})
    bench.beat(10, spare=True)
    bench.beat(11, spare=True)
    assert bench.offered() == []
    assert [bench.task.state(peer).spare for peer in (10, 11)] == [False, False]


def test_links_that_replace_each_other_are_not_given_up_together() -> None:
    bench = Bench({1, 2}, k=1)
    bench.ok(10, {1, 2})
    bench.ok(11, {1, 2})
    bench.beat(10, spare=True)
    bench.beat(11, spare=True)
    (first,) = bench.offered()
    other = 21 - first
    assert bench.offered(P.connect_timeout) == []
    assert bench.disconnect(other) == [NO]
    assert bench.disconnect(first) == [OK]  # they agree
    assert bench.neighbours == {other}


def test_a_refused_offer_is_repeated_on_news_only() -> None:
    bench = Bench({1}, k=1)
    bench.ok(10, {1})
    bench.ok(11, {1})
    bench.beat(11, spare=True)
    assert bench.offered() == [11]
    bench.task.receive_disconnect_no(11)
    bench.beat(11, spare=False)
    assert bench.offered(2 * P.quarantine) == []
    bench.beat(11, spare=True)
    assert bench.offered(1.0) == [11]


def test_an_offer_above_l_max_is_repeated_after_a_long_time_only() -> None:
    bench = Bench({1}, k=1)
    bench.connect(10, {1})
    bench.connect(11, {1})
    bench.beat(11, spare=False)
    assert bench.offered() == [11]
    bench.task.receive_disconnect_no(11)
    assert bench.offered(2 * P.quarantine) == []
    assert bench.offered(REFUSED * P.quarantine) == [11]


def test_an_offer_without_an_answer_is_repeated_after_the_quarantine() -> None:
    bench = Bench({1}, k=1)
    bench.ok(10, {1})
    bench.ok(11, {1})
    bench.beat(11, spare=True)
    assert bench.offered() == [11]
    assert bench.offered(P.quarantine - 0.1) == []
    assert bench.offered(0.2) == [11]


def test_a_topic_that_nobody_else_wants_does_not_stop_the_trimming() -> None:
    bench = Bench({1, 99}, {10: {1}, 11: {1}}, k=1)
    bench.ok(10, {1})
    bench.ok(11, {1})
    bench.beat(10, spare=False)
    bench.beat(11, spare=True)
    assert bench.offered() == [11]
    assert bench.task.state(10).degree == bench.task.state(10).target


def test_the_few_links_of_a_rare_topic_are_kept() -> None:
    """Topic 2 has one other subscriber and can never be covered three times: its link is all the same needed."""
    bench = Bench({2}, {10: {2}}, k=3)
    bench.ok(10, {2})
    bench.beat(10, spare=True)
    assert bench.offered() == []
    assert bench.disconnect(10) == [NO]


def test_at_l_max_a_useless_link_makes_room_for_a_useful_one() -> None:
    bench = Bench({1, 2}, {30: {2}}, k=1)
    bench.connect(10, {1})
    bench.connect(11, {1})
    assert bench.selection.limit() == 2
    bench.beat(10, spare=True)
    assert bench.offered() == [10]
    bench.task.remove(10)
    assert bench.asked(P.connect_timeout) == [30]


def test_above_l_max_useless_links_are_offered_to_who_reached_its_target() -> None:
    bench = Bench({1}, k=1)
    for peer in (10, 11, 12):
        bench.connect(peer, {1})
    bench.beat(12, spare=False, degree=5, target=5)
    assert bench.offered() == [12]


def test_who_wants_less_than_before_gets_below_its_limit_without_asking() -> None:
    bench = Bench({1, 2, 3, 4}, k=3)
    for peer in range(10, 26):
        bench.connect(peer, {peer % 4 + 1})
    bench.interest = frozenset({1})
    bench.task.interest_changed()
    gone = [peer for _ in range(20) for peer, message in bench.step(0.25) if message == LEAVE]
    assert len(bench.neighbours) == 3 + P.margin
    assert bench.neighbours.isdisjoint(gone)
    assert bench.selection.lacking() == 0  # what is of no use goes first


def test_who_turns_out_not_to_want_what_the_view_says_is_left_alone_for_long() -> None:
    bench = Bench({1, 2}, {10: {1, 2}}, k=1)
    bench.ok(11, {2})
    assert bench.asked() == [10]
    bench.ok(10, {2})
    bench.task.remove(10)
    assert bench.asked(2 * P.quarantine) == []
    assert bench.asked(REFUSED * P.quarantine) == [10]
    bench.ok(10, {2})
    bench.interest = frozenset({1, 3})
    bench.task.remove(10)
    bench.task.interest_changed()  # now it may be of use
    assert bench.asked() == [10]


# Heartbeats' states.


def test_a_state_updates_a_neighbour() -> None:
    bench = Bench({1}, k=1)
    bench.ok(10, {1})
    assert bench.beat(10, spare=False, degree=8, target=4) == []
    assert (bench.task.neighbours[10].degree, bench.task.neighbours[10].target) == (8, 4)


def test_who_counts_us_in_without_being_a_neighbour_is_told() -> None:
    assert Bench({1}).beat(10, spare=False) == [LEAVE]


def test_who_counts_us_in_before_its_answer_arrived_is_asked_again() -> None:
    bench = Bench({1}, {10: {1}}, k=1)
    assert bench.asked() == [10]
    assert [type(answer) for answer in bench.beat(10, spare=False)] == [Connect]


# Memory.


def test_all_is_forgotten_of_who_is_gone() -> None:
    bench = Bench({1, 2, 3}, {10: {2}, 11: {2}}, k=1)
    bench.ok(12, {1})
    bench.ok(13, {3})
    (asked,) = bench.asked()
    bench.task.receive_redirect(asked, Redirect("greedy", 77))
    for peer in (asked, 77, 12, 13):
        bench.task.forget(peer)
    assert bench.task.known_peers() == set()


def test_a_restart_forgets_questions_and_keeps_neighbours() -> None:
    bench = Bench({1, 2}, {10: {1}, 11: {1}}, k=1)
    bench.ok(12, {2})
    bench.asked()
    bench.task.start()
    assert bench.task.known_peers() == {12}
    assert len(bench.asked()) == 1


TOPICS = st.sets(st.integers(1, 4), max_size=4)
PEERS = st.integers(10, 22)


@given(st.data())
def test_the_degree_stays_below_its_limit_whatever_arrives(data: st.DataObject) -> None:
    """Random steps, answers and made-up messages: coverage is counted right, the degree bounded, nothing leaks."""
    bench = Bench({1, 2, 3}, {peer: {peer % 4 + 1, peer % 3 + 1} for peer in range(10, 18)}, k=2)
    limit = bench.selection.limit()
    for _ in range(data.draw(st.integers(1, 30), label="messages")):
        peer = data.draw(PEERS, label="peer")
        what = data.draw(st.sampled_from(range(9)), label="what")
        match what:
            case 0 | 1:
                bench.step(data.draw(st.sampled_from([0.0, 0.3, 6.0]), label="time"))
            case 2:
                bench.connect(peer, data.draw(TOPICS, label="topics"))
            case 3:
                bench.ok(peer, data.draw(TOPICS, label="topics"))
            case 4:
                bench.disconnect(peer)
            case 5:
                bench.beat(peer, data.draw(st.booleans(), label="spare"))
            case 6:
                bench.task.receive_disconnect_no(peer)
            case 7:
                bench.task.receive_leave(peer)
            case 8:
                bench.task.receive_redirect(peer, Redirect("greedy", data.draw(PEERS, label="name")))
        interests = [neighbour.interest for neighbour in bench.task.neighbours.values()]
        assert len(interests) <= limit + P.margin
        assert bench.selection.lacking() == calc_k_uncovered(bench.interest, interests, 2)
        assert bench.task.target <= limit
    bench.lab.now += REFUSED * P.quarantine
    bench.step()
    assert len(bench.task.known_peers() - bench.neighbours) <= 1 + MOST_REDIRECTS


# Bridges: a selection that wants peers by name.


def test_a_bridge_is_asked_for_twice_at_the_most() -> None:
    bridges = BridgeSelection(8)
    bridges.want(10)
    bridges.want(11)
    assert [bridges.choose([11], Lab().world(ME).random) for _ in range(3)] == [10, 10, None]
    assert bridges.lacking() == 1


def test_bridges_are_bounded_and_given_up() -> None:
    bridges = BridgeSelection(3)
    bridges.reset(frozenset({1, 2}))
    bridges.added(9, (1,))
    for peer in (9, 10, 11, 12, 13):
        bridges.want(peer)
    assert bridges.lacking() == 3
    for peer in (10, 11, 12):
        bridges.give_up(peer)
    assert bridges.lacking() == 0
    assert bridges.limit() == 3


def test_there_is_room_for_a_bridge_per_topic() -> None:
    """Of two parts of a topic one may be a few nodes that want many topics, all of which go on elsewhere."""
    bridges = BridgeSelection(3)
    bridges.reset(frozenset(range(20)))
    for peer in range(100, 120):
        bridges.want(peer)
        bridges.added(peer, (1,))
    assert bridges.limit() == 20
    assert bridges.take_leaving() == []


def test_the_oldest_bridge_gives_way_to_one_that_was_asked_for() -> None:
    bridges, draws = BridgeSelection(3, margin=2), Lab().world(ME).random
    bridges.reset(frozenset({1}))
    for peer in (9, 5, 7):
        bridges.added(peer, (1,))
    bridges.want(10)
    assert bridges.take_leaving() == [], "not before the new one stands"
    assert bridges.limit() == 4
    assert [bridges.choose([], draws) for _ in range(3)] == [10, 10, None]
    bridges.added(10, (1,))
    assert bridges.take_leaving() == [9]
    bridges.removed(9, (1,))
    assert bridges.take_leaving() == []
    for stranger in (20, 21):
        bridges.added(stranger, (1,))
    assert bridges.take_leaving() == [], "who asks for a bridge takes no place of others"
    assert bridges.limit() == 3
    bridges.want(11)
    assert bridges.limit() == 6
    bridges.added(22, (1,))
    assert bridges.limit() == 6, "and no more than the margin"
    bridges.added(11, (1,))
    assert bridges.take_leaving() == [5, 7, 10, 20]
    bridges.want(12)
    bridges.added(12, ())
    assert bridges.take_leaving() == [], "one that does not want any of the topics is none"


def test_a_bridge_serves_as_long_as_it_shares_a_topic() -> None:
    bridges = BridgeSelection(3)
    assert (bridges.serves(9, (1,)), bridges.serves(9, ())) == (True, False)
    assert (bridges.lacking_without(9, (1,)), bridges.lacking_without(9, ())) == (1, 0)
