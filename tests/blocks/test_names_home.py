"""A home of prefixes, message by message: what it keeps, passes on, answers and refuses."""

from __future__ import annotations

import doctest

import msgspec
import pytest

from topicweave.blocks import name_messages
from topicweave.blocks.name_messages import (
    LabelSaid,
    NamesEnded,
    NamesKept,
    NamesSaid,
    NamesStill,
    NamesTold,
    NamesWatch,
    RingParcel,
)
from topicweave.blocks.topic_directory.messages import Announcement, Carry
from topicweave.blocks.topic_names import NamesParameters, rules, watched
from topicweave.blocks.topic_names.home import KeptPrefix, NamesHome
from topicweave.blocks.topic_names.rules import digest_of, place_of
from topicweave.blocks.topic_names.watched import NamesWatched
from topicweave.port import Message

ANNE, BERT, CARL = 11, 22, 33
SMALL = NamesParameters(
    split_at=6, split_least=3, names=10, names_each=8, labels=4, watchers=3, patterns=2, page=4
)


class Home:
    """A home with its watchers, and all that it sent."""

    def __init__(self, parameters: NamesParameters = SMALL) -> None:
        self.sent: list[RingParcel] = []
        self.watched = NamesWatched(parameters, self.kept, self.sent.append)
        self.home = NamesHome(parameters, self.watched, self.sent.append, lambda _prefix: True)

    def kept(self, prefix: str) -> KeptPrefix | None:
        return self.home.prefixes.get(prefix)

    def names(self, prefix: str = "z/") -> set[str]:
        kept = self.kept(prefix)
        return set(kept.names) if kept is not None else set()

    def say(self, by: int, *rests: str, number: int = 1, now: float = 0.0, whole: bool = False) -> None:
        ages = (0,) * len(rests)
        self.home.said(NamesSaid("z/", by, number, 120.0, rests, ages, whole=whole), now)

    def watch(
        self, watcher: int, pattern: str, digest: int | None = None, now: float = 0.0, term: float = 60.0
    ) -> None:
        self.watched.watch(NamesWatch("z/", pattern, watcher, 5, term, digest), now)

    def told(self, to: int) -> list[NamesTold]:
        """What a watcher was told since the last time somebody asked."""
        told = [one.content for one in self.sent if one.to == to and isinstance(one.content, NamesTold)]
        self.sent.clear()
        return told


@pytest.mark.parametrize("module", [rules, name_messages, watched])
def test_the_examples_in_the_docstrings(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]  # a module as any other


def test_names_are_kept_until_their_term_ends() -> None:
    home = Home()
    home.say(ANNE, "/1", "")
    assert home.names() == {"z", "z/1"}
    assert home.sent == [RingParcel(ANNE, NamesKept("z/", 1, (0, 1), (), 60.0), soon=True)]
    home.home.sweep(119.0)
    assert home.names() == {"z", "z/1"}
    home.home.sweep(121.0)
    assert home.names() == set()
    assert not home.home.prefixes
    assert home.home.names == 0


def test_a_digest_renews_and_a_wrong_one_is_answered() -> None:
    home = Home()
    home.say(ANNE, "/1", "/2")
    right = digest_of(["z/1", "z/2"])
    assert home.home.still(NamesStill("z/", ANNE, 2, 120.0, right), 100.0)
    assert not home.home.still(NamesStill("z/", ANNE, 3, 120.0, right ^ 1), 100.0)
    assert not home.home.still(NamesStill("z/", BERT, 4, 120.0, right), 100.0)
    unknown = [one.content.unknown for one in home.sent[1:] if isinstance(one.content, NamesKept)]
    assert unknown == [False, True, True]
    home.home.sweep(219.0)
    assert home.names() == {"z/1", "z/2"}


def test_who_waits_for_an_answer_gets_it_soon() -> None:
    home = Home()
    home.say(ANNE, "/1")
    right = digest_of(["z/1"])
    home.home.still(NamesStill("z/", ANNE, 2, 120.0, right), 100.0)
    home.home.still(NamesStill("z/", ANNE, 3, 120.0, right), 100.0, soon=True)
    assert [one.soon for one in home.sent[1:]] == [False, True]


def test_saying_all_names_ends_those_that_are_not_among_them() -> None:
    home = Home()
    home.say(ANNE, "/1", "/2")
    home.say(BERT, "/1")
    home.say(ANNE, "/3", whole=True)
    assert home.names() == {"z/1", "z/3"}


def test_a_name_is_there_as_long_as_one_of_its_publishers() -> None:
    home = Home()
    home.say(ANNE, "/1")
    home.say(BERT, "/1", now=60.0)
    home.home.ended(NamesEnded("z/", ANNE, ("/1",)))
    home.home.ended(NamesEnded("z/", CARL, ("/1", "/7", "no", "/+")))
    assert home.names() == {"z/1"}
    home.home.sweep(181.0)
    assert home.names() == set()


