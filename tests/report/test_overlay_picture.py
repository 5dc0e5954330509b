"""Overlays laid out and drawn."""

from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.report.comparisons import PICTURE
from topicweave.report.figure import GREY
from topicweave.report.overlay_layout import Floats, laid_out
from topicweave.report.overlay_picture import PALETTE, as_data, colours_of_topics, overlay_svg


def distances(places: Floats) -> Floats:
    apart: Floats = np.linalg.norm(places[:, None] - places[None], axis=2)
    return apart


@given(st.integers(2, 12), st.sets(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=20))
@settings(max_examples=25, deadline=None)
def test_nodes_are_apart_and_within_the_square(nodes: int, pairs: set[tuple[int, int]]) -> None:
    links = [pair for pair in sorted(pairs) if pair[0] < pair[1] < nodes]
    places = laid_out(nodes, links)
    assert places.shape == (nodes, 2)
    assert places.min() >= 0
    assert places.max() <= 1
    assert (places.max(axis=0) - places.min(axis=0)).max() == pytest.approx(1.0)
    apart = distances(places)[~np.eye(nodes, dtype=bool)]
    assert apart.min() > 0.01
    assert (places == laid_out(nodes, links)).all()


def test_linked_nodes_are_nearer_than_others() -> None:
    graph = nx.connected_caveman_graph(5, 6)
    places = laid_out(len(graph), list(graph.edges))
    apart = distances(places)
    linked = nx.to_numpy_array(graph, nodelist=range(len(graph))) > 0
    others = ~linked & ~np.eye(len(graph), dtype=bool)
    assert apart[linked].mean() < 0.4 * apart[others].mean()


def test_a_hub_is_in_the_middle_of_its_star() -> None:
    places = laid_out(30, [(0, leaf) for leaf in range(1, 30)])
    assert np.linalg.norm(places[0] - places[1:].mean(axis=0)) < 0.1


@pytest.mark.parametrize(("nodes", "links"), [(0, []), (1, []), (2, []), (2, [(0, 1)])])
def test_hardly_anything_is_laid_out_too(nodes: int, links: list[tuple[int, int]]) -> None:
    assert np.isfinite(laid_out(nodes, links)).all()


def test_relays_have_another_shape_and_clusters_their_colours() -> None:
    [colours] = colours_of_topics([PICTURE])
    drawn = ElementTree.fromstring(overlay_svg(PICTURE, colours, "alpha & beta"))
    assert drawn.attrib["aria-label"] == "alpha & beta"
    titled = {element.findtext("title"): element for element in drawn if element.find("title") is not None}
    shapes = {(name or "").split(";")[0]: element for name, element in titled.items()}
    assert {name: element.tag for name, element in shapes.items()} == {
        "ann": "circle",
        "bob": "path",
        "<eve>": "circle",
        "dan": "circle",
    }
    assert shapes["ann"].attrib["fill"] == shapes["bob"].attrib["fill"] == colours["news & weather"]
    assert shapes["<eve>"].attrib["fill"] == colours["go"]
    assert shapes["dan"].attrib["fill"] == GREY
    legend = [element.text for element in drawn.iter("text")]
    assert legend == [
        "news & weather (2)",
        "go (1)",
        "shares none of these (1)",
        "relay: does not want it (1)",
    ]
    # One link within the cluster of ann and bob, three from one colour to another.
    threads = {
        element.attrib.get("stroke"): element.attrib["d"].count("M")
        for element in drawn
        if element.get("d") and element.get("fill") == "none"
    }
    assert threads == {colours["news & weather"]: 1, None: 3}


def test_a_topic_keeps_its_colour_from_picture_to_picture() -> None:
    first, second = colours_of_topics([{"topics": list("abcdefg")}, {"topics": list("gxayb")}])
    assert set(first.values()) == set(PALETTE)
    assert {topic: second[topic] for topic in "gab"} == {topic: first[topic] for topic in "gab"}
    assert len(set(second.values())) == 5


def test_what_is_drawn_can_be_saved() -> None:
    data = as_data(PICTURE)
    assert data["nodes"] == [
        ["ann", "news & weather", ""],
        ["bob", "news & weather", "relay"],
        ["<eve>", "go", ""],
        ["dan", "", ""],
    ]
    assert data["links"] == PICTURE["links"]
