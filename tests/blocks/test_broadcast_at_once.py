"""Bursts of events taken at once: the same as one by one, whatever comes."""

from __future__ import annotations

import random
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from topicweave.blocks.broadcast_tree import (
    BroadcastTree,
    BroadcastTreeParameters,
    EventRun,
    Graft,
    IHave,
    Prune,
    Push,
)
from topicweave.live.bursts import burst_from
from topicweave.model.event import Event
from topicweave.model.ids import NodeId
from topicweave.port import EventMessage, InFormat, Message, TimerKey

NEWS, PUBLISHER, SELF = 1, 7, 99
PEERS = [11, 12, 13]


class Told:
    """A world that writes down what it is asked for."""

    def __init__(self) -> None:
        self.now = 100.0
        self.random = random.Random(0)
        self.sent: list[tuple[NodeId, Message]] = []
        self.delivered: list[Event] = []
        self.timers: set[TimerKey] = set()

    def send(self, peer: NodeId, message: Message) -> None:
        self.sent.append((peer, message))

    def set_timer(self, key: TimerKey, delay: float) -> None:
        self.timers.add(key)

    def understands(self, _peer: NodeId, _kind: type[InFormat]) -> bool:
        return True

    def cancel_timer(self, key: TimerKey) -> None:
        self.timers.discard(key)

    def deliver(self, event: Event) -> None:
        self.delivered.append(event)

    most_topics = 16_384
    vouches_by = b""

    def vouch(self, _statement: bytes) -> bytes:
        return b""

    def vouched(self, _by: NodeId, _statement: bytes, _proof: bytes) -> bool:
        return True


class Side:
    """One tree, and what its world was told."""

    def __init__(self, prefer_short: bool) -> None:
        self.world = Told()
        parameters = BroadcastTreeParameters(prefer_short=prefer_short, cache_events=20)
        self.tree = BroadcastTree(
            self.world, lambda topic: PEERS, lambda topic: topic == NEWS, self.world.deliver, parameters
        )
        self.taken_at_once = 0

    def one_by_one(self, sender: NodeId, messages: Sequence[EventMessage]) -> None:
        for message in messages:
            self.tree.receivers()[Push](sender, message)

    def in_bursts(self, sender: NodeId, messages: Sequence[EventMessage]) -> None:
        at = 0
        while at < len(messages):
            burst = burst_from(messages, at)
            onward = self.tree.receive_run(sender, burst)
            if onward is None:
                self.one_by_one(sender, burst)
            else:
                self.taken_at_once += 1
                for message in onward.messages:
                    self.world.deliver(message.event)
                for peer in onward.peers:
                    for message in onward.messages:
                        self.world.send(peer, message)
            at += len(burst)

    def told(self) -> dict[NodeId, list[Message]]:
        """What each peer was sent: the order between peers does not matter."""
        return {peer: [message for to, message in self.world.sent if to == peer] for peer in PEERS}

    def state(self) -> tuple[object, ...]:
        tree = self.tree
        return (
            list(tree._cache),
            tree._ways.lazy,
            tree._ways.of,
            tree._seen.state(PUBLISHER, NEWS),
            tree._news.untold,
            [(one.first, one.last) for one in tree._news.recent],
            tree._missing.patience,
        )


batches = st.lists(
    st.tuples(
        st.sampled_from(PEERS),
        st.integers(0, 30),
        st.integers(1, 12),
        st.integers(1, 4),
        st.sampled_from([0.0, 0.05, 0.7]),
    ),
    max_size=12,
)


@given(batches, st.booleans(), st.lists(st.sampled_from(PEERS), max_size=2))
def test_bursts_are_the_same_as_one_by_one(
    arrivals: list[tuple[NodeId, int, int, int, float]], prefer_short: bool, asked: list[NodeId]
) -> None:
    single, bursts = Side(prefer_short), Side(prefer_short)
    for sender, first, count, hops, pause in arrivals:
        messages = [
            Push(Event(PUBLISHER, NEWS, 5, number, b"x"), hops) for number in range(first, first + count)
        ]
        for side in (single, bursts):
            side.world.now += pause
            side.tree._missing.asked.update(asked)
        single.one_by_one(sender, messages)
        bursts.in_bursts(sender, messages)
        assert bursts.world.delivered == single.world.delivered
        assert bursts.told() == single.told()
        assert bursts.state() == single.state()


def test_the_shorter_way_is_not_cut_by_what_was_under_way_over_both() -> None:
    """Two copies of each of two events, those over the longer way first: one way is cut, not both."""
    side = Side(prefer_short=True)
    long = [Push(Event(PUBLISHER, NEWS, 5, number), 2) for number in range(2)]
    side.one_by_one(11, long)
    side.one_by_one(12, [Push(message.event, 1) for message in long])
    assert [peer for peer, message in side.world.sent if isinstance(message, Prune)] == [11]
    assert list(side.tree.targets(NEWS)) == [12, 13]


def test_a_stream_in_order_is_taken_in_bursts() -> None:
    side = Side(prefer_short=True)
    for first in range(0, 40, 10):
        messages = [Push(Event(PUBLISHER, NEWS, 5, number), 1) for number in range(first, first + 10)]
        side.in_bursts(11, messages)
    assert side.taken_at_once == 3, "all but the beginning"
    assert [event.sequence for event in side.world.delivered] == list(range(40))


def test_events_sent_to_the_targets_are_the_same_as_published_ones() -> None:
    """Caches answer for them, new links hear of them, and they are not taken for new when they come back."""
    single, bursts = Side(prefer_short=False), Side(prefer_short=False)
    events = [Event(SELF, NEWS, 5, number, b"x") for number in range(30)]
    for event in events:
        single.tree.publish(event)
    for first in range(0, 30, 10):
        messages = [Push(event, 1) for event in events[first : first + 10]]
        for peer in bursts.tree.targets(NEWS):
            for message in messages:
                bursts.world.send(peer, message)
        bursts.tree.published(messages)
    assert bursts.told() == single.told()
    for side in (single, bursts):
        side.world.sent.clear()
        side.tree.link_up(12, frozenset({NEWS}))
        side.tree.timers()["tree-recent"](("tree-recent",))
        side.tree.receivers()[Graft](13, Graft((EventRun(SELF, NEWS, 5, 12, 29),)))
        side.one_by_one(11, [Push(events[29], 2)])
    assert bursts.told() == single.told()
    (announced,) = [message for message in bursts.told()[12] if isinstance(message, IHave)]
    assert [(run.first, run.last) for run in announced.runs] == [(10, 29)], "no more than the cache holds"
    assert not bursts.world.delivered


def test_lazy_peers_are_no_targets_but_hear_of_it() -> None:
    side = Side(prefer_short=False)
    side.tree._ways.lazy[NEWS] = {12: 0.0}
    assert list(side.tree.targets(NEWS)) == [11, 13]
    side.tree.published([Push(Event(SELF, NEWS, 5, 0), 1), Push(Event(SELF, NEWS, 5, 1), 1)])
    side.tree.timers()["tree-announce"](("tree-announce",))
    ((peer, message),) = side.world.sent
    assert peer == 12
    assert isinstance(message, IHave)
    assert [(run.first, run.last) for run in message.runs] == [(0, 1)]
