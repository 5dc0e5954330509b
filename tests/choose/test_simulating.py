"""A swarm in virtual time, by names."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import topicweave
from topicweave.choose import Delivery
from topicweave.errors import BadInput, UnknownName

NO_BYTES: Any = "text"
LISTS = {"ann": ["news", "go"], "bob": ["news"], "eve": ["go", "news"], "dan": ["go"]}


def test_deliveries_are_told_by_name_and_time() -> None:
    swarm = topicweave.simulate(LISTS, "spidercast", latency="20ms", seed=1)
    got: list[Delivery] = []
    swarm.on_delivery(got.append)
    swarm.run(until=5.0)
    swarm.publish("ann", "go", b"tour")
    swarm.run(until=8.0)
    assert {(one.node, one.topic, one.payload, one.publisher) for one in got} == {
        ("ann", "go", b"tour", "ann"),
        ("eve", "go", b"tour", "ann"),
        ("dan", "go", b"tour", "ann"),
    }
    assert min(one.time for one in got if one.node != "ann") == pytest.approx(5.02)
    assert swarm.now == 8.0


def test_the_same_calls_give_the_same_run() -> None:
    def played() -> list[Delivery]:
        swarm = topicweave.simulate(LISTS, "rappel", latency="10-100ms", seed=3)
        got: list[Delivery] = []
        swarm.on_delivery(got.append)
        swarm.run(until=60.0)
        swarm.publish("bob", "news", b"x")
        swarm.run(until=70.0)
        return got

    assert played() == played() != []


def test_who_left_is_not_expected_to_receive() -> None:
    swarm = topicweave.simulate(LISTS, "spidercast")
    swarm.run(until=5.0)
    swarm.crash("eve")
    swarm.leave("dan")
    assert swarm.up == ["ann", "bob"]
    swarm.run(until=30.0)
    swarm.publish("ann", "news")
    swarm.run(until=40.0)
    assert swarm.measures()["hit_ratio"] == 1.0
    assert swarm.links("ann") == ["bob"]


def test_interests_may_change() -> None:
    swarm = topicweave.simulate(LISTS, "spidercast")
    got: list[Delivery] = []
    swarm.on_delivery(got.append)
    swarm.run(until=5.0)
    swarm.subscribe("bob", "go")
    swarm.unsubscribe("dan", "go")
    swarm.run(until=10.0)
    swarm.publish("ann", "go")
    swarm.run(until=15.0)
    assert {one.node for one in got} == {"ann", "bob", "eve"}


def test_mistakes_are_told_in_words() -> None:
    swarm = topicweave.simulate(LISTS)
    swarm.run(until=1.0)
    with pytest.raises(UnknownName, match="unknown node 'zoe'; known: ann, bob"):
        swarm.publish("zoe", "news")
    with pytest.raises(UnknownName, match="unknown topic 'chess'"):
        swarm.publish("ann", "chess")
    with pytest.raises(BadInput, match=r"a payload of type str; give bytes"):
        swarm.publish("ann", "news", NO_BYTES)
    with pytest.raises(BadInput, match="it is 1 s already"):
        swarm.run(until=0.5)


def test_a_swarm_is_shown_and_measured_as_a_table() -> None:
    swarms = [topicweave.simulate(LISTS, system, seed=1) for system in ("spidercast", "broker")]
    for swarm in swarms:
        swarm.run(until=5.0)
        swarm.publish("ann", "news", b"x")
        swarm.run(until=10.0)
    frame = pd.concat([swarm.to_pandas() for swarm in swarms])
    assert frame.index.tolist() == [("spidercast", 1), ("broker", 1)]
    assert frame.loc[("spidercast", 1), "hops_mean"] == swarms[0].measures()["hops_mean"]
    swarms[0].crash("dan")
    shown = swarms[0]._repr_html_()
    assert "<td>3 of 4</td>" in shown
    assert "<td>10 s</td>" in shown
    degrees = [len(swarms[0].links(name)) for name in ("ann", "bob", "eve")]
    assert f"<th>links per node</th><td>{sum(degrees) / 3:.1f}</td>" in shown
