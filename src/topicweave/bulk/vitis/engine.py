"""Vitis and RVR cycle by cycle, as arrays: networks of the paper's size in seconds instead of many minutes.

The paper's own simulations were cycle-driven (PeerSim). Every node does its steps once per period, at a phase
of its own, as the nodes of `topicweave.systems.vitis` do: whom it asks, what it passes on, whom it selects,
what it proposes are the same rules (`kernels`, held to them by tests). A test and the study
`vitis/levels` compare the two. What is put in place of messages, and only that:

- what a step sends has arrived and is answered when the step ends (a message takes 0.05 s in the simulator);
- relay paths are those that the links and gateways of the last moment give; in the simulator a path that
  moved works at its old place, too, for a few seconds;
- a node's fans are not limited (`most_fans` is 1,000 there), and nobody fails.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topicweave.bulk.vitis.gossip import (
    BEAT,
    EXCHANGE,
    SAMPLE,
    Gossip,
    GossipSettings,
    new_gossip,
    pass_time,
)
from topicweave.bulk.vitis.kernels import subscribers_of
from topicweave.bulk.vitis.spreading import Audience, LinkRows, Spread, spread_events
from topicweave.errors import BadInput
from topicweave.measures.columns import codes, names_array, ratio
from topicweave.measures.delivery import Delivered, expected_deliveries
from topicweave.measures.graph import Graph, Overlay, TopicGraph
from topicweave.measures.interests import Interests
from topicweave.measures.overlay import clusters_per_topic, degree_measures
from topicweave.measures.traffic import Traffic, traffic_measures
from topicweave.model.workload import Workload
from topicweave.runs.run import Result
from topicweave.sim.churn import CONTACTS
from topicweave.systems.vitis.parameters import RendezvousParameters, VitisParameters
from topicweave.systems.vitis.selection import MAX_AGE_NEAR

Times = npt.NDArray[np.float64]


class VitisEngine:
    """All nodes of a network, at a moment that only grows. The parameters' class says which system they are of.

    A round is a second, in which every node does each of its steps once per period.
    """

    def __init__(self, parameters: RendezvousParameters, workload: Workload, seed: int) -> None:
        if workload.nodes < 2:
            raise BadInput(f"{workload.nodes} nodes: too few for an overlay; ask for 2 or more")
        if len(workload.churn):
            raise BadInput("the workload has churn: cycle by cycle nobody comes or goes; run it by messages")
        self.parameters = parameters
        self.workload = workload
        self.now = 0.0
        self.steps = 0
        self._vitis = parameters if isinstance(parameters, VitisParameters) else None
        self._rng = np.random.default_rng([seed, 0x76697469])
        self.subscribers, self.number = subscribers_of(workload, self._weights(workload))
        """The workload in the order of the ring, and each node's place there."""
        small_world = self._vitis.small_world if self._vitis else parameters.table_size - 2
        # As large as fans make it in practice; the rest of the room is never touched.
        room = min(workload.nodes, 2048)
        self.gossip: Gossip = new_gossip(
            self.subscribers,
            parameters.table_size,
            small_world,
            parameters.sampling.view_size,
            _contacts(workload.nodes, self._rng),
            room,
            self._rng,
        )
        self._settings = self._kernel_settings()
        self._phases = {
            SAMPLE: (self._rng.random(workload.nodes), parameters.sampling.period),
            EXCHANGE: (self._rng.random(workload.nodes), parameters.period),
            BEAT: (self._rng.random(workload.nodes), parameters.heartbeat_period),
        }

    def _weights(self, workload: Workload) -> Times:
        """Eq. 1's rates. Measured ones are all equal until the first event (see `MeasuredRates`)."""
        if self._vitis is None or self._vitis.rates != "given":
            return np.ones(workload.topics)
        rates = self._vitis.topic_rates
        return np.array([rates.get(topic, 0.0) for topic in workload.topic_ids])

    def _kernel_settings(self) -> GossipSettings:
        parameters, vitis = self.parameters, self._vitis
        most_hops = vitis.gateway_hops if vitis else 0
        return GossipSettings(
            samples=parameters.samples,
            ring_partners=parameters.ring_partners,
            stale=parameters.suspect_after,
            near_age=MAX_AGE_NEAR * parameters.period,
            linger=parameters.linger,
            redraw=parameters.redraw_targets,
            greet_every=parameters.sampling.greet_every,
            friends=vitis is not None,
            most_hops=most_hops,
            path_kept=(most_hops + 1) * parameters.heartbeat_period,
        )

    def step(self) -> bool:
        """A second passes. There is always another."""
        self._pass(self.now + 1.0)
        return True

    def run(self, until: float) -> None:
        """Let time pass."""
        while self.now < until:
            self._pass(min(self.now + 1.0, until))

    def _pass(self, end: float) -> None:
        due = [(step, *_due(*phase, self.now, end)) for step, phase in self._phases.items()]
        times = np.concatenate([when for _, when, _ in due])
        nodes = np.concatenate([who for _, _, who in due])
        steps = np.concatenate([np.full(len(who), step) for step, _, who in due])
        order = np.argsort(times, kind="stable")
        pass_time(
            *(self.subscribers, self.gossip, self._settings),
            *(times[order], nodes[order], steps[order], self._rng),
        )
        self.steps += len(order)
        self.now = end

    def observe(self) -> Result:
        """The links, the clusters they make, and the paths asked for."""
        overlay, gossip = self.overlay(), self.gossip
        topics = TopicGraph.of(overlay, self.workload.tables()["subscriptions"])
        return {
            "nodes": self.workload.nodes,
            "kernel_events": self.steps,
            **degree_measures(overlay),
            "clusters_per_topic": clusters_per_topic(topics),
            "table": float(gossip.table_count.mean()),
            "fans": float((gossip.degree - gossip.table_count).mean()),
            "requested_paths": self.paths_per_node(),
        }

    def ring_is_right(self) -> float:
        """The share of nodes' ring links that lead to their neighbours on the ring."""
        nodes, table = len(self.subscribers.ids), self.gossip.table
        own, full = np.arange(nodes), self.gossip.table_count
        if nodes == 2:
            return float(((table[:, 0] == 1 - own) & (full > 0)).mean())
        right = ((table[:, 0] == (own + 1) % nodes) & (full > 0)).sum()
        right += ((table[:, 1] == (own - 1) % nodes) & (full > 1)).sum()
        return float(right) / (2 * nodes)

    def asking(self) -> npt.NDArray[np.bool_]:
        """Per node and topic it wants: whether it keeps up a relay path of its own."""
        if self._vitis is None:
            return np.ones(len(self.subscribers.topics), np.bool_)
        return self.gossip.paths_until > self.now

    def paths_per_node(self) -> float:
        """Relay paths kept up, over nodes."""
        return float(self.asking().sum()) / self.workload.nodes

    def overlay(self) -> Overlay:
        """The links, those that fade included."""
        gossip, workload = self.gossip, self.workload
        one = np.repeat(np.arange(len(gossip.degree)), gossip.degree)
        used = np.arange(gossip.links.shape[1]) < gossip.degree[:, np.newaxis]
        # Overlays have their nodes in the order of names.
        nodes = np.empty(len(gossip.degree), np.int64)
        nodes[self.number] = np.argsort(np.argsort(np.array(workload.node_names)))
        names = names_array(workload.node_names)
        return Overlay(names, Graph.of_edges(len(nodes), nodes[one], nodes[gossip.links[used]]))

    def spread(self, events: list[tuple[int, int]]) -> Spread:
        """Publish (topic, publisher) pairs of the workload."""
        gossip, vitis, subscribers = self.gossip, self._vitis, self.subscribers
        nodes = np.repeat(np.arange(len(subscribers.ids)), np.diff(subscribers.offsets))
        by_topic = np.lexsort((nodes, subscribers.topics))
        wanting_at = np.searchsorted(subscribers.topics[by_topic], np.arange(len(subscribers.points) + 1))
        topics = np.array([topic for topic, _ in events], np.int64)
        publishers = self.number[np.array([node for _, node in events], np.int64)]
        order = np.argsort(topics, kind="stable")
        counts, hops, relays, path_nodes = spread_events(
            LinkRows(subscribers.ids, gossip.links, gossip.ends != 0, gossip.degree),
            Audience(subscribers.points, wanting_at, nodes[by_topic], self.asking()[by_topic]),
            *(vitis is not None, vitis is not None and vitis.relays_hand_on),
            *(topics[order], publishers[order]),
        )
        first_wanted, first_unwanted, all_wanted, all_unwanted = counts
        traffic = Traffic(
            first_wanted, first_unwanted, all_wanted, all_unwanted, hops, relays, len(np.unique(topics))
        )
        return Spread(traffic, path_nodes)