def test_a_name_outlives_those_of_its_many_publishers_that_are_known() -> None:
    home = Home()
    for publisher in range(20):
        home.say(publisher, "/1")
    kept = home.kept("z/")
    assert kept is not None
    assert len(kept.names["z/1"].by) == SMALL.publishers
    for publisher in range(SMALL.publishers):
        home.home.ended(NamesEnded("z/", publisher, ("/1",)))
    home.home.sweep(100.0)
    assert home.names() == {"z/1"}
    home.home.sweep(121.0)
    assert home.names() == set()


def test_a_full_home_splits_off_its_fullest_label_and_passes_on_what_is_said_of_it() -> None:
    home = Home()
    home.say(ANNE, "/a/1", "/a/2", "/b/1", "/c")
    home.say(BERT, "/a/2", "/a", "/d", "/e", number=9)
    assert home.names() == {"z/b/1", "z/c", "z/d", "z/e"}
    passed = [one for one in home.sent if isinstance(one.content, NamesSaid)]
    assert {one.to for one in passed} == {place_of("z/a/")}
    assert [(one.content.prefix, one.content.by, one.content.names) for one in passed] == [  # type: ignore[union-attr]  # as chosen above
        ("z/a/", ANNE, ("/1", "/2")),
        ("z/a/", BERT, ("/2", "")),
    ]
    home.sent.clear()
    home.say(CARL, "/b/2", "/a/9", number=7)
    home.home.ended(NamesEnded("z/", CARL, ("/a/9",)))
    contents = [one.content for one in home.sent]
    assert contents == [
        NamesSaid("z/a/", CARL, 7, 120.0, ("/9",), (0,), places=(1,)),
        NamesKept("z/", 7, (0,), (), 60.0),
        NamesEnded("z/a/", CARL, ("/9",)),
    ]


def test_a_level_that_cannot_be_split_is_full_in_the_end() -> None:
    home = Home()
    home.watch(CARL, "z/#")
    home.told(CARL)
    home.say(ANNE, *(f"/{number}" for number in range(8)))
    home.say(BERT, "/8", "/9", "/10", "/11", number=3)
    assert len(home.names()) == SMALL.names
    answer = home.sent[-1].content
    assert isinstance(answer, NamesKept)
    assert (answer.places, answer.refused) == ((0, 1), (2, 3))
    home.watched.tell(lambda _prefix: True, 0.0)
    assert any(told.full for told in home.told(CARL))
    home.watch(BERT, "z/#")
    assert all(told.full for told in home.told(BERT))


def test_one_publisher_cannot_take_all_the_room() -> None:
    home = Home()
    home.say(ANNE, *(f"/{number}" for number in range(30)))
    assert len(home.names()) == SMALL.names_each
    home.say(BERT, "/x")
    assert "z/x" in home.names()


def test_labels_are_kept_for_their_term_and_bounded() -> None:
    home = Home()
    for number in range(9):
        home.home.label_said(LabelSaid("", f"l{number}", 120.0), 0.0)
    kept = home.kept("")
    assert kept is not None
    assert list(kept.labels) == ["l0", "l1", "l2", "l3"]
    assert kept.full_until > 0.0
    home.home.label_said(LabelSaid("", "l2", 120.0), 60.0)
    home.home.sweep(121.0)
    assert list(kept.labels) == ["l2"]
    for bad in ("a/b", "+", "#", "x\0"):
        assert not home.home.label_said(LabelSaid("", bad, 120.0), 0.0)


def test_a_home_says_above_that_it_holds_something() -> None:
    home = Home()
    home.say(ANNE, "/1", number=0)
    home.home.label_said(LabelSaid("", "z", 120.0), 0.0)
    home.home.say_above(0.0)
    home.home.say_above(10.0)
    assert home.sent == [RingParcel(place_of(""), LabelSaid("", "z", 120.0), soon=True)]
    home.home.say_above(50.0)
    assert len(home.sent) == 2


# Watchers.


def test_a_watcher_gets_what_matches_in_pages_and_then_a_word() -> None:
    home = Home()
    home.say(ANNE, "/1", "/2", "/3", "/4", "/5", "")
    home.sent.clear()
    home.watch(BERT, "z/+")
    pages = home.told(BERT)
    assert [(page.page, page.pages, page.names) for page in pages] == [
        (0, 2, ("/1", "/2", "/3", "/4")),
        (1, 2, ("/5",)),
    ]
    home.watch(BERT, "z/+", digest_of([f"z/{number}" for number in range(1, 6)]))
    assert [(page.same, page.names) for page in home.told(BERT)] == [(True, ())]
    home.say(ANNE, "/6")
    home.watch(BERT, "z/+", digest_of([f"z/{number}" for number in range(1, 6)]))
    assert sum(len(page.names) for page in home.told(BERT)) == 6


