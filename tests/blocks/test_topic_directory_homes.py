"""What a home of the topic directory keeps, whom it tells, and whom it introduces."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest

from topicweave.blocks.topic_directory import DirectoryParameters, carrier
from topicweave.blocks.topic_directory.home import MOST_ASKERS, Home
from topicweave.blocks.topic_directory.messages import (
    CALL_ME,
    LEADS,
    WANTS_CONTACTS,
    WITHDRAWS,
    Announcement,
    Record,
    Unanswered,
)
from topicweave.model.ids import RING_SIZE

PARAMETERS = DirectoryParameters()
TOPIC = 77


def announcement(subscriber: int, flags: int = 0, epoch: int = 1, term: float = 150.0) -> Announcement:
    return Announcement(subscriber, epoch, term, (TOPIC,), bytes([flags]))


def home(lifetime: float = 30.0) -> Home:
    return Home(1, PARAMETERS, random.Random(1), lifetime)


def test_a_home_names_those_who_announced_and_tells_them_of_the_newcomer() -> None:
    keeper = home()
    keeper.announced(announcement(5), now=0.0)
    told = keeper.announced(announcement(6, WANTS_CONTACTS), now=1.0)
    assert [(answer.to, [contact.id for contact in answer.contacts]) for answer in told] == [
        (6, [5]),
        (5, [6]),
    ]
    assert [answer.audience for answer in told] == [1, 1]


def test_who_could_not_reach_somebody_is_named_to_all_whom_the_answer_names() -> None:
    """However many subscribers there are: otherwise one that others could reach would stay alone."""
    keeper = home()
    for subscriber in range(50, 80):
        keeper.announced(announcement(subscriber), now=0.0)
    keeper.announced(announcement(6), now=0.0)
    again = keeper.announced(announcement(6, WANTS_CONTACTS), now=1.0)
    assert [answer.to for answer in again] == [6], "who only asks again is known already"
    answer, *others = keeper.announced(announcement(6, WANTS_CONTACTS | CALL_ME), now=2.0)
    assert answer.to == 6
    assert len(answer.contacts) == PARAMETERS.contacts
    assert [other.to for other in others] == [contact.id for contact in answer.contacts]
    assert {contact.id for other in others for contact in other.contacts} == {6}


def test_a_newcomer_that_could_not_reach_somebody_is_named_to_each_once() -> None:
    keeper = home()
    for subscriber in range(50, 80):
        keeper.announced(announcement(subscriber), now=0.0)
    answer, *others = keeper.announced(announcement(6, WANTS_CONTACTS | CALL_ME), now=2.0)
    assert sorted(other.to for other in others) == sorted(contact.id for contact in answer.contacts)


def test_there_is_a_bound_to_whom_a_home_tells_of_those_who_ask_for_it() -> None:
    """One that says all the time that it could not reach anybody, under any names, makes it send no more."""
    keeper = home()
    for subscriber in range(50, 80):
        keeper.announced(announcement(subscriber), now=0.0)
    told = 0
    for second in range(100):
        for subscriber in range(50, 70):
            answers = keeper.announced(announcement(subscriber, WANTS_CONTACTS | CALL_ME), now=float(second))
            told += sum(answer.to != subscriber for answer in answers)
    assert 99 * PARAMETERS.budget <= told <= (25 + 100) * PARAMETERS.budget


def test_an_answer_names_somebody_lower_if_there_is_one() -> None:
    keeper = home()
    for subscriber in (3, *range(50, 100)):
        keeper.announced(announcement(subscriber), now=0.0)
    for asker, lower in ((4, 3), (50, 3), (2, None)):
        for _ in range(20):
            told = keeper.announced(announcement(asker, WANTS_CONTACTS), now=1.0)[0]
            assert len(told.contacts) == PARAMETERS.contacts
            if lower is not None:
                assert min(contact.id for contact in told.contacts) <= lower
        keeper.announced(announcement(asker, WITHDRAWS), now=1.0)


def test_half_of_an_answer_names_lower_ones_if_there_are_so_many() -> None:
    """When a tenth of the nodes crash, a home names some that it does not know to be gone."""
    keeper = home()
    for subscriber in (1, 2, 3, 4, 5, *range(50, 100)):
        keeper.announced(announcement(subscriber), now=0.0)
    named = set()
    for _ in range(40):
        told = keeper.announced(announcement(6, WANTS_CONTACTS), now=1.0)[0]
        lower = {contact.id for contact in told.contacts if contact.id < 6}
        assert len(told.contacts) == PARAMETERS.contacts
        assert len(lower) >= PARAMETERS.contacts // 2
        named |= lower
    assert named == {1, 2, 3, 4, 5}


def test_records_end_with_their_term_a_withdrawal_or_a_report() -> None:
    keeper = home()
    for subscriber in (5, 6, 7):
        keeper.announced(announcement(subscriber, term=100.0 * (subscriber == 5) + 50.0), now=0.0)
    keeper.announced(announcement(6, WITHDRAWS), now=1.0)
    keeper.sweep(now=60.0)
    assert keeper.subscribers(TOPIC) == [5]
    keeper.reported(Unanswered(TOPIC, 5))
    assert keeper.subscribers(TOPIC) == []
    assert keeper.topics() == []


def test_an_earlier_life_does_not_undo_a_later_one() -> None:
    keeper = home()
    keeper.announced(announcement(5, epoch=9), now=0.0)
    keeper.announced(announcement(5, WITHDRAWS, epoch=8), now=1.0)
    assert keeper.subscribers(TOPIC) == [5]


def test_a_hot_home_keeps_its_bounds_and_says_when_to_come_again() -> None:
    keeper = home()
    rng = random.Random(2)
    audience = [rng.randrange(RING_SIZE) for _ in range(3000)]
    for number, subscriber in enumerate(audience):
        keeper.announced(announcement(subscriber), now=number / 100)
    assert len(keeper.subscribers(TOPIC)) <= PARAMETERS.records
    # 5 per second over 30 seconds, and what it takes at once.
    assert len(keeper.take_changed(30.0)) <= 2 * (5 * 30 + 40)
    (told,) = (
        answer
        for answer in keeper.announced(announcement(audience[0], WANTS_CONTACTS), 31.0)
        if answer.to == audience[0]
    )
    assert len(told.contacts) <= 8
    assert told.audience == pytest.approx(3000, rel=0.15)
    assert told.again == pytest.approx(3000 / 4, rel=0.15)


def test_leaders_are_always_heard() -> None:
    keeper = home()
    for subscriber in range(100, 400):
        keeper.announced(announcement(subscriber), now=0.0)
    keeper.announced(announcement(5, LEADS), now=0.0)
    assert 5 in keeper.subscribers(TOPIC)
    for subscriber in range(1000, 2000):
        keeper.announced(announcement(subscriber), now=subscriber)
    assert 5 in keeper.subscribers(TOPIC)


def test_settled_parts_are_introduced_by_random_members_at_a_bounded_rate() -> None:
    keeper = home(lifetime=30.0)
    for leader in (5, 9):
        keeper.announced(announcement(leader, LEADS, term=500.0), now=0.0)
        for member in range(leader * 100, leader * 100 + 10):
            labelled = Announcement(member, 1, 500.0, (TOPIC,), bytes([0]), (leader,), bytes([1]))
            keeper.announced(labelled, now=1.0)
    assert keeper.introductions([TOPIC], now=29.0) == [], "not settled yet"
    introduced = [told for now in (40.0, 60.0, 80.0) for told in keeper.introductions([TOPIC], now)]
    assert [told.contacts[0].left // 10 for told in introduced] == [46, 46, 44, 44, 42, 42], "of their terms"
    assert len(introduced) == 6, "one pair at a time, and both sides are told"
    for one, other in zip(introduced[::2], introduced[1::2], strict=True):
        assert one.parted
        assert (one.contacts[0].id, other.contacts[0].id) == (other.to, one.to)
        assert {one.contacts[0].label, other.contacts[0].label} == {5, 9}
    assert len({told.to for told in introduced}) > 2, "no star around a leader"
    assert keeper.introductions([TOPIC], now=81.0) == []


def test_many_parts_are_halved_in_a_round_and_none_is_named_more_than_twice() -> None:
    at_home = home(lifetime=10.0)
    parts = 40
    for peer in range(parts):
        at_home.announced(announcement(peer + 100, LEADS), 0.0)
    told = at_home.introductions([TOPIC], 20.0)
    assert len(told) == parts, "half as many pairs as parts, and both sides are told"
    assert all(answer.parted for answer in told)
    assert max(Counter(answer.to for answer in told).values()) <= 2
    assert at_home.introductions([TOPIC], 25.0) == []


def test_a_leader_that_leads_no_more_is_no_part() -> None:
    keeper = home()
    keeper.announced(announcement(5, LEADS), now=0.0)
    keeper.announced(announcement(9, LEADS), now=0.0)
    keeper.announced(Announcement(9, 1, 150.0, (TOPIC,), bytes([0]), (5,), bytes([1])), now=20.0)
    assert keeper.introductions([TOPIC], now=100.0) == []


def test_a_hot_home_hears_those_who_lead_no_more() -> None:
    """In a storm of joins many lead for a while. Were they kept as leaders, the parts that there are would
    hardly ever be introduced to each other.
    """
    keeper = home()
    keeper.announced(announcement(5, LEADS), now=0.0)
    keeper.announced(announcement(9, LEADS), now=0.0)
    for subscriber in range(100, 400):
        keeper.announced(announcement(subscriber), now=20.0)
    keeper.announced(Announcement(9, 1, 150.0, (TOPIC,), bytes([0]), (5,), bytes([1])), now=20.0)
    assert keeper.introductions([TOPIC], now=100.0) == []


def test_every_asker_has_a_budget() -> None:
    keeper = home()
    keeper.announced(announcement(5), now=0.0)
    answers = [told for _ in range(2000) for told in keeper.announced(announcement(6, WANTS_CONTACTS), 1.0)]
    assert sum(told.to == 6 for told in answers) == 25 * PARAMETERS.budget
    assert keeper.announced(announcement(7, WANTS_CONTACTS), 1.0)


def test_who_spent_its_budget_gets_no_other_because_many_ask() -> None:
    """Neither when the home looks through the budgets, nor when it knows as many askers as it may."""
    keeper, now = home(), 1.0
    keeper.announced(announcement(5), now)

    def answered(asker: int) -> int:
        return sum(told.to == asker for told in keeper.announced(announcement(asker, WANTS_CONTACTS), now))

    assert sum(answered(6) for _ in range(1000)) == 25 * PARAMETERS.budget
    for asker in range(1000, 1000 + 2 * MOST_ASKERS):
        assert answered(asker) == 1
    assert len(keeper._budgets) <= MOST_ASKERS
    assert answered(6) == 0
    now += 1.0
    keeper.sweep(now)
    assert sum(answered(6) for _ in range(1000)) == PARAMETERS.budget
    now += 25.0
    keeper.sweep(now)
    assert not keeper._budgets, "all is as if nobody had asked"
    assert sum(answered(6) for _ in range(1000)) == 25 * PARAMETERS.budget


def test_records_pass_from_home_to_home_with_what_is_left_of_their_term() -> None:
    keeper, heir = home(), home()
    keeper.announced(announcement(5, LEADS, term=100.0), now=0.0)
    heir.learn(keeper.records([TOPIC], now=40.0), now=1000.0)
    assert heir.subscribers(TOPIC) == [5]
    heir.sweep(now=1059.0)
    assert heir.subscribers(TOPIC) == [5]
    heir.sweep(now=1061.0)
    assert heir.subscribers(TOPIC) == []
    heir.learn([Record(TOPIC, -1, 1, 10.0, None, -1.0), Record(-5, 1, 1, 10.0, None, -1.0)], now=0.0)
    assert heir.topics() == []


def test_a_new_home_learns_who_leads_however_many_it_knows() -> None:
    """A popular topic fills its records at once. A part whose leader is left out is introduced to nobody
    until the leader comes again.
    """
    keeper, heir = home(), home()
    leaders = [5, 9]
    for leader in leaders:
        keeper.announced(announcement(leader, LEADS), now=0.0)
    for subscriber in range(100, 100 + PARAMETERS.records):
        heir.learn([Record(TOPIC, subscriber, 1, 150.0, None, -1.0)], now=0.0)
    heir.learn(keeper.records([TOPIC], now=50.0), now=50.0)
    assert len(heir.subscribers(TOPIC)) == PARAMETERS.records
    assert {told.contacts[0].label for told in heir.introductions([TOPIC], now=50.0)} == {*leaders}
    # Where all lead, nobody makes room.
    full = home()
    full.learn(
        [Record(TOPIC, peer, 1, 150.0, peer, 0.0) for peer in range(100, 100 + PARAMETERS.records)], now=0.0
    )
    full.learn(keeper.records([TOPIC], now=50.0), now=50.0)
    assert full.subscribers(TOPIC) == [*range(100, 100 + PARAMETERS.records)]


def test_announcements_that_do_not_fit_together_are_not_looked_at() -> None:
    assert carrier.sound(announcement(5))
    for wrong in (
        Announcement(5, 1, 60.0, (1, 2), b"\0"),
        Announcement(5, 1, 60.0, (1,), b"\0", (), b"\1"),
        Announcement(5, 1, math.nan, (1,), b"\0"),
        Announcement(5, -1, 60.0, (1,), b"\0"),
        Announcement(5, 1, 60.0, (1,), b"\0", attempt=99),
    ):
        assert not carrier.sound(wrong)


def test_a_keeper_believes_the_home_and_not_its_memory() -> None:
    """A part's leader has another term than who leads nothing: a later word may end earlier."""
    keeper, heir = home(), home()
    keeper.announced(announcement(9, LEADS, term=1000.0), now=0.0)
    heir.learn(keeper.records([TOPIC], now=0.0), now=0.0)
    follows = Announcement(9, 1, 150.0, (TOPIC,), bytes([0]), (5,), bytes([1]))
    keeper.announced(follows, now=20.0)
    later = keeper.records([TOPIC], now=20.0)
    assert [(record.label, record.led) for record in later] == [(5, -1.0)]
    heir.learn(later, now=20.0)
    assert heir.records([TOPIC], now=20.0)[0].led >= 0.0, "anybody else may tell of what was"
    heir.learn(later, now=20.0, is_home=lambda topic: topic == TOPIC)
    assert heir.records([TOPIC], now=20.0) == later
