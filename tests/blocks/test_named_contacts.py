"""What homes say of subscribers is believed within bounds."""

from __future__ import annotations

from topicweave.blocks.named_contacts import AT_ONCE, MOST_LASTING, PAUSE, NamedContacts

TOPIC, OTHER = 7, 8


def test_strangers_have_a_budget_per_topic_and_old_acquaintances_cost_nothing() -> None:
    named = NamedContacts()
    assert all(named.put(TOPIC, peer, 60.0, 0.0, stranger=True) == [] for peer in range(AT_ONCE))
    assert named.put(TOPIC, 1000, 60.0, 0.0, stranger=True) is None
    assert named.topics(1000) == set()
    assert named.put(TOPIC, 3, 60.0, 0.0, stranger=True) == [], "named before"
    assert named.put(OTHER, 1000, 60.0, 0.0, stranger=True) == [], "another topic"
    assert not named.may(TOPIC, 0.0)
    assert named.may(TOPIC, PAUSE)
    assert not named.may(TOPIC, PAUSE)


def test_who_was_named_first_makes_room() -> None:
    named = NamedContacts()
    for peer in range(AT_ONCE):
        named.put(TOPIC, peer, 60.0, 0.0, stranger=False)
    named.put(OTHER, 0, 60.0, 0.0, stranger=False)
    assert named.put(TOPIC, 1000, 60.0, 0.0, stranger=False) == [0]
    assert set(named.topics(0)) == {OTHER}
    assert set(named.topics(1000)) == {TOPIC}
    assert len(named) == AT_ONCE + 1


def test_contacts_last_as_long_as_they_are_said_to_and_no_longer_than_an_hour() -> None:
    named = NamedContacts()
    named.put(TOPIC, 1, 60.0, 0.0, stranger=True)
    named.put(OTHER, 1, 1e9, 0.0, stranger=True)
    assert named.sweep(59.0) == []
    assert named.sweep(60.0) == [1]
    assert set(named.topics(1)) == {OTHER}
    assert named.sweep(MOST_LASTING) == [1]
    assert len(named) == 0


def test_a_topic_without_contacts_is_forgotten_when_its_budget_is_whole_again() -> None:
    named = NamedContacts()
    for peer in range(AT_ONCE):
        named.put(TOPIC, peer, 60.0, 0.0, stranger=True)
        assert named.remove(peer) == [TOPIC]
    named.sweep(1.0)
    assert named.put(TOPIC, 1, 60.0, 1.0, stranger=True) is None, "a sweep is no new budget"
    named.sweep(AT_ONCE * PAUSE)
    assert named._topics == {}
