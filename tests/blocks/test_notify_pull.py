"""Notify and pull: everybody gets each event once, pulls it once, and asks another if the first is silent."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from topicweave.blocks.late_neighbours import LateEvent
from topicweave.blocks.notify_pull import (
    LateNotify,
    Notify,
    NotifyInline,
    NotifyPull,
    NotifyPullParameters,
    Pull,
    Pulled,
)
from topicweave.model.event import Event
from topicweave.model.ids import NodeId
from topicweave.testing import VirtualNetwork

EVENT = Event(publisher=1, topic=9, epoch=1, sequence=0, payload=b"news")


class Spreader:
    def __init__(
        self, net: VirtualNetwork, node: NodeId, peers: Sequence[NodeId], parameters: NotifyPullParameters
    ) -> None:
        self.got: list[Event] = []
        self.ages: list[float] = []
        world = net.world(node)

        def deliver(event: Event, age: float) -> None:
            self.got.append(event)
            self.ages.append(age)

        self.events = NotifyPull(world, lambda _topic, _source: peers, deliver, parameters)
        world.use(self.events)


def clique(net: VirtualNetwork, size: int, parameters: NotifyPullParameters) -> dict[NodeId, Spreader]:
    nodes = range(1, size + 1)
    return {node: Spreader(net, node, [peer for peer in nodes if peer != node], parameters) for node in nodes}


@pytest.mark.parametrize("inline", [0, 1000])
def test_everybody_gets_an_event_once(inline: int) -> None:
    net = VirtualNetwork()
    nodes = clique(net, 6, NotifyPullParameters(inline=inline))
    assert nodes[1].events.publish(EVENT) == 5
    net.run(5.0)
    assert all(node.got == [EVENT] for peer, node in nodes.items() if peer != 1)
    assert not any(node.events.known_peers() for node in nodes.values())


def test_the_event_is_pulled_once_from_the_first_notifier() -> None:
    net = VirtualNetwork()
    nodes = clique(net, 6, NotifyPullParameters())
    net.listen()
    nodes[1].events.publish(EVENT)
    net.run(5.0)
    kinds = [type(message) for _, _, _, message in net.log]
    assert kinds.count(Pull) == kinds.count(Pulled) == 5
    assert kinds.count(Notify) == 5 + 5 * 4


def test_small_payloads_travel_with_the_notification() -> None:
    net = VirtualNetwork()
    nodes = clique(net, 3, NotifyPullParameters(inline=len(EVENT.payload) + 1))
    net.listen()
    nodes[1].events.publish(EVENT)
    net.run(5.0)
    assert {type(message) for _, _, _, message in net.log} == {NotifyInline}


def test_the_next_notifier_is_asked_when_the_first_does_not_answer() -> None:
    net = VirtualNetwork()
    reader = Spreader(net, 1, [], NotifyPullParameters())
    holder = Spreader(net, 3, [], NotifyPullParameters())
    holder.events.publish(EVENT)
    net.send(2, 1, Notify(EVENT.id, 1))  # node 2 is dead by now
    net.send(3, 1, Notify(EVENT.id, 1))
    net.run(5.0)
    assert reader.got == [EVENT]


def test_an_event_nobody_gives_is_given_up() -> None:
    net = VirtualNetwork()
    reader = Spreader(net, 1, [], NotifyPullParameters())
    net.send(2, 1, Notify(EVENT.id, 1))
    net.run(5.0)
    assert not reader.events.known_peers()
    assert not net.worlds[1].pending


def test_memory_is_bounded_whatever_is_announced() -> None:
    net = VirtualNetwork()
    Spreader(net, 1, [], NotifyPullParameters(most_awaited=10))
    for number in range(100):
        net.send(2, 1, Notify(EVENT.id._replace(sequence=number), 1))
    net.run(0.2)
    assert len(net.worlds[1].pending) == 10


def test_an_event_nobody_could_be_told_of_is_told_of_later() -> None:
    net = VirtualNetwork()
    peers: list[NodeId] = []
    author = Spreader(net, 1, peers, NotifyPullParameters())
    reader = Spreader(net, 2, [], NotifyPullParameters())
    assert author.events.publish(EVENT) == 0
    author.events.link_up()
    peers.append(2)
    author.events.link_up()
    author.events.link_up()
    net.run(5.0)
    assert reader.got == [EVENT]


@pytest.mark.parametrize("inline", [0, 1000])
def test_who_becomes_a_neighbour_later_learns_how_old_events_are_and_so_do_those_behind_it(
    inline: int,
) -> None:
    net = VirtualNetwork()
    settings = NotifyPullParameters(inline=inline)
    author, middle, last = (
        Spreader(net, node, peers, settings) for node, peers in ((1, []), (2, [3]), (3, list[NodeId]()))
    )
    net.listen()
    author.events.publish(EVENT)
    net.run(3.0)
    author.events.appeared(EVENT.topic, 2)
    net.run(5.0)
    assert [type(message) for *_, message in net.log if not isinstance(message, Pull | Pulled)] == [
        LateEvent if inline else LateNotify
    ] * 2
    for late in (middle, last):
        assert late.got == [EVENT]
        assert 3.0 <= late.ages[0] < 4.0


def test_a_notification_of_one_who_has_it_new_makes_an_event_new() -> None:
    net = VirtualNetwork()
    reader, holder = (Spreader(net, node, [], NotifyPullParameters()) for node in (2, 3))
    holder.events.publish(EVENT)
    net.send(4, 2, LateNotify(EVENT.id, 1, 9.0))  # It does not answer.
    net.send(3, 2, Notify(EVENT.id, 1))
    net.run(5.0)
    assert (reader.got, reader.ages) == ([EVENT], [0.0])
