"""A connection step by step, without a socket: every way through its table, lost bytes, held reading, and
which of two stays.
"""

from __future__ import annotations

import random
from contextlib import ExitStack

import pytest

from topicweave.live import connection as module
from topicweave.live.admission import HalfOpen
from topicweave.live.budgets import BANNED_AT, Reputation
from topicweave.live.connection import (
    TRANSITIONS,
    Abort,
    Arrived,
    Bytes,
    Close,
    Connection,
    Drop,
    End,
    Failed,
    HoldReading,
    Input,
    Lost,
    Made,
    Opened,
    Output,
    Ponged,
    Reading,
    Refuse,
    Retire,
    Rivalry,
    SaidBye,
    Sign,
    Spend,
    State,
    Terms,
    Tick,
    Wake,
    Writable,
    Write,
    arbitrate,
)
from topicweave.live.dialling import Targets
from topicweave.live.frames import Kind, frame
from topicweave.live.settings import Address, Limits, Settings
from topicweave.live.wire import MAGIC, VERSIONS, Bye, Hello, bye_frame, hello_frame, number_frame
from topicweave.model.ids import ring_id

PACE = Settings(insecure=True, preset="local").pace


def terms(
    name: str,
    system: str = "spidercast",
    instance: int = 1,
    limits: Limits | None = None,
    versions: tuple[int, ...] = VERSIONS,
) -> Terms:
    hello = Hello(
        MAGIC, versions, "swarm", system, ring_id(name), name, Address("127.0.0.1", 7), instance, 0.5
    )
    return Terms(lambda: hello, limits or Limits(), PACE, lambda: 42.0)


class Ends:
    """Two connections with a wire between them that holds bytes until they are let through."""

    def __init__(self, dialler: Terms, acceptor: Terms) -> None:
        self.now = 0.0
        self.dialler, self.acceptor = Connection(dialler, True, 0.0), Connection(acceptor, False, 0.0)
        self.wires: dict[Connection, bytearray] = {self.dialler: bytearray(), self.acceptor: bytearray()}
        self.said: dict[Connection, list[Output]] = {self.dialler: [], self.acceptor: []}

    def tell(self, end: Connection, what: Input) -> list[Output]:
        told = []
        for output in end.step(self.now, what):
            told.append(output)
            self.said[end].append(output)
            if isinstance(output, Write):
                self.wires[end] += output.data
            if isinstance(output, Opened) and not end.dialled:
                self.wires[end] += end.accept()
        return told

    def pass_on(self, step: int = 1 << 20) -> None:
        """Everything that was written arrives, in pieces."""
        while any(self.wires.values()):
            for end, other in ((self.dialler, self.acceptor), (self.acceptor, self.dialler)):
                data, self.wires[end] = bytes(self.wires[end][:step]), self.wires[end][step:]
                if data:
                    self.tell(other, Bytes(data))

    def opened(self, step: int = 1 << 20) -> Ends:
        for end in (self.dialler, self.acceptor):
            self.tell(end, Made())
        self.pass_on(step)
        return self


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_two_that_fit_open_however_their_bytes_are_cut(step: int) -> None:
    ends = Ends(terms("a"), terms("b")).opened(step)
    assert ends.dialler.state is ends.acceptor.state is State.OPEN
    assert [one.hello.name for one in ends.said[ends.dialler] if isinstance(one, Opened)] == ["b"]
    assert [one.hello.name for one in ends.said[ends.acceptor] if isinstance(one, Opened)] == ["a"]


def test_an_acceptor_says_nothing_before_a_hello_that_fits() -> None:
    ends = Ends(terms("a"), terms("b"))
    assert ends.tell(ends.acceptor, Made()) == [Wake(PACE.hello_timeout)]
    told = ends.tell(ends.acceptor, Bytes(frame(Kind.PING, bytes(8))))
    assert [type(one) for one in told] == [Failed, Abort]
    assert ends.acceptor.state is State.CLOSED


@pytest.mark.parametrize("other", [terms("b", system="random"), terms("a")])
def test_those_that_do_not_fit_are_told_why_on_both_sides(other: Terms) -> None:
    ends = Ends(terms("a"), other).opened()
    for end in (ends.dialler, ends.acceptor):
        (failed,) = [one for one in ends.said[end] if isinstance(one, Failed)]
        assert "this is node" in failed.reason
        assert not failed.broken
        assert end.state is State.CLOSING


