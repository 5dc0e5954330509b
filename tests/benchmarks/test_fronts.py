"""The pictures of fronts, and the overlay made in one place that stands beside the systems in them."""

from __future__ import annotations

from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pytest

from benchmarks import fronts
from benchmarks.fronts_picture import Point, picture
from benchmarks.fronts_sketch import add_links, hops, sketch
from topicweave.choose.variants import parse_variant
from topicweave.workloads import generate

SVG = "{http://www.w3.org/2000/svg}"


def test_every_setting_can_be_set() -> None:
    for system, settings in fronts.SETTINGS.items():
        assert len(settings) <= 6
        for setting in settings:
            assert parse_variant(f"{system}:{setting}" if setting else system).system == system


def test_a_point_for_each_setting_and_a_dashed_line_for_the_curve() -> None:
    points = {"a": [Point(8, 3, default=True), Point(12, 2)], "none": [], "best": [Point(7, 3), Point(10, 2)]}
    drawn = ElementTree.fromstring(picture("a <title>", "links", "hops", points, curve="best"))
    assert len(drawn.findall(f"{SVG}circle/{SVG}title")) == 2
    dashed = [line for line in drawn.findall(f"{SVG}polyline") if "stroke-dasharray" in line.attrib]
    assert len(drawn.findall(f"{SVG}polyline")) == 2
    assert len(dashed) == 1
    assert "none" not in [text.text for text in drawn.iter(f"{SVG}text")]


def test_hops_are_those_of_the_shortest_ways_among_those_who_want_a_topic() -> None:
    """A path of four, and one beside it that does not want the topic."""
    graph = nx.path_graph(4)
    graph.add_edges_from([(0, 4), (4, 3)])
    linked = nx.to_numpy_array(graph, dtype=np.bool_)
    wants = np.array([[True], [True], [True], [True], [False]])
    ways = [
        length
        for _, lengths in nx.all_pairs_shortest_path_length(nx.path_graph(4))
        for length in lengths.values()
    ]
    assert hops(linked, wants) == pytest.approx(sum(ways) / 12)


def test_links_are_added_between_those_who_have_no_neighbour_in_common() -> None:
    linked = nx.to_numpy_array(nx.path_graph(5), dtype=np.bool_)
    shared = np.full((5, 5), 2)
    shared[0, 4] = shared[4, 0] = 3
    add_links(linked, shared, most=5)
    assert linked[0, 4]
    assert linked[4, 0]
    assert linked.sum() == 10


def test_more_links_make_shorter_ways() -> None:
    workload = generate(60, 40, "rss", min_size=6, max_size=6, seed=0)
    points = list(sketch(workload, (6.0, 8.0)))
    assert [round(links) for links, _ in points[1:]] == [6, 8]
    assert [far for _, far in points] == sorted((far for _, far in points), reverse=True)
