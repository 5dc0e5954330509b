"""Relay paths and the spread of events as arrays: against a plain walk, the measures of tables, and nodes in
the simulator.
"""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from topicweave.blocks.small_world import Router
from topicweave.bulk.vitis.engine import VitisEngine, measured
from topicweave.measures import delivery
from topicweave.measures.columns import names_array
from topicweave.measures.interests import Interests
from topicweave.measures.traffic import noise_by_node, traffic_measures
from topicweave.model.workload import Workload
from topicweave.papers.vitis.lists import CorrelatedLists
from topicweave.port import EventMessage
from topicweave.sim.host import Host
from topicweave.sim.simulation import Simulation
from topicweave.systems.baselines.rvr import RVR, RVRParameters
from topicweave.systems.vitis import VITIS, VitisParameters
from topicweave.systems.vitis.node import VitisNode
from topicweave.systems.vitis.rendezvous import RendezvousNode

Told = tuple[int, int, int, int]
"""(receiver, sender, hops, order)"""


def walked(
    workload: Workload,
    links: dict[int, list[int]],
    kept: dict[int, list[int]],
    asking: dict[int, set[int]],
    system: str,
    hand_on: bool,
    topic: int,
    publisher: int,
) -> list[Told]:
    """One event, with dictionaries and the routers that nodes have: every notification."""
    ids, point = workload.node_ids, workload.topic_ids[topic]
    node_of = {node_id: node for node, node_id in enumerate(ids)}
    wants = set(workload.subscribers(topic).tolist())

    def following(node: int) -> int:
        return node_of[Router(ids[node], [ids[peer] for peer in kept[node]]).next_hop(point)]

    up: dict[int, int] = {}
    climbing = deque(asking[topic])
    while climbing:
        node = climbing.popleft()
        if node not in up and following(node) != node:
            up[node] = following(node)
            climbing.append(up[node])
    beside: dict[int, set[int]] = {}
    for node, parent in up.items():
        beside.setdefault(node, set()).add(parent)
        beside.setdefault(parent, set()).add(node)
    on_path = {*asking[topic], *beside}
    told: list[Told] = []
    seen, queue = {publisher}, deque([(publisher, -1, 0)])
    while queue:
        node, source, hops = queue.popleft()
        targets = set(beside.get(node, ()))
        if system == "vitis" and (source < 0 or node in wants or hand_on):
            targets |= wants.intersection(links[node])
        if not targets or (node not in wants and node not in on_path):
            targets |= {following(node)} - {node}
        for peer in sorted(targets - {source}):
            told.append((peer, node, hops + 1, len(told)))
            if peer not in seen:
                seen.add(peer)
                queue.append((peer, node, hops + 1))
    return told


def as_tables(
    workload: Workload, events: list[tuple[int, int]], told: list[list[Told]]
) -> delivery.Receptions:
    """What telemetry would have of these notifications."""
    names = workload.node_names
    publishes = pa.table(
        {
            "event": list(range(len(events))),
            "topic": [workload.topic_names[topic] for topic, _ in events],
            "node": [names[node] for _, node in events],
            "time": [0.0] * len(events),
        }
    )
    rows = [
        (number, peer, sender, hops, order)
        for number, notifications in enumerate(told)
        for peer, sender, hops, order in notifications
    ]
    wants = [set(workload.subscribers(topic).tolist()) for topic, _ in events]
    deliveries = pa.table(
        {
            "event": [row[0] for row in rows],
            "node": [names[row[1]] for row in rows],
            "sender": [names[row[2]] for row in rows],
            "hops": [row[3] for row in rows],
            "time": [float(row[3]) + row[4] / 1e9 for row in rows],
            "wanted": [row[1] in wants[row[0]] for row in rows],
        }
    )
    return delivery.Receptions.of(publishes, deliveries)


def settled(system: str, hand_on: bool, seconds: float) -> tuple[Workload, VitisEngine]:
    workload = CorrelatedLists(80, 40, "random", 5, 4, seed=3).load()
    parameters: Any = (
        VitisParameters(table_size=6, rates="equal", relays_hand_on=hand_on)
        if system == "vitis"
        else RVRParameters(table_size=6)
    )
    overlay = VitisEngine(parameters, workload, seed=5)
    overlay.run(seconds)
    return workload, overlay


