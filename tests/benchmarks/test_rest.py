"""Frames that nodes at rest send, and how many there would be if parts waited for each other."""

from __future__ import annotations

import pytest

from benchmarks.rest import Sent, at_once, if_all_wait, on_a_beat, watched
from topicweave.blocks.membership import DIRECTORY
from topicweave.port import Message
from topicweave.sim.host import Host
from topicweave.sim.network import Network
from topicweave.sim.simulation import Simulation
from topicweave.systems.registry import find_system
from topicweave.workloads import generate

A, B, C = 1, 2, 3


def test_messages_of_one_moment_to_one_peer_share_a_frame() -> None:
    sent = [Sent(A, B, 1.0, True), Sent(A, B, 1.0, True), Sent(A, C, 1.0, True), Sent(B, A, 1.0, False)]
    assert at_once(sent) == 3
    assert at_once([*sent, Sent(A, B, 1.25, True)]) == 4


def test_on_a_beat_what_timers_send_waits_and_answers_do_not() -> None:
    close = [Sent(A, B, 1.0 + step / 1000, True) for step in range(1000)]
    assert on_a_beat(close, beat=0.5) == 3
    answers = [one._replace(timed=False) for one in close]
    assert on_a_beat(answers, beat=0.5) == 1000
    assert on_a_beat([close[0], close[0]._replace(peer=C)], beat=0.5) == 2


def test_a_frame_leaves_so_long_after_its_first_message() -> None:
    sent = [Sent(A, B, moment, False) for moment in (1.0, 1.4, 1.5, 1.6, 2.1)]
    assert if_all_wait(sent, longest=0.5) == 2
    assert if_all_wait([*sent, Sent(A, C, 2.1, False)], longest=0.5) == 3


def test_all_that_nodes_send_is_seen_and_what_timers_send_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = Simulation(
        generate(12, 6, "rss", min_size=3, max_size=3), find_system("spidercast"), membership=DIRECTORY
    )
    simulation.run(5.0)
    seen: list[Message] = []
    send = Network.send

    def counting(network: Network, source: Host, peer: int, message: Message) -> None:
        seen.append(message)
        send(network, source, peer, message)

    monkeypatch.setattr(Network, "send", counting)
    with watched() as sent:
        simulation.run(10.0)
    assert len(sent) == len(seen) > 100
    assert 0 < sum(one.timed for one in sent) < len(sent)
    assert if_all_wait(sent) <= on_a_beat(sent) <= at_once(sent) <= len(sent)