@pytest.mark.parametrize("old_one_dials", [True, False])
def test_an_earlier_version_is_spoken_with_who_speaks_no_other(old_one_dials: bool) -> None:
    oldest = (min(VERSIONS),)
    both = [terms("old", versions=oldest), terms("new")]
    ends = Ends(*(both if old_one_dials else both[::-1])).opened()
    assert ends.dialler.state is ends.acceptor.state is State.OPEN
    assert (ends.dialler.version, ends.acceptor.version) == 2 * oldest
    newest = Ends(terms("a"), terms("b")).opened()
    assert newest.dialler.version == newest.acceptor.version == max(VERSIONS)


def test_two_versions_refuse_each_other_and_say_which_they_are() -> None:
    older = (min(VERSIONS) - 1,)
    ends = Ends(terms("old", versions=older), terms("new")).opened()
    for end in (ends.dialler, ends.acceptor):
        (failed,) = [one for one in ends.said[end] if isinstance(one, Failed)]
        for words in (f"wire {list(VERSIONS)}", f"wire {list(older)}", "update the older node"):
            assert words in failed.reason
        assert end.state is State.CLOSING


def test_a_hello_that_is_lost_or_late_ends_it() -> None:
    for cut in range(0, 60, 7):
        ends = Ends(terms("a"), terms("b"))
        ends.tell(ends.dialler, Made())
        ends.tell(ends.acceptor, Made())
        ends.tell(ends.acceptor, Bytes(bytes(ends.wires[ends.dialler][:cut])))
        ends.now = PACE.hello_timeout
        for end in (ends.dialler, ends.acceptor):
            assert ends.tell(end, Tick()) == [Failed("no hello in time"), Abort()]
            assert end.state is State.CLOSED


def test_silence_is_asked_after_and_then_ends_it() -> None:
    ends = Ends(terms("a"), terms("b")).opened()
    ends.now = PACE.heartbeat + 0.1
    assert [type(one) for one in ends.tell(ends.dialler, Tick())] == [Write]
    ends.pass_on()
    (ponged,) = [one for one in ends.said[ends.dialler] if isinstance(one, Ponged)]
    assert ponged.pong.time == 42.0, "with the clock of the other side"
    ends.now += PACE.dead_after + 0.1
    assert ends.tell(ends.dialler, Tick()) == [Failed("no sign of life"), Abort()]


def test_a_peer_that_takes_nothing_is_cut_off_though_it_speaks() -> None:
    ends = Ends(terms("a"), terms("b")).opened()
    ends.tell(ends.acceptor, Writable(False))
    ends.now = PACE.dead_after + 0.1
    ends.tell(ends.acceptor, Bytes(number_frame(Kind.PING, 1)))
    assert ends.tell(ends.acceptor, Tick()) == [Failed("it takes nothing"), Abort()]


def test_who_is_not_listened_to_is_not_silent() -> None:
    ends = Ends(terms("a"), terms("b")).opened()
    ends.tell(ends.dialler, HoldReading(True))
    ends.now = PACE.dead_after + 0.1
    assert ends.tell(ends.dialler, Tick()) == [], "neither asked after nor taken for dead"
    ends.tell(ends.dialler, HoldReading(False))
    ends.now += PACE.dead_after + 0.1
    assert ends.tell(ends.dialler, Tick()) == [Failed("no sign of life"), Abort()]


def test_a_retired_connection_reads_on_until_the_others_bye() -> None:
    ends = Ends(terms("a"), terms("b")).opened()
    ends.tell(ends.dialler, Retire())
    assert not ends.dialler.sending
    told = ends.tell(ends.dialler, Bytes(frame(Kind.MESSAGES, b"under way")))
    assert told == [Arrived(Kind.MESSAGES, b"under way")]
    told = ends.tell(ends.dialler, Bytes(bye_frame(Bye("me too"))))
    assert told == [SaidBye(Bye("me too")), Close()]
    assert ends.dialler.state is State.CLOSING


def test_what_is_held_is_read_when_it_is_let_go_or_the_other_side_closed_in_order() -> None:
    for ending in (HoldReading(False), Lost(in_order=True)):
        ends = Ends(terms("a"), terms("b")).opened()
        assert ends.tell(ends.dialler, HoldReading(True)) == [Reading(False)]
        assert ends.tell(ends.dialler, Bytes(frame(Kind.MESSAGES, b"x"))) == []
        assert Arrived(Kind.MESSAGES, b"x") in ends.tell(ends.dialler, ending)


