"""How a node of Weave finds another lower neighbour when one is gone: among peers that a test speaks for."""

from __future__ import annotations

from topicweave.blocks.topic_directory import Parts
from topicweave.blocks.views import FullView
from topicweave.model.ids import NodeId, TopicId
from topicweave.systems.spidercast.messages import Connect, ConnectOk, Redirect
from topicweave.systems.weave.node import COVER, WeaveNode
from topicweave.testing import NEWS, SPORT
from topicweave.testing.bench import Bench

ME = 9


class ToldView(FullView):
    """A view whose membership service the test speaks for."""

    parts: Parts

    def serve(self, parts: Parts) -> None:
        self.parts = parts


class Alone(Bench[WeaveNode]):
    """One node, and peers that its view knows of and that say nothing by themselves."""

    def __init__(self, *topics: TopicId, **peers: set[TopicId]) -> None:
        super().__init__("weave", heartbeat_period=60.0, suspect_after=100.0)
        for peer, interest in peers.items():
            self.directory.put(int(peer.removeprefix("n")), frozenset(interest))
        world = self.world(ME)
        self.view = ToldView(world, ME, frozenset(topics), self.directory)
        self.node = WeaveNode(world, ME, topics, self.view, self.parameters)
        world.host(self.node)
        self.node.start([])
        self.timeout = self.node.parameters.answer_timeout
        self.pause = 2 * self.node.parameters.connect_timeout

    def asked(self, seconds: float) -> list[NodeId]:
        """Whom the node asks for a link meanwhile."""
        self.log.clear()
        self.run_for(seconds)
        return [sent.receiver for sent in self.log if isinstance(sent.message, Connect)]

    def sends_on(self, peer: NodeId, other: NodeId) -> None:
        self.tell(peer, ME, Redirect(COVER, other))

    def takes(self, peer: NodeId, *topics: TopicId) -> None:
        self.tell(peer, ME, ConnectOk(COVER, 1, 1, 1, frozenset(topics)))


def test_who_is_sent_on_to_one_that_is_gone_goes_back_at_once() -> None:
    """Whoever sent it on lives, and takes who comes again: it does not have to be in the view still."""
    bench = Alone(NEWS, n3={NEWS})
    assert bench.asked(bench.pause) == [3]
    bench.sends_on(3, 5)
    bench.directory.discard(3)
    assert bench.asked(bench.timeout) == [5]
    assert bench.asked(bench.pause) == [3]


def test_who_would_go_back_asks_others_first() -> None:
    """Who sent it on has many links."""
    bench = Alone(NEWS, n3={NEWS})
    assert bench.asked(bench.pause) == [3]
    bench.sends_on(3, 5)
    bench.directory.discard(3)
    bench.directory.put(4, frozenset({NEWS}))
    assert bench.asked(bench.timeout) == [5]
    assert bench.asked(bench.timeout) == [4]
    assert bench.asked(bench.pause) == [3]


def test_who_is_sent_on_to_one_that_does_not_want_what_is_lacking_goes_back_at_once() -> None:
    bench = Alone(NEWS, SPORT, n3={NEWS})
    assert bench.asked(bench.pause) == [3]
    bench.sends_on(3, 5)
    assert bench.asked(bench.pause) == [5]
    bench.takes(5, SPORT)
    assert bench.asked(bench.pause) == [3]


def test_who_is_sent_on_to_one_known_to_be_of_no_help_does_not_ask_it() -> None:
    bench = Alone(NEWS, n3={NEWS}, n5={SPORT})
    assert bench.asked(bench.pause) == [3]
    bench.sends_on(3, 5)
    assert bench.asked(bench.pause) == [3]


def test_who_always_names_another_is_gone_back_to_once() -> None:
    bench = Alone(NEWS, n3={NEWS})
    assert bench.asked(bench.pause) == [3]
    bench.sends_on(3, 5)
    assert bench.asked(bench.timeout) == [5]
    assert bench.asked(bench.pause) == [3]
    bench.sends_on(3, 6)
    assert bench.asked(bench.timeout) == [6]
    assert bench.asked(bench.pause) == []


def test_who_found_another_does_not_go_back() -> None:
    bench = Alone(NEWS, n3={NEWS})
    assert bench.asked(bench.pause) == [3]
    bench.sends_on(3, 5)
    assert bench.asked(bench.pause) == [5]
    bench.takes(5, NEWS)
    assert bench.asked(bench.timeout) == []


def test_the_way_back_is_forgotten_after_a_while() -> None:
    """Who sent it on would not know it any more, and may be gone."""
    bench = Alone(NEWS, n3={NEWS})
    assert bench.asked(bench.pause) == [3]
    bench.sends_on(3, 5)
    bench.directory.discard(3)
    assert bench.asked(bench.pause) == [5]
    bench.takes(5, NEWS)
    bench.run_for(61.0)
    bench.node.peer_lost(5)
    assert bench.asked(bench.timeout) == []


def test_one_that_does_not_answer_is_of_no_use_to_the_directory() -> None:
    """The home is asked for others at once, not when the silent one is given up."""
    bench = Alone(NEWS, n3={NEWS})
    assert bench.view.parts.suited(NEWS)
    assert bench.asked(bench.pause) == [3]
    assert bench.view.parts.suited(NEWS)  # It may answer yet.
    bench.run_for(bench.timeout)
    assert not bench.view.parts.suited(NEWS)
    bench.directory.put(4, frozenset({NEWS}))
    assert bench.view.parts.suited(NEWS)


def test_whom_a_home_names_is_asked_at_once() -> None:
    bench = Alone(NEWS)
    assert bench.asked(5.0) == []
    bench.directory.put(3, frozenset({NEWS}))
    bench.view.parts.named()
    assert bench.asked(bench.pause) == [3]
