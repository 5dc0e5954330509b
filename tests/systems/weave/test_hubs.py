"""Who has many links sends others on, and takes them if they come again."""

from __future__ import annotations

from typing import Any

import pytest

from topicweave.blocks.views import FullView
from topicweave.model.ids import NodeId
from topicweave.port import Message
from topicweave.systems.spidercast.messages import Connect, ConnectOk, Leave, Redirect
from topicweave.systems.weave.node import COVER, WeaveNode
from topicweave.testing import NEWS, SPORT
from topicweave.testing.bench import Bench

ME, LONE = 9, 1000
MARGIN = 5


class Asked(Bench[WeaveNode]):
    """A node with a low id, and peers that say nothing by themselves."""

    def __init__(self, **parameters: Any) -> None:
        super().__init__("weave", heartbeat_period=60.0, suspect_after=100.0, margin=MARGIN, **parameters)
        world = self.world(ME)
        view = FullView(world, ME, frozenset({NEWS, SPORT}), self.directory)
        self.node = WeaveNode(world, ME, [NEWS, SPORT], view, self.parameters)
        world.host(self.node)
        self.node.start([])

    def answer(self, peer: NodeId, topic: int = NEWS) -> type[Message]:
        """To one who asks for a link."""
        self.log.clear()
        self.tell(peer, ME, Connect(COVER, 1, 1, 1, frozenset({topic})))
        return next(type(sent.message) for sent in self.log if sent.receiver == peer)

    def fill(self, links: int) -> None:
        for peer in range(10, 10 + links):
            assert self.answer(peer) is ConnectOk


def test_a_hub_sends_on_while_it_still_has_room() -> None:
    bench = Asked(hubs=1.0, busy=3, most_links=10)
    bench.fill(7)
    for peer in range(100, 103 + MARGIN):
        assert bench.answer(peer) in (Leave, Redirect)
        assert bench.answer(peer) is ConnectOk
    assert bench.node.degree == 10 + MARGIN
    assert bench.answer(LONE, SPORT) is Leave
    assert bench.answer(LONE, SPORT) in (Leave, Redirect)  # full


def test_a_saturated_hub_takes_the_lone_asker_of_a_topic() -> None:
    """Nobody else wants what it wants: who does not know another one comes again."""
    bench = Asked(hubs=1.0, busy=3, most_links=10)
    bench.fill(7)
    assert bench.answer(LONE, SPORT) is Leave
    assert bench.answer(LONE, SPORT) is ConnectOk


def test_others_send_on_sooner() -> None:
    bench = Asked(hubs=0.0, busy=3, most_links=10)
    bench.fill(3)
    assert bench.answer(100) in (Leave, Redirect)


@pytest.mark.parametrize(("own", "busy"), [(True, 7), (False, 3)])
def test_a_hub_stands_in_for_longer(own: bool, busy: int) -> None:
    bench = Asked(hubs=float(own), busy=3, most_links=10)
    assert bench.node._busy(NodeId(5)) == busy