def _due(phase: Times, period: float, start: float, end: float) -> tuple[Times, npt.NDArray[np.int64]]:
    """When, from `start` and before `end`, which node's turn comes that is due at (phase + any whole number)
    x period.
    """
    times, nodes = [], []
    for turn in range(int(start / period) - 1, int(end / period) + 1):
        when = (phase + turn) * period
        (here,) = ((when >= start) & (when < end)).nonzero()
        times.append(when[here])
        nodes.append(here)
    return np.concatenate(times), np.concatenate(nodes)


def _contacts(nodes: int, rng: Any) -> npt.NDArray[np.int32]:
    """Some random others for each node, as a simulation gives them."""
    count = min(CONTACTS, nodes - 1)
    if nodes <= 2 * CONTACTS:
        rows = [rng.permutation(nodes - 1)[:count] for _ in range(nodes)]
        others = np.array(rows, np.int32)
    else:
        others = rng.integers(0, nodes - 1, (nodes, count)).astype(np.int32)
    return others + (others >= np.arange(nodes)[:, np.newaxis])


def measured(spread: Spread, events: list[tuple[int, int]], workload: Workload) -> Result:
    """What the (topic, publisher) pairs came to."""
    interests = Interests.of(workload.tables()["subscriptions"])
    topics = pa.array([workload.topic_names[topic] for topic, _ in events], pa.string())
    publishers = pa.array([workload.node_names[node] for _, node in events], pa.string())
    expected = expected_deliveries(
        interests, codes(topics, interests.topics), codes(publishers, interests.nodes)
    )
    return {
        "hit_ratio": Delivered(int(spread.traffic.first_wanted.sum()), expected).hit_ratio,
        "path_nodes_per_topic": ratio(spread.path_nodes, spread.traffic.topics),
        **traffic_measures(spread.traffic),
    }
