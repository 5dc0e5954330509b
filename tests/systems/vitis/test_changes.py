"""Profiles told as changes: what is rebuilt is what was meant, and whoever lacks the profile before asks for
all of it.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.systems.vitis.virtual import VirtualNetwork
from topicweave.blocks.descriptors import Descriptor
from topicweave.port import Message
from topicweave.sim.faults import Duplication, Fault, Loss, Reordering
from topicweave.sim.host import Host
from topicweave.systems.vitis import VitisNode
from topicweave.systems.vitis.changes import change, changed
from topicweave.systems.vitis.messages import Profile, ProfileChange, TellProfile

SETTLED = 30.0
CELL = st.integers(0, (1 << 64) - 1) | st.integers(0, 2)
COLUMNS = st.integers(0, 6).flatmap(
    lambda topics: st.tuples(*2 * [st.lists(CELL, min_size=3 * topics, max_size=3 * topics)])
)


def profile(proposals: list[int], number: int, chosen: bool = True, version: int = 1) -> Profile:
    topics = frozenset(range(len(proposals) // 3))
    return Profile(
        Descriptor(9, 0.0, version, topics), chosen, np.array(proposals, dtype="<u8").tobytes(), number
    )


@given(COLUMNS, st.booleans())
def test_a_change_turns_one_profile_into_the_other(
    columns: tuple[list[int], list[int]], chosen: bool
) -> None:
    before, after = profile(columns[0], 4), profile(columns[1], 7, chosen)
    said = change(before, after)
    assert said is not None
    assert changed(before, said) == after
    assert len(said.places) == 4 * sum(
        columns[0][place::topics] != columns[1][place::topics]
        for topics in [len(columns[0]) // 3]
        for place in range(topics)
    )


def test_another_interest_is_told_in_full() -> None:
    assert change(profile([1, 1, 0], 1), profile([1, 1, 0], 2, version=2)) is None
    assert change(profile([1, 1, 0], 1), profile([1, 2, 1, 2, 0, 0], 2)) is None


@pytest.mark.parametrize(
    ("places", "proposals"),
    [
        (b"\0\0\0\0", b""),
        (b"\0\0\0", b"x" * 18),
        (b"\1\0\0\0", b"x" * 24),
        (b"", b"x"),
        (b"\xff" * 4, b"x" * 24),
    ],
)
def test_a_change_that_makes_no_sense_is_none(places: bytes, proposals: bytes) -> None:
    assert changed(profile([1, 1, 0], 1), ProfileChange(1, 2, True, places, proposals)) is None


class Overheard:
    """What nodes send, while it is listened to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[Message] = []
        send = Host.send

        def overhear(host: Host, peer: int, message: Message) -> None:
            self.sent.append(message)
            send(host, peer, message)

        monkeypatch.setattr(Host, "send", overhear)

    def count(self, kind: type[Message]) -> int:
        return sum(type(message) is kind for message in self.sent)


def agreed(network: VirtualNetwork) -> bool:
    """Whether every neighbour has the proposals of every node as they are."""
    nodes = network.nodes()
    return all(
        neighbour.said is not None and neighbour.said.proposals == nodes[peer]._proposals()
        for node in nodes.values()
        for peer, neighbour in node.table.items()
        if not neighbour.fading
    )


def unsettle(network: VirtualNetwork) -> None:
    """Another node leads some clusters: proposals change far and wide, interests do not."""
    for index in network.sim.up()[:3]:
        network.sim.stop(index, orderly=True)


def test_proposals_that_change_are_told_as_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    network = VirtualNetwork("vitis", table_size=6)
    network.sim.run(SETTLED)
    heard = Overheard(monkeypatch)
    unsettle(network)
    network.sim.run(SETTLED + 20.0)
    changes = [message for message in heard.sent if isinstance(message, ProfileChange)]
    assert len(changes) > 3 * heard.count(Profile)
    assert sum(len(message.places) for message in changes) > 0
    assert heard.count(TellProfile) < len(changes) / 20
    assert agreed(network)


def test_who_speaks_an_earlier_wire_format_is_told_all(monkeypatch: pytest.MonkeyPatch) -> None:
    network = VirtualNetwork("vitis", table_size=6)
    monkeypatch.setattr(Host, "understands", lambda _host, _peer, kind: kind.wire < ProfileChange.wire)
    heard = Overheard(monkeypatch)
    network.sim.run(SETTLED)
    unsettle(network)
    network.sim.run(SETTLED + 20.0)
    assert heard.count(ProfileChange) == 0 < heard.count(Profile)
    assert agreed(network)


@pytest.mark.parametrize(
    "fault",
    [Loss(SETTLED, 60.0, 0.2), Reordering(SETTLED, 60.0, 0.3, 5.0), Duplication(SETTLED, 60.0, 0.3)],
    ids=lambda fault: type(fault).__name__,
)
def test_whoever_missed_a_change_asks_and_is_told_all(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    network = VirtualNetwork("vitis", faults=[fault], table_size=6)
    network.sim.run(SETTLED)
    heard = Overheard(monkeypatch)
    unsettle(network)
    network.sim.run(60.0)
    assert heard.count(ProfileChange) > 0
    assert heard.count(TellProfile) > 0 or isinstance(fault, Duplication)
    network.sim.run(90.0)
    assert agreed(network)
    assert network.missed() == []


def test_a_change_of_a_stranger_or_of_nonsense_is_answered_by_a_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = VirtualNetwork("vitis", table_size=6)
    network.sim.run(SETTLED)
    node = network.node(0)
    assert isinstance(node, VitisNode)
    peer, neighbour = next((peer, end) for peer, end in node.table.items() if end.said is not None)
    assert neighbour.said is not None
    before, number = neighbour.said, neighbour.said.number
    stranger = next(other for other in network.nodes() if other not in node.table and other != node.id)
    heard = Overheard(monkeypatch)
    node.receive(peer, ProfileChange(number - 1, number + 1, before.chosen, b"", b""))
    node.receive(peer, ProfileChange(number, number + 1, before.chosen, b"\xff" * 4, b"\0" * 24))
    node.receive(stranger, ProfileChange(0, 1, True, b"", b""))
    assert heard.sent == 3 * [TellProfile()]
    assert neighbour.said is before
    node.receive(peer, ProfileChange(number - 1, number, before.chosen, b"", b""))  # a second copy
    assert heard.count(TellProfile) == 3
