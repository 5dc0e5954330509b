"""The virtual network: time turned by hand, messages that are seen, lost and made up, nodes that die and restart."""

from __future__ import annotations

from topicweave.blocks.failure_detector import FailureDetector
from topicweave.model.ids import NodeId
from topicweave.port import Message, Receivers, TimerKey, Timers
from topicweave.testing import Rang, Sent, VirtualNetwork, VirtualWorld


class Ball(Message, frozen=True, array_like=True, tag="testing-ball"):
    bounces: int


class Player:
    """A block that hits the ball back, until it has bounced three times."""

    def __init__(self, world: VirtualWorld) -> None:
        self.world = world
        self.got: list[int] = []
        self.rang: list[float] = []
        world.use(self)

    def receivers(self) -> Receivers:
        return {Ball: self.hit}

    def timers(self) -> Timers:
        return {"rest": self.rested}

    def hit(self, sender: NodeId, ball: Ball) -> None:
        self.got.append(ball.bounces)
        if ball.bounces < 3:
            self.world.send(sender, Ball(ball.bounces + 1))

    def rested(self, _key: TimerKey) -> None:
        self.rang.append(self.world.now)


def two(**network: float) -> tuple[VirtualNetwork, Player, Player]:
    net = VirtualNetwork(latency=0.5, **network)  # type: ignore[arg-type]  # options of the network
    return net, Player(net.world(1)), Player(net.world(2))


def test_a_step_is_one_message_or_one_timer() -> None:
    net, one, other = two()
    one.world.send(2, Ball(2))
    other.world.set_timer(("rest",), 0.7)
    assert net.step() == Sent(0.5, 1, 2, Ball(2))
    assert (one.got, other.got) == ([], [2])
    assert net.step() == Rang(0.7, 2, ("rest",))
    assert other.rang == [0.7]
    assert net.step() == Sent(1.0, 2, 1, Ball(3))
    assert net.step() is None
    assert net.now == 1.0


def test_a_step_passes_over_what_comes_to_nothing() -> None:
    """A timer that was moved or cancelled, and a message to nobody."""
    net, one, _ = two()
    one.world.set_timer(("rest",), 1.0)
    one.world.set_timer(("rest",), 2.0)
    one.world.set_timer(("rest", 1), 1.5)
    one.world.cancel_timer(("rest", 1))
    one.world.send(99, Ball(0))
    assert net.step() == Rang(2.0, 1, ("rest",))
    assert net.step() is None
    assert one.rang == [2.0]


def test_time_passes_though_nothing_happens() -> None:
    net, one, other = two()
    net.run(3.0)
    one.world.send(2, Ball(0))
    net.run_for(10.0)
    assert net.now == 13.0
    assert (one.got, other.got) == ([1, 3], [0, 2])


def test_what_is_cut_or_lost_does_not_arrive_and_is_in_the_log_all_the_same() -> None:
    net, one, other = two()
    net.listen()
    net.cut = lambda sender, receiver: (sender, receiver) == (1, 2)
    one.world.send(2, Ball(3))
    net.cut = lambda sender, receiver: False
    net.lose = lambda sent: sent.message == Ball(7)
    other.world.send(1, Ball(7))
    other.world.send(1, Ball(3))
    net.run(1.0)
    assert (one.got, other.got) == ([3], [])
    assert net.sent(Ball) == [Ball(3), Ball(7), Ball(3)]
    assert net.sent(Ball, sender=1) == net.sent(Ball, receiver=2) == [Ball(3)]
    assert net.messages == 3
    net.listen()
    assert net.log == []


def test_a_share_is_lost_at_random_and_the_same_seed_loses_the_same() -> None:
    def arrived(seed: int) -> list[int]:
        net, one, other = two(seed=seed, loss=0.3)
        for number in range(1000):
            one.world.send(2, Ball(3 + number))
        net.run(1.0)
        return other.got

    assert 600 < len(arrived(1)) < 800
    assert arrived(1) == arrived(1) != arrived(2)


def test_a_dead_node_hears_nothing_and_its_timers_never_end() -> None:
    net, one, other = two()
    one.world.send(2, Ball(0))
    other.world.set_timer(("rest",), 1.0)
    net.kill([2])
    net.run(5.0)
    assert (one.got, other.got, other.rang) == ([], [], [])


def test_a_second_world_is_a_life_of_its_own() -> None:
    net, one, first = two()
    first.world.set_timer(("rest",), 1.0)
    second = Player(net.world(2))
    second.world.set_timer(("rest",), 2.0)
    one.world.send(2, Ball(3))
    net.run(5.0)
    assert (first.got, first.rang) == ([], [])
    assert (second.got, second.rang) == ([3], [2.0])


def test_a_block_of_ours_runs_in_it() -> None:
    net = VirtualNetwork()
    world = net.world(1)
    suspected: list[NodeId] = []
    detector = FailureDetector(world, 1.0, 3.0, lambda peers: None, suspected.append)
    world.use(detector)
    detector.start()
    detector.watch(2)
    net.run(2.0)
    assert suspected == []
    net.run(6.0)
    assert suspected == [2]
