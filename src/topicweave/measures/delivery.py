"""Measures of what became of published events.

Only events with a row in `publishes` are measured. Of the receptions of an event at a node the *first* is the
earliest (of simultaneous ones, the earliest row). A publisher has its event before anybody sends it: what comes
back to it is never first, always a repetition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from topicweave.measures.columns import codes, distinct, numbers, percentile, ratio
from topicweave.measures.correlation import Moments
from topicweave.measures.expansion import expansion, pieces
from topicweave.measures.interests import Interests
from topicweave.measures.traffic import Traffic
from topicweave.measures.uptime import Uptime
from topicweave.model.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Receptions:
    """Events and their receptions as arrays; nodes and topics as codes into `nodes` and `topics`."""

    nodes: pa.Array
    topics: pa.Array
    # One element per event:
    event_topic: IntArray
    event_node: IntArray
    event_time: FloatArray
    # One element per reception, by event, node, time:
    event: IntArray
    node: IntArray
    sender: IntArray
    time: FloatArray
    hops: IntArray
    wanted: BoolArray
    first: BoolArray

    @classmethod
    def of(cls, publishes: pa.Table, deliveries: pa.Table) -> Receptions:
        """Of the telemetry tables of one run."""
        nodes = distinct(publishes["node"], deliveries["node"], deliveries["sender"])
        topics = distinct(publishes["topic"])
        keys, row = np.unique(publishes["event"].to_numpy(), return_index=True)
        event_node = codes(publishes["node"], nodes)[row]
        place = pc.index_in(deliveries["event"], pa.array(keys, pa.int64()))
        deliveries = deliveries.filter(pc.is_valid(place))
        event = np.asarray(pc.drop_null(place).to_numpy(), dtype=np.int64)
        node, time = codes(deliveries["node"], nodes), numbers(deliveries["time"])
        pair = event * len(nodes) + node
        order = np.lexsort((time, pair))
        event, node = event[order], node[order]
        return cls(
            nodes=nodes,
            topics=topics,
            event_topic=codes(publishes["topic"], topics)[row],
            event_node=event_node,
            event_time=numbers(publishes["time"])[row],
            event=event,
            node=node,
            sender=codes(deliveries["sender"], nodes)[order],
            time=time[order],
            hops=np.asarray(deliveries["hops"].to_numpy(), dtype=np.int64)[order],
            wanted=np.asarray(deliveries["wanted"].to_numpy(), dtype=np.bool_)[order],
            first=(np.diff(pair[order], prepend=-1) != 0) & (node != event_node[event]),
        )

    @cached_property
    def traffic(self) -> Traffic:
        """Counted by node, in the order of `nodes`."""
        nodes = len(self.nodes)

        def by_node(counted: BoolArray) -> IntArray:
            return np.bincount(self.node[counted], minlength=nodes)

        relayed = self.first & ~self.wanted
        topic = self.event_topic[self.event[relayed]]
        return Traffic(
            first_wanted=by_node(self.first & self.wanted),
            first_unwanted=by_node(relayed),
            all_wanted=by_node(self.wanted),
            all_unwanted=by_node(~self.wanted),
            hops=np.bincount(self.hops[self.first & self.wanted]),
            relays=len(np.unique(topic * nodes + self.node[relayed])),
            topics=len(self.topics),
        )


class Delivered(NamedTuple):
    """How many deliveries happened, of how many that were expected.

    >>> Delivered(hits=3, expected=4).hit_ratio
    0.75
    """

    hits: int
    expected: int

    @property
    def hit_ratio(self) -> float:
        """The share that happened (Vitis §IV); nan if none was expected."""
        return ratio(self.hits, self.expected)


def hit_ratio(
    receptions: Receptions,
    interests: Interests,
    uptime: Uptime | None = None,
    *,
    grace: float = 0.0,
    window: float = math.inf,
) -> float:
    """Of the `deliveries`."""
    return deliveries(receptions, interests, uptime, grace=grace, window=window).hit_ratio


def deliveries(
    receptions: Receptions,
    interests: Interests,
    uptime: Uptime | None = None,
    *,
    grace: float = 0.0,
    window: float = math.inf,
) -> Delivered:
    """Expected is every pair of an event and a subscriber of its topic other than its publisher; it happened if the
    subscriber received the event at most `window` seconds after it was published. With `uptime` (made for
    `interests.nodes`) only subscribers count that were up without interruption from `grace` seconds before the
    event was published until `window` seconds after: newcomers are given time to settle, and nobody is blamed
    for missing what it was not there for.
    """
    topic = codes(receptions.topics, interests.topics)[receptions.event_topic]
    to_interests = codes(receptions.nodes, interests.nodes)
    publisher = to_interests[receptions.event_node]
    first, last = receptions.event_time - grace, receptions.event_time + window

    in_time = receptions.first & (receptions.time <= last[receptions.event])
    event, node = receptions.event[in_time], to_interests[receptions.node[in_time]]
    hit = interests.find(topic[event], node) >= 0
    if uptime is None:
        return Delivered(int(hit.sum()), expected_deliveries(interests, topic, publisher))

    event, node = event[hit], node[hit]
    hits = int(uptime.throughout(node, first[event], last[event]).sum())
    published = np.flatnonzero(topic >= 0)  # The others have no subscriber.
    audience = interests.subscribers[topic[published]]
    expected = 0
    for piece in pieces(audience):
        owner, place = expansion(audience[piece])
        event = published[piece][owner]
        node = interests.node[interests.offsets[topic[event]] + place]
        up = uptime.throughout(node, first[event], last[event])
        expected += int((up & (node != publisher[event])).sum())
    return Delivered(hits, expected)


def expected_deliveries(interests: Interests, topic: IntArray, publisher: IntArray) -> int:
    """Of events, where everybody is there: pairs of an event and a subscriber of its topic other than its publisher.

    Topics and publishers as codes into `interests`; -1 for a topic that nobody wants, or a node that wants nothing.
    """
    audience = interests.subscribers[topic[topic >= 0]]
    own = interests.find(topic, publisher) >= 0
    return int(audience.sum() - own.sum())


def of_those_there(receptions: Receptions, everyone: pa.Array, uptime: Uptime, grace: float) -> Receptions:
    """With the first receptions of nodes alone that were up from `grace` seconds before the event until they had it.

    A newcomer may be handed an event from before it came. That tells when it came, and not how fast events are.
    `uptime` is made for `everyone`.
    """
    published = receptions.event_time[receptions.event]
    node = codes(receptions.nodes, everyone)[receptions.node]
    there = uptime.throughout(node, published - grace, receptions.time)
    return replace(receptions, first=receptions.first & there)


def latency_measures(receptions: Receptions) -> dict[str, float]:
    """latency_p50, latency_p95 (interpolated) and latency_max: seconds from publish to wanted first reception."""
    counted = receptions.first & receptions.wanted
    latency = receptions.time[counted] - receptions.event_time[receptions.event[counted]]
    return {
        "latency_p50": percentile(latency, 50),
        "latency_p95": percentile(latency, 95),
        "latency_max": percentile(latency, 100),
    }


def fairness(receptions: Receptions, interests: Interests) -> float:
    """Does a node's work grow with what it asked for (Rappel §1)? Pearson correlation, over nodes, between

    - its traffic: receptions of event messages at it plus receptions elsewhere of what it sent, and
    - its demand: events of others on the topics it subscribes to ("number and nature of subscriptions": a
      subscription to a busy topic asks for more).

    Over all nodes that subscribe to something or handled a message. 1 means that work is in proportion to
    demand; relaying for others lowers it. nan below two nodes or when either is the same for all.
    """
    nodes = distinct(pa.chunked_array([interests.nodes]), pa.chunked_array([receptions.nodes]))
    here = codes(receptions.nodes, nodes)
    traffic = np.bincount(here[np.concatenate([receptions.node, receptions.sender])], minlength=len(nodes))
    topic = codes(receptions.topics, interests.topics)[receptions.event_topic]
    events = np.bincount(topic[topic >= 0], minlength=len(interests.topics))
    subscriber = codes(interests.nodes, nodes)[interests.node]
    demand = np.zeros(len(nodes), np.int64)
    np.add.at(demand, subscriber, events[interests.topic])
    publisher = codes(receptions.nodes, interests.nodes)[receptions.event_node]
    own = interests.find(topic, publisher) >= 0
    demand -= np.bincount(here[receptions.event_node[own]], minlength=len(nodes))
    return Moments.of(traffic, demand).correlation
