"""Graphs in rounds on real networks, against networkx and plain counting. Run by `make test-real-data`."""

from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path

import networkx as nx
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.pipeline.rounds_here import LoopHere
from topicweave.data.reading import real_workload, social_graph
from topicweave.pipeline.graphs.components import components
from topicweave.pipeline.graphs.cooccurrence import cooccurrence
from topicweave.pipeline.graphs.diameters import distances
from topicweave.pipeline.graphs.links import ALL, scan_links
from topicweave.pipeline.graphs.similar import scan_subscriptions
from topicweave.pipeline.rounds import hashes

pytestmark = pytest.mark.real_data
TASKS = 4


def links_of(name: str) -> pa.Table:
    """Who follows whom, as links."""
    rows = social_graph(name).tables()["subscriptions"]
    return pa.table({"node": rows["node"], "peer": rows["topic"]})


@pytest.mark.parametrize("name", ["facebook", "epinions", "livejournal"])
def test_components_and_distances_of_a_real_network(real_data: Path, name: str) -> None:
    links = links_of(name)
    loop = LoopHere(scan_links(TASKS, False)("links", links, 0), TASKS)
    found = components(loop)
    pairs = list(zip(*(hashes(links[end]).tolist() for end in ("node", "peer")), strict=True))
    graph = nx.Graph(pairs)
    graph.remove_edges_from(nx.selfloop_edges(graph))
    together = defaultdict(set)
    for node, component in zip(found["node"].to_pylist(), found["component"].to_pylist(), strict=True):
        together[component].add(node)
    expected = {frozenset(part) for part in nx.connected_components(graph)}
    assert {frozenset(part) for part in together.values()} == expected

    loop = LoopHere(scan_links(TASKS, False)("links", links, 0), TASKS)
    (of_all,) = distances(loop, 64, 0).to_pylist()
    assert (of_all["topic"], of_all["vertices"]) == (ALL, len(graph))
    largest = graph.subgraph(max(expected, key=len))
    # One walk from any node: no two are further apart than twice its reach, and some as far as that.
    reach = nx.eccentricity(largest, v=next(iter(largest)))
    assert of_all["diameter"] <= 2 * reach
    assert 2 * of_all["diameter"] >= reach


def test_topics_that_the_same_nodes_want(real_data: Path) -> None:
    wishes = real_workload("wikipedia").tables()["subscriptions"]
    loop = LoopHere(scan_subscriptions(TASKS)("subscriptions", wishes, 0), TASKS)
    rows, left_out = cooccurrence(loop, 5)
    assert left_out == 0
    lists = defaultdict(list)
    for node, topic in zip(hashes(wishes["node"]).tolist(), hashes(wishes["topic"]).tolist(), strict=True):
        lists[node].append(topic)
    both = Counter(pair for topics in lists.values() for pair in combinations(sorted(topics), 2))
    expected = {pair: many for pair, many in both.items() if many >= 5}
    columns = (rows[name].to_pylist() for name in ("topic", "other", "nodes"))
    found = {(min(one, other), max(one, other)): many for one, other, many in zip(*columns, strict=True)}
    assert found == expected
    assert pc.min(rows["nodes"]).as_py() == 5