def test_a_hold_between_two_frames_keeps_the_second() -> None:
    ends = Ends(terms("a"), terms("b")).opened()
    two = frame(Kind.MESSAGES, b"1") + frame(Kind.MESSAGES, b"2")
    got = []
    for output in ends.dialler.step(0.0, Bytes(two)):
        got.append(output)
        if isinstance(output, Arrived):
            list(ends.dialler.step(0.0, HoldReading(True)))
    assert [one.body for one in got if isinstance(one, Arrived)] == [b"1"]


def test_who_spends_more_than_a_seconds_worth_is_read_later() -> None:
    ends = Ends(terms("a"), terms("b", limits=Limits(messages_per_second=10))).opened()
    ends.tell(ends.acceptor, Spend(25))
    told = ends.tell(ends.acceptor, Bytes(number_frame(Kind.PING, 1)))
    assert Reading(False) in told
    (wake,) = [one for one in told if isinstance(one, Wake)]
    assert wake.at == pytest.approx(1.6)
    ends.now = wake.at
    assert Reading(True) in ends.tell(ends.acceptor, Tick())


def test_one_that_fits_and_is_not_wanted_is_told_why() -> None:
    ends = Ends(terms("a"), terms("b"))
    for end in (ends.dialler, ends.acceptor):
        ends.tell(end, Made())
    list(ends.acceptor.step(0.0, Bytes(bytes(ends.wires[ends.dialler]))))
    ends.tell(ends.acceptor, Refuse("banned"))
    ends.wires[ends.dialler].clear()
    ends.pass_on()
    assert Failed("banned") in ends.said[ends.dialler]


def test_every_state_ends_and_every_line_of_the_table_is_walked() -> None:
    """Whatever is told in whatever order: no exception, and only moves that the table has."""
    rng = random.Random(1)
    walked: set[tuple[State, Sign]] = set()

    class Watched(dict[tuple[State, Sign], State]):
        def get(self, key, default=None):  # type: ignore[no-untyped-def]  # a dict's own
            if key in self:
                walked.add(key)
            return super().get(key, default)

    table, module.TRANSITIONS = module.TRANSITIONS, Watched(TRANSITIONS)
    try:
        for _ in range(3000):
            ends = Ends(terms("a"), terms("b", system=rng.choice(("spidercast", "random"))))
            for _ in range(rng.randrange(1, 14)):
                end = rng.choice((ends.dialler, ends.acceptor))
                noise = Bytes(rng.choice((rng.randbytes(6), frame(Kind.MESSAGES, b""), bye_frame(Bye("x")))))
                inputs: tuple[Input, ...] = (
                    *(Made(), Tick(), Retire(), End(Bye("enough")), Drop(), Lost(True)),
                    *(HoldReading(True), HoldReading(False), noise),
                )
                ends.tell(end, rng.choice(inputs))
                ends.now += rng.choice((0.0, 0.5, 3.0))
                if rng.random() < 0.7:
                    ends.pass_on(rng.choice((1, 5, 1000)))
            for end in (ends.dialler, ends.acceptor):
                ends.tell(end, Lost(False))
                assert end.state is State.CLOSED
        misfit = Ends(terms("a"), terms("b", system="random"))
        misfit.tell(misfit.dialler, Bytes(hello_frame(misfit.acceptor.terms.hello())))
        for last in (frame(Kind.HELLO, b"again"), b""):
            retired = Ends(terms("a"), terms("b")).opened()
            retired.tell(retired.dialler, Retire())
            retired.now = PACE.dead_after
            retired.tell(retired.dialler, Bytes(last) if last else Tick())
    finally:
        module.TRANSITIONS = table
    missing = set(TRANSITIONS) - walked
    assert {(state, sign) for state, sign in missing if state is not State.CLOSED} <= {
        (State.CLOSING, Sign.BREAK),
        (State.CLOSING, Sign.LATE),
    }


