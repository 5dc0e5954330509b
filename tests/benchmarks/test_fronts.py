"""The pictures of fronts, and the overlay made in one place that stands beside the systems in them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pytest

from benchmarks import fronts, kept
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


def test_what_misses_somebody_is_hollow_and_the_second_round_of_colours_has_squares() -> None:
    points = {f"system {number}": [Point(8 + number, 3)] for number in range(8)}
    points["system 7"] = [Point(20, 5, clean=False)]
    drawn = ElementTree.fromstring(picture("t", "links", "hops", {**points, "best": []}, curve="best"))
    ((square,), circles) = (
        [mark for mark in drawn.iter(f"{SVG}{shape}") if mark.find(f"{SVG}title") is not None]
        for shape in ("rect", "circle")
    )
    assert [circle.get("fill") for circle in circles] == [circle.get("stroke") for circle in circles]
    assert (square.get("fill"), square.get("stroke")) == ("#fff", circles[0].get("stroke"))


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


@pytest.mark.bench
def test_points_are_measured_once_and_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "TABLE": tmp_path / "fronts.csv",
        "PICTURES": tmp_path,
        "OUT": tmp_path / "runs",
        "NODES": 30,
        "SETTINGS": {"spidercast": ("", "k_greedy=2")},
        "FEWEST": 2,
    }.items():
        monkeypatch.setattr(fronts, name, value)
    for _ in range(2):
        fronts.run(["rss"], ["spidercast"], seconds=600.0)
        rows = kept.read(fronts.TABLE)
        ours = {row["setting"]: float(row["degree_mean"]) for row in rows if row["system"] == "spidercast"}
        assert ours.keys() == {"", "k_greedy=2"}
        assert ours["k_greedy=2"] < ours[""]
        assert sum(row["system"] == fronts.SKETCH for row in rows) >= 2
    fronts.draw()
    for kind in ("hops", "control"):
        drawn = ElementTree.fromstring((tmp_path / f"fronts-rss-{kind}.svg").read_text())
        assert len(drawn.findall(f"{SVG}circle/{SVG}title")) == 2


def test_rows_of_settings_that_are_gone_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fronts, "TABLE", tmp_path / "fronts.csv")

    def row(system: str, setting: str, links: str) -> kept.Row:
        about = {"workload": "rss", "system": system, "setting": setting, "degree_mean": links}
        return dict.fromkeys(fronts.HEADINGS, "") | about

    monkeypatch.setitem(fronts.SETTINGS, "weave", ("", "old=1"))
    fronts.keep([row("weave", "", "9"), row("weave", "old=1", "8"), row(fronts.SKETCH, "7.0", "7")])
    monkeypatch.setitem(fronts.SETTINGS, "weave", ("", "new=1"))
    fronts.keep([row("weave", "", "10")])
    left = [(one["system"], one["setting"], one["degree_mean"]) for one in kept.read(fronts.TABLE)]
    assert left == [(fronts.SKETCH, "7.0", "7"), ("weave", "", "10")]