@pytest.mark.parametrize("seconds", [1.5, 30.0])
@pytest.mark.parametrize(("system", "hand_on"), [("vitis", True), ("vitis", False), ("rvr", True)])
def test_events_spread_as_a_plain_walk_and_the_measures_of_tables_say(
    system: str, hand_on: bool, seconds: float
) -> None:
    """Before and after the overlay has settled: paths that do not meet, links that fade, and events that miss
    some are in it.
    """
    workload, overlay = settled(system, hand_on, seconds)
    rng = random.Random(1)
    events = [
        (topic, rng.choice(workload.subscribers(topic).tolist()))
        for topic in [*range(workload.topics), 3, 7]
        if len(workload.subscribers(topic)) > 1
    ]
    spread = overlay.spread(events)
    node_at = np.argsort(overlay.number)
    gossip, degree = overlay.gossip, overlay.gossip.degree
    links = {
        int(node_at[place]): node_at[gossip.links[place, : degree[place]]].tolist()
        for place in range(workload.nodes)
    }
    kept = {
        int(node_at[place]): [
            int(node_at[peer])
            for peer, ends in zip(
                gossip.links[place, : degree[place]], gossip.ends[place, : degree[place]], strict=True
            )
            if ends
        ]
        for place in range(workload.nodes)
    }
    asking: dict[int, set[int]] = {topic: set() for topic in range(workload.topics)}
    owner = np.repeat(np.arange(workload.nodes), np.diff(overlay.subscribers.offsets))
    for place in overlay.asking().nonzero()[0].tolist():
        asking[int(overlay.subscribers.topics[place])].add(int(node_at[owner[place]]))

    told = [walked(workload, links, kept, asking, system, hand_on, *event) for event in events]
    receptions = as_tables(workload, events, told)
    interests = Interests.of(workload.tables()["subscriptions"], names_array(workload.node_names))
    result = measured(spread, events, workload)
    assert result["hit_ratio"] == delivery.hit_ratio(receptions, interests)
    assert (result["hit_ratio"] == 1.0) == (seconds == 30.0)
    expected = traffic_measures(receptions.traffic)
    for name, table in expected.items():
        # Who of several came first at a node decides who is not told again: not settled by the rules.
        loose = name in ("noise_all", "noise_all_node_mean", "duplicates")
        assert result[name] == pytest.approx(table, rel=0.03 if loose else 1e-9), name
    first, every = noise_by_node(spread.traffic), noise_by_node(spread.traffic, repetitions=True)
    assert np.isnan(first).sum() == workload.nodes - len(np.unique(receptions.node[receptions.first]))
    assert (np.nan_to_num(every) <= 1.0).all()


@pytest.mark.parametrize("system", ["vitis", "rvr"])
def test_over_the_links_of_settled_nodes_events_go_where_the_nodes_send_them(system: str) -> None:
    """The same links and the same gateways: then the same receivers, after as many hops."""
    lists = CorrelatedLists(60, 40, "low", 10, 8, seed=2)
    workload = lists.load()
    spreading = {"inline": 1}
    found = VITIS if system == "vitis" else RVR
    extra = {"rates": "equal"} if system == "vitis" else {}
    parameters = found.settings(table_size=6, spreading=spreading, **extra)
    simulation = Simulation(workload, found, parameters, seed=4)
    simulation.run(90.0)
    overlay = VitisEngine(parameters, workload, seed=4)
    copy_links(simulation, overlay)
    received: dict[tuple[int, int], int] = {}

    def note(host: Host, _sender: int, message: EventMessage) -> None:
        received.setdefault((message.event.topic, host.index), message.hops)

    simulation.on_reception(note)
    rng = random.Random(9)
    events = [(topic, rng.choice(workload.subscribers(topic).tolist())) for topic in range(workload.topics)]
    for topic, publisher in events:
        simulation.publish(publisher, topic)
    simulation.run(90.2 + 0.05 * 20)
    publishers = {(workload.topic_ids[topic], node) for topic, node in events}
    wanted = {
        key: hops
        for key, hops in received.items()
        if key not in publishers and key[0] in simulation.node(key[1]).subscriptions
    }
    spread = overlay.spread(events)
    counts = np.bincount(list(wanted.values()), minlength=len(spread.traffic.hops))
    assert spread.traffic.hops.tolist() == counts.tolist()
    assert int(spread.traffic.first_wanted.sum()) == len(wanted) == len(workload.topic_index) - len(events)
    unwanted = len([key for key in received if key not in wanted and key not in publishers])
    assert int(spread.traffic.first_unwanted.sum()) == unwanted


def copy_links(simulation: Simulation, overlay: VitisEngine) -> None:
    """Give the arrays the state of nodes."""
    ids = simulation.workload.node_ids
    number = dict(zip(ids, overlay.number.tolist(), strict=True))
    gossip, offsets = overlay.gossip, overlay.subscribers.offsets
    for index in simulation.up():
        node, place = simulation.node(index), overlay.number[index]
        assert isinstance(node, RendezvousNode)
        assert not any(neighbour.fading for _, neighbour in node.table.items()), "the overlay has not settled"
        for link, peer in enumerate(node.table):
            gossip.links[place, link], gossip.ends[place, link] = number[peer], 1
        gossip.degree[place] = len(node.table)
        if isinstance(node, VitisNode):
            asked = node._topics_to_relay()
            for at in range(offsets[place], offsets[place + 1]):
                topic = simulation.workload.topic_ids[overlay.subscribers.topics[at]]
                gossip.paths_until[at] = np.inf if topic in asked else -np.inf