def test_of_two_connections_the_lower_ids_stays_and_the_newer_of_one_side() -> None:
    low, high = sorted((ring_id("a"), ring_id("b")))
    names = {ring_id("a"): "a", ring_id("b"): "b"}

    def connection(dialled: bool, instance: int = 1) -> Connection:
        made = Connection(terms(names[low]), dialled, 0.0)
        made.hello = terms(names[high], instance=instance).hello()
        made.state = State.OPEN
        return made

    ours, theirs = connection(True), connection(False)
    assert arbitrate(low, high, ours, theirs, 0.0) is Rivalry.OLD
    assert arbitrate(low, high, theirs, ours, 0.0) is Rivalry.NEW
    assert arbitrate(high, low, ours, theirs, 0.0) is Rivalry.NEW
    assert arbitrate(low, high, ours, connection(True), 0.0) is Rivalry.NEW
    restarted = connection(False, instance=2)
    assert arbitrate(low, high, ours, restarted, PACE.heartbeat + 1) is Rivalry.NEW, "the old one is silent"
    assert arbitrate(low, high, ours, restarted, 0.1) is Rivalry.DUPLICATE, "the old one lives"


def test_a_newcomer_takes_the_place_of_the_oldest_of_the_largest_crowd() -> None:
    crowd: HalfOpen[int] = HalfOpen(4)
    for number, address in enumerate(("x", "y", "x", "x")):
        assert crowd.add(number, address) is None
    assert crowd.add(9, "z") == 0
    assert 0 not in crowd
    assert crowd.add(10, "z") == 1 or len(crowd) == 4
    crowd.remove(9)
    assert len(crowd) == 3


def test_an_address_where_nobody_answers_is_dialled_more_and_more_rarely() -> None:
    targets, victim = Targets(), Address("127.0.0.1", 80)
    dials, now = 0, 0.0
    while now < 45.0:
        if targets.may(victim, now):
            dials += 1
            targets.failed(victim, now)
        now += 0.05
    assert dials <= 9, "not 699"
    targets.reached(victim)
    assert targets.may(victim, now)


def test_dials_that_have_not_ended_count_like_those_that_failed() -> None:
    """A victim that is slow to refuse is not dialled by all who are said to be there meanwhile."""
    targets, victim = Targets(), Address("127.0.0.1", 80)
    with ExitStack() as underway:
        for _ in range(3):
            assert targets.may(victim, 0.0)
            underway.enter_context(targets.trying(victim))
        assert not targets.may(victim, 0.0)
        for port in range(1, 2000):
            if targets.may(Address("127.0.0.1", port), 0.0):
                underway.enter_context(targets.trying(Address("127.0.0.1", port)))
        assert not targets.may(Address("127.0.0.1", 3000), 0.0)
    assert targets.may(victim, 0.0)
    assert targets.may(Address("127.0.0.1", 3000), 0.0)


def test_many_ports_of_one_host_are_bounded_too() -> None:
    targets, dials = Targets(), 0
    for port in range(1, 2000):
        if targets.may(Address("192.0.2.1", port), 0.0):
            dials += 1
            targets.failed(Address("192.0.2.1", port), 0.0)
    assert dials == 256


def test_members_that_once_answered_are_no_victims() -> None:
    """A busy machine hosts hundreds of nodes: that some of them answer late must not keep all the others from
    being dialled.
    """
    targets, members = Targets(), [Address("127.0.0.1", port) for port in range(1, 1001)]
    for member in members:
        targets.reached(member)
    for _ in range(2):
        for member in members:
            assert targets.may(member, 0.0)
            targets.failed(member, 0.0)
    strangers = [Address("127.0.0.1", port) for port in range(2001, 4001)]
    dials = 0
    for stranger in strangers:
        if targets.may(stranger, 1.0):
            dials += 1
            targets.failed(stranger, 1.0)
    assert dials == 256, "they are as bounded as ever"
    assert all(targets.may(member, 1.0) for member in members)
    targets.failed(members[0], 1.0)
    assert not targets.may(members[0], 1.5), "one that is gone is tried more and more rarely"


def test_faults_add_up_to_a_ban_and_are_forgotten_in_time() -> None:
    book = Reputation()
    assert not any(book.fault(1, "offered what it does not have", float(n * 60)) for n in range(100)), (
        "one a minute"
    )
    times = sum(book.fault(2, "broke the protocol", float(n)) for n in range(10))
    assert times == 1
    assert book.banned(2, 20.0)
    assert not book.banned(2, 60.0)
    assert BANNED_AT > 0