def test_watchers_are_told_what_changes() -> None:
    home = Home()
    home.watch(BERT, "z/+/a")
    home.watch(CARL, "z/#")
    home.told(CARL)
    home.say(ANNE, "/1/a", "/1/b", now=1.0)
    home.home.ended(NamesEnded("z/", ANNE, ("/1/b",)))
    home.home.label_said(LabelSaid("z/", "9", 120.0), 1.0)
    home.watched.tell(lambda _prefix: True, 2.0)
    told = [(one.to, one.content) for one in home.sent if isinstance(one.content, NamesTold)]
    assert told == [
        (BERT, NamesTold("z/", "z/+/a", names=("/1/a",), ages=(1,), labels=("9",), by=(ANNE,))),
        (CARL, NamesTold("z/", "z/#", names=("/1/a",), ages=(1,), labels=("9",), by=(ANNE,))),
        (CARL, NamesTold("z/", "z/#", gone=("/1/b",))),
    ]
    home.sent.clear()
    home.home.sweep(130.0)
    home.watched.tell(lambda _prefix: True, 130.0)
    assert home.sent == []  # Their own terms are over, too.


def test_only_the_home_tells_of_changes() -> None:
    home = Home()
    home.watch(BERT, "z/#")
    home.told(BERT)
    home.say(ANNE, "/1")
    home.watched.tell(lambda _prefix: False, 0.0)
    assert home.told(BERT) == []


def test_watchers_and_patterns_are_bounded_but_all_are_answered() -> None:
    home = Home()
    home.say(ANNE, "/1")
    home.sent.clear()
    for watcher in range(10):
        home.watch(100 + watcher, "z/#")
    assert home.watched.watchers == SMALL.watchers
    assert len([one for one in home.sent if isinstance(one.content, NamesTold)]) == 10
    home.watch(100, "z/#", term=0.0)
    assert home.watched.watchers == SMALL.watchers - 1
    home.watched.sweep(61.0)
    assert home.watched.watchers == 0
    for number in range(5):
        home.watch(BERT, f"z/{number}")
    assert home.watched.watchers == SMALL.patterns


def test_who_watches_one_label_with_a_home_of_its_own_is_sent_there() -> None:
    home = Home()
    home.home.label_said(LabelSaid("z/", "7", 120.0), 0.0)
    home.watch(BERT, "z/7/door")
    assert [told.labels for told in home.told(BERT)] == [("7",)]
    assert home.watched.watchers == 0


def test_an_asker_has_a_budget() -> None:
    home = Home(NamesParameters(budget=1.0))
    for _ in range(100):
        home.watch(BERT, "z/#")
    assert len(home.told(BERT)) == 10


def test_a_long_answer_is_whole_and_paid_for_later() -> None:
    home = Home(NamesParameters(budget=1.0, page=2))
    for first in range(0, 100, 10):
        home.say(ANNE, *(f"/{number}" for number in range(first, first + 10)))
    home.sent.clear()
    home.watch(BERT, "z/#")
    assert sum(len(page.names) for page in home.told(BERT)) == 100
    home.watch(BERT, "z/#", now=20.0)
    assert home.told(BERT) == []
    home.watch(BERT, "z/#", now=45.0)
    assert len(home.told(BERT)) == 50


@pytest.mark.parametrize(
    "said",
    [
        NamesSaid("z", ANNE, 1, 60.0, ("/1",), (0,)),
        NamesSaid("", ANNE, 1, 60.0, ("/1",), (0,)),
        NamesSaid("z/", ANNE, 1, float("nan"), ("/1",), (0,)),
        NamesSaid("z/", ANNE, 1, -1.0, ("/1",), (0,)),
        NamesSaid("z/", ANNE, 1, 60.0, ("/1", "/2"), (0,)),
        NamesSaid("z/", ANNE, 1, 60.0, ("/1",), (0,), topics=(1, 2)),
        NamesSaid("z/", ANNE, 1, 60.0, ("/1",), (0,), topics=(-1,)),
        NamesSaid("z/", ANNE, 1, 60.0, ("/1",), (0,), places=(1, 2)),
        NamesSaid("z/", ANNE, 1, 60.0, ("1", "/+", "/\0", "/" + "x" * 2000, "/" * 200), (0,) * 5),
        NamesSaid("x/" * 200, ANNE, 1, 60.0, ("",), (0,)),
    ],
)
def test_what_makes_no_sense_is_not_kept(said: NamesSaid) -> None:
    home = Home()
    home.home.said(said, 0.0)
    assert home.home.names == 0
    assert not home.home.prefixes


def test_an_earlier_version_reads_over_parcels() -> None:
    class Earlier(Message, frozen=True, array_like=True, tag="dir-carry"):
        number: int
        announcements: tuple[Announcement, ...] = ()

    carry = Carry(7, parcels=(RingParcel(1, NamesStill("z/", ANNE, 2, 60.0, 3)),))
    encoded = msgspec.msgpack.encode(carry)
    assert msgspec.msgpack.decode(encoded, type=Earlier) == Earlier(7)
    assert msgspec.msgpack.decode(encoded, type=Carry) == carry
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(Earlier(7)), type=Carry) == Carry(7)
