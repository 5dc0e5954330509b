"""A node's world in the simulator: timers, messages, lives."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from topicweave.model.event import Event
from topicweave.port import World
from topicweave.sim.host import Host
from topicweave.sim.latency import Constant
from topicweave.testing.toys import Flyer, Note, Toys

KEY = ("toy", "a")


def started(nodes: int = 2, **simulation: Any) -> Toys:
    toys = Toys(nodes, **simulation)
    toys.run(0.0)
    return toys


def rung(toys: Toys, index: int = 0) -> list[tuple[float, Any]]:
    return toys.node(index).noted("timer")


# Timers.


def test_a_timer_fires_once_and_is_forgotten() -> None:
    toys = started()
    toys.hosts[0].set_timer(KEY, 1.5)
    assert toys.hosts[0].pending_timers == [KEY]
    toys.run(10.0)
    assert rung(toys) == [(1.5, KEY)]
    assert toys.hosts[0].pending_timers == []


def test_setting_a_timer_again_moves_it_later_or_earlier() -> None:
    toys = started()
    host = toys.hosts[0]
    host.set_timer(("toy", "later"), 1.0)
    host.set_timer(("toy", "earlier"), 5.0)
    toys.run(0.5)
    host.set_timer(("toy", "later"), 3.0)
    host.set_timer(("toy", "earlier"), 1.0)
    toys.run(10.0)
    assert rung(toys) == [(1.5, ("toy", "earlier")), (3.5, ("toy", "later"))]


def test_a_cancelled_timer_does_not_fire_and_may_be_set_again() -> None:
    toys = started()
    host = toys.hosts[0]
    host.set_timer(KEY, 1.0)
    host.cancel_timer(KEY)
    host.cancel_timer(("toy", "never set"))
    host.set_timer(KEY, 2.0)
    toys.run(10.0)
    assert rung(toys) == [(2.0, KEY)]


def test_timers_are_per_node() -> None:
    toys = started()
    toys.hosts[0].set_timer(KEY, 1.0)
    toys.hosts[1].set_timer(KEY, 2.0)
    toys.hosts[0].cancel_timer(KEY)
    toys.run(10.0)
    assert (rung(toys, 0), rung(toys, 1)) == ([], [(2.0, KEY)])


Operation = tuple[float, str, int, float]
operations = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.5, 1.0]),
        st.sampled_from(["set", "cancel"]),
        st.integers(0, 2),
        st.floats(0, 3),
    ),
    max_size=30,
)


@given(operations)
def test_timers_keep_the_ports_fourth_rule(steps: list[Operation]) -> None:
    """Against a model: per key at most one moment, moved by setting, forgotten by firing or cancelling."""
    toys = started()
    host, model, expected = toys.hosts[0], dict[Any, float](), []
    for pause, what, number, delay in steps:
        now = toys.simulation.now + pause
        toys.run(now)
        expected += [(time, key) for key, time in model.items() if time <= now]
        model = {key: time for key, time in model.items() if time > now}
        key = ("toy", number)
        if what == "set":
            host.set_timer(key, delay)
            model[key] = now + delay
        else:
            host.cancel_timer(key)
            model.pop(key, None)
        assert set(host.pending_timers) == set(model)
    toys.run(toys.simulation.now + 5.0)
    expected += [(time, key) for key, time in model.items()]
    assert sorted(rung(toys)) == sorted(expected)
    assert [time for time, _ in rung(toys)] == sorted(time for time, _ in expected)


def test_timers_die_with_the_life_that_set_them() -> None:
    toys = started()
    host, old = toys.hosts[0], toys.node(0)
    host.set_timer(KEY, 1.0)
    host.power_off()
    assert host.pending_timers == []
    host.power_on(old)
    host.set_timer(("toy", "new"), 2.0)
    toys.run(10.0)
    assert rung(toys) == [(2.0, ("toy", "new"))]


def test_what_a_node_sets_after_it_was_stopped_is_not_the_next_lifes() -> None:
    """An observer may stop a node in the middle of its work."""
    toys = started()
    host, old = toys.hosts[0], toys.node(0)
    host.power_off()
    old.world.set_timer(KEY, 1.0)
    host.power_on(old)
    toys.run(10.0)
    assert rung(toys) == []


# Messages.


def test_messages_arrive_after_the_networks_delay_from_whom_they_are() -> None:
    toys = started(latency=Constant(0.25))
    toys.hosts[0].send(toys.ids[1], Note("hello"))
    toys.run(10.0)
    assert toys.node(1).noted("message") == [(0.25, (toys.ids[0], Note("hello")))]
    assert toys.node(0).noted("message") == []


def test_a_node_may_write_to_itself() -> None:
    toys = started(latency=Constant(0.25))
    toys.hosts[0].send(toys.ids[0], Note("remember"))
    toys.run(10.0)
    assert toys.node(0).noted("message") == [(0.25, (toys.ids[0], Note("remember")))]


def test_nobody_is_there_under_an_unknown_name() -> None:
    toys = started()
    toys.hosts[0].send(12345, Note("anybody?"))
    toys.run(10.0)
    assert all(toys.node(index).noted("message") == [] for index in (0, 1))


def test_messages_to_a_node_that_is_down_are_lost() -> None:
    toys = started()
    toys.hosts[0].send(toys.ids[1], Note("hello"))
    node = toys.hosts[1].power_off()
    toys.run(1.0)
    assert node is not None
    toys.hosts[1].power_on(node)
    toys.run(10.0)
    assert toys.node(1).noted("message") == []


def test_messages_under_way_arrive_at_the_next_life() -> None:
    toys = started(latency=Constant(1.0))
    toys.hosts[0].send(toys.ids[1], Note("hello"))
    node = toys.hosts[1].power_off()
    assert node is not None
    toys.run(0.5)
    toys.hosts[1].power_on(node)
    assert toys.hosts[1].up_since == 0.5
    toys.run(10.0)
    assert [time for time, _ in toys.node(1).noted("message")] == [1.0]


def test_what_a_node_delivers_is_shown_to_all_observers() -> None:
    toys = started()
    seen: list[tuple[str, Host, Event]] = []
    toys.simulation.on_delivery(lambda host, event: seen.append(("a", host, event)))
    toys.simulation.on_delivery(lambda host, event: seen.append(("b", host, event)))
    event = Event(toys.ids[0], toys.topics[0], 0, 0, b"x")
    toys.hosts[0].send(toys.ids[1], Flyer(event, 1))
    toys.run(1.0)
    assert seen == [("a", toys.hosts[1], event), ("b", toys.hosts[1], event)]


def test_an_observer_may_stop_the_node_it_is_told_of() -> None:
    toys = started()

    def stop(host: Host, _event: Event) -> None:
        toys.simulation.stop(host.index, orderly=False)

    toys.simulation.on_delivery(stop)
    event = Event(toys.ids[0], toys.topics[0], 0, 0)
    toys.hosts[0].send(toys.ids[1], Flyer(event, 1))
    toys.run(1.0)
    assert toys.simulation.up() == [0]


def test_a_host_is_a_world() -> None:
    toys = started()
    world: World = toys.hosts[0]
    toys.run(3.0)
    assert world.now == 3.0
    assert isinstance(world.random, random.Random)


def test_nodes_draw_from_streams_of_their_own_that_the_seed_and_the_name_decide() -> None:
    def draws(nodes: int, seed: int) -> list[float]:
        return [host.random.random() for host in Toys(nodes, seed=seed).hosts]

    assert draws(4, 1) == draws(4, 1)
    assert draws(8, 1)[:4] == draws(4, 1), "a node's stream does not depend on how many there are"
    assert len({*draws(4, 1), *draws(4, 2)}) == 8
