"""The round in which topics meet all that concerns them: subscribers, events, receptions, and links among
subscribers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from topicweave.measures.diameter import topic_diameters
from topicweave.measures.expansion import expansion, pieces
from topicweave.measures.graph import Graph, TopicGraph
from topicweave.measures.interests import Interests
from topicweave.measures.overlay import Connectivity
from topicweave.measures.uptime import Uptime
from topicweave.model.arrays import IntArray
from topicweave.pipeline.measuring.kernels import found_pairs
from topicweave.pipeline.measuring.plan import LAST, MeasuringPlan, SharedPlan
from topicweave.pipeline.measuring.receptions import COUNTS
from topicweave.pipeline.rounds import Inbox, Letter, Work, spread

Arrays = dict[str, Any]

_KINDS: dict[str, dict[str, Any]] = {
    "members": {"present": np.bool_},
    "events": {"time": np.float64},
    "pairs": dict.fromkeys(COUNTS, np.int64),
    "hits": {"time": np.float64},
    "up": {"begin": np.float64, "end": np.float64},
    "edges": {"peer": np.int64},
}


def gather(shared: SharedPlan) -> Work:
    def work(inbox: Inbox) -> Iterator[Letter]:
        plan = shared.value
        common = {"run": np.int64, "topic": np.int64, "node": np.int64}
        came = {kind: inbox.take(kind, **common, **columns) for kind, columns in _KINDS.items()}
        for number in plan.runs:
            mine = {
                kind: {name: column[rows["run"] == number] for name, column in rows.items()}
                for kind, rows in came.items()
            }
            yield from _of_run(plan, number, mine)

    return work


def _of_run(plan: MeasuringPlan, number: int, came: dict[str, Arrays]) -> Iterator[Letter]:
    nodes = _coded([(rows, name) for rows in came.values() for name in ("node", "peer") if name in rows])
    topics = _coded([(rows, "topic") for rows in came.values()])
    members = came["members"]
    present = members["present"]
    of_overlay = _interests(nodes, topics, members["node"][present], members["topic"][present])
    yield plan.tell(number, **_overlay(of_overlay, topics, came["edges"], plan.scope.coverage_k))
    interests = of_overlay if present.all() else _interests(nodes, topics, members["node"], members["topic"])

    pairs = _merged(came["pairs"], len(nodes))
    yield plan.tell(number, **_traffic(pairs, came["events"]))
    yield plan.tell(number, **_hits(plan, interests, topics, came, pairs))
    columns = _by_node(len(nodes), interests, topics, came["events"], pairs)
    busy = np.flatnonzero(
        np.any([column != 0 for column in columns.values()], axis=0) | _published(came, len(nodes))
    )
    sums = {
        "run": np.full(len(busy), number),
        "node": nodes[busy],
        **{name: one[busy] for name, one in columns.items()},
    }
    yield from spread(LAST, "sums", sums["node"], plan.tasks, sums)


def _coded(columns: list[tuple[Arrays, str]]) -> IntArray:
    """Columns of names become columns of places among all their names."""
    import pandas as pd

    code, names = pd.factorize(np.concatenate([rows[name] for rows, name in columns]))
    start = 0
    for rows, name in columns:
        rows[name], start = code[start : start + len(rows[name])], start + len(rows[name])
    return np.asarray(names)


def _published(came: dict[str, Arrays], nodes: int) -> Any:
    published = np.zeros(nodes, np.bool_)
    published[came["events"]["node"]] = True
    return published


def _interests(nodes: IntArray, topics: IntArray, node: IntArray, topic: IntArray) -> Interests:
    """Its `topics` are places in ours."""
    return Interests.of_codes(pa.array(nodes), pa.array(np.arange(len(topics))), node, topic)


def _places(interests: Interests, topics: IntArray) -> IntArray:
    """Where our topics are among those that somebody wants; -1 if nobody does."""
    places = np.full(len(topics), -1)
    places[interests.topics.to_numpy()] = np.arange(len(interests.topics))
    return places


def _overlay(interests: Interests, topics: IntArray, edges: Arrays, k: int) -> dict[str, Any]:
    topic = _places(interests, topics)[edges["topic"]]
    one, other = (
        found_pairs(interests.topic, interests.node, topic, edges[end].astype(np.int64))
        for end in ("node", "peer")
    )
    inside = (one >= 0) & (other >= 0)
    graph = TopicGraph(interests, Graph.of_edges(len(interests.node), one[inside], other[inside]))
    diameters = topic_diameters(graph)
    return {
        **Connectivity.of(graph, k)._asdict(),
        "wanted_topics": len(diameters),
        "diameters": int(diameters.sum()),
        **({"diameter_max": int(diameters.max())} if len(diameters) else {}),
    }


def _merged(pairs: Arrays, nodes: int) -> Arrays:
    """A row per topic and node: several tasks may have counted for a large topic."""
    keys, rows, code = np.unique(
        pairs["topic"] * nodes + pairs["node"], return_index=True, return_inverse=True
    )
    if len(keys) == len(pairs["node"]):
        return pairs
    merged = {name: pairs[name][rows] for name in ("topic", "node")}
    for name in COUNTS:
        column = np.full(len(keys), -1 if name == "hops_max" else 0, np.int64)
        (np.maximum if name == "hops_max" else np.add).at(column, code, pairs[name])
        merged[name] = column
    return merged


def _traffic(pairs: Arrays, events: Arrays) -> dict[str, Any]:
    sums = {name: int(pairs[name].sum()) for name in COUNTS[:-1]}
    return {
        **sums,
        "relays": int(np.count_nonzero(pairs["relayed"])),
        "topics": len(np.unique(events["topic"])),
        **({"hops_max": int(pairs["hops_max"].max())} if len(pairs["hops_max"]) else {}),
    }


def _hits(
    plan: MeasuringPlan, interests: Interests, topics: IntArray, came: dict[str, Arrays], pairs: Arrays
) -> dict[str, int]:
    places, events = _places(interests, topics), came["events"]
    topic = places[events["topic"]]
    wanted = np.flatnonzero(topic >= 0)
    audience = interests.subscribers[topic[wanted]]
    if not plan.churned:
        hit = interests.find(places[pairs["topic"]], pairs["node"]) >= 0
        own = interests.find(topic, events["node"]) >= 0
        return {"hits": int(pairs["in_time"][hit].sum()), "expected": int(audience.sum() - own.sum())}
    uptime = Uptime.of_intervals(*_intervals(came["up"]))
    hits, scope = came["hits"], plan.scope
    hit = interests.find(places[hits["topic"]], hits["node"]) >= 0
    node, time = hits["node"][hit], hits["time"][hit]
    happened = int(uptime.throughout(node, time - scope.grace, time + scope.window).sum())
    expected = 0
    for piece in pieces(audience):
        owner, place = expansion(audience[piece])
        event = wanted[piece][owner]
        node, time = interests.node[interests.offsets[topic[event]] + place], events["time"][event]
        up = uptime.throughout(node, time - scope.grace, time + scope.window)
        expected += int((up & (node != events["node"][event])).sum())
    return {"hits": happened, "expected": expected}


def _intervals(up: Arrays) -> tuple[Any, Any, Any]:
    """A node's come with each of its topics: once is enough."""
    order = np.lexsort((up["begin"], up["node"]))
    node, begin, end = up["node"][order], up["begin"][order], up["end"][order]
    new = np.ones(len(node), np.bool_)
    new[1:] = (node[1:] != node[:-1]) | (begin[1:] != begin[:-1])
    return node[new], begin[new], end[new]


def _by_node(
    nodes: int, interests: Interests, topics: IntArray, events: Arrays, pairs: Arrays
) -> dict[str, IntArray]:
    """What all topics here together are to each node."""
    columns = {}
    for name in ("receptions", "unwanted", "firsts", "relayed"):
        columns[name] = np.zeros(nodes, np.int64)
        np.add.at(columns[name], pairs["node"], pairs[name])
    places = _places(interests, topics)
    topic = places[events["topic"]]
    published = np.bincount(topic[topic >= 0], minlength=len(interests.topics))
    demand = np.zeros(nodes, np.int64)
    np.add.at(demand, interests.node, published[interests.topic])
    own = interests.find(topic, events["node"]) >= 0
    np.subtract.at(demand, events["node"][own], 1)
    return {**columns, "demand": demand}
