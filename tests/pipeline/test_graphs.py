"""Graphs in rounds, against plain algorithms on the same graphs: many seeds, small sizes, any number of tasks."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.pipeline.rounds_here import LoopHere
from topicweave.data.places import Place
from topicweave.errors import BadInput
from topicweave.pipeline.graphs import api
from topicweave.pipeline.graphs.components import components
from topicweave.pipeline.graphs.cooccurrence import communities, cooccurrence
from topicweave.pipeline.graphs.diameters import counters, distances, estimates
from topicweave.pipeline.graphs.links import scan_links
from topicweave.pipeline.graphs.similar import scan_subscriptions, similar
from topicweave.pipeline.graphs.survival import scan_churn, survival
from topicweave.pipeline.rounds import hashes

Pairs = set[tuple[str, str]]


def made(seed: int) -> tuple[list[tuple[str, str]], Pairs]:
    """Links, some twice and some to themselves, and who wants what."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 60))
    links = [(f"n{a}", f"n{b}") for a, b in rng.integers(0, nodes, (int(rng.integers(1, 3 * nodes)), 2))]
    wishes = {
        (f"n{a}", f"t{b}")
        for a, b in zip(rng.integers(0, nodes, 4 * nodes), rng.zipf(1.6, 4 * nodes) % 9, strict=True)
    }
    return links, wishes


def link_table(links: list[tuple[str, str]]) -> pa.Table:
    return pa.table({"node": [one for one, _ in links], "peer": [other for _, other in links]})


def wish_table(wishes: Pairs) -> pa.Table:
    return pa.table({"node": [one for one, _ in sorted(wishes)], "topic": [two for _, two in sorted(wishes)]})


def loop_of(links: list[tuple[str, str]], wishes: Pairs | None, tasks: int) -> LoopHere:
    scan = scan_links(tasks, wishes is not None)
    letters = [*scan("links", link_table(links[::2]), 0), *scan("links", link_table(links[1::2]), 1)]
    if wishes is not None:
        letters += scan("subscriptions", wish_table(wishes), 0)
    return LoopHere(letters, tasks)


def graphs_of(links: list[tuple[str, str]], wishes: Pairs | None) -> Iterator[tuple[int, nx.Graph]]:
    if wishes is None:
        graph = nx.Graph(links)
        graph.remove_edges_from(nx.selfloop_edges(graph))
        yield 0, graph
        return
    for topic in sorted({topic for _, topic in wishes}):
        members = {node for node, wanted in wishes if wanted == topic}
        graph = nx.Graph((a, b) for a, b in links if a in members and b in members and a != b)
        graph.add_nodes_from(members)
        yield number(topic), graph


def number(name: str) -> int:
    return int(hashes(pa.array([name]))[0])


def rows(table: Any) -> list[tuple[Any, ...]]:
    return sorted(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))


@pytest.mark.parametrize("by_topic", [False, True])
def test_components_are_those_of_networkx_at_any_number_of_tasks(by_topic: bool) -> None:
    for seed in range(25):
        links, wishes = made(seed)
        found = [rows(components(loop_of(links, wishes if by_topic else None, tasks))) for tasks in (1, 2, 5)]
        assert found[0] == found[1] == found[2]
        together = defaultdict(set)
        for topic, node, component in found[0]:
            together[topic, component].add(node)
        expected = {
            (topic, frozenset(map(number, part)))
            for topic, graph in graphs_of(links, wishes if by_topic else None)
            for part in nx.connected_components(graph)
        }
        assert {(topic, frozenset(part)) for (topic, _), part in together.items()} == expected


def test_a_long_path_is_one_component() -> None:
    links = [(f"n{at}", f"n{at + 1}") for at in range(500)]
    found = components(loop_of(links, None, 7))
    assert len(set(found["component"].to_pylist())) == 1
    assert found.num_rows == 501


def test_counters_estimate_within_their_error() -> None:
    registers = 256
    for count in (10, 1000, 30_000):
        made_ = counters(np.arange(count), registers, 3).max(axis=0)[None]
        assert estimates(made_)[0] == pytest.approx(count, rel=4 * 1.04 / math.sqrt(registers))


def by_hash(table: Any) -> dict[int, dict[str, Any]]:
    return {row["topic"]: row for row in sorted(table.to_pylist(), key=lambda row: row["topic"])}


@pytest.mark.parametrize("by_topic", [False, True])
def test_distances_are_near_the_true_ones(by_topic: bool) -> None:
    exact = together = 0
    for seed in range(15):
        links, wishes = made(seed)
        found = [
            by_hash(distances(loop_of(links, wishes if by_topic else None, tasks), 256, seed))
            for tasks in (1, 4)
        ]
        assert repr(found[0]) == repr(found[1])
        for topic, graph in graphs_of(links, wishes if by_topic else None):
            lengths = [
                length
                for _, to in nx.all_pairs_shortest_path_length(graph)
                for length in to.values()
                if length
            ]
            one = found[0][topic]
            assert one["vertices"] == len(graph)
            assert one["diameter"] <= max(lengths, default=0)
            exact += one["diameter"] == max(lengths, default=0)
            together += 1
            if lengths:
                assert one["mean"] == pytest.approx(np.mean(lengths), rel=0.3)
                assert one["effective"] <= one["diameter"]
            else:
                assert (one["effective"], math.isnan(one["mean"])) == (0.0, True)
    assert exact / together > 0.9


def jaccard(one: set[str], other: set[str]) -> float:
    return len(one & other) / len(one | other)


def test_similar_nodes_are_found_and_their_similarity_is_exact() -> None:
    found_of = all_of = 0
    for seed in range(12):
        _, wishes = made(seed)
        lists: dict[str, set[str]] = defaultdict(set)
        for node, topic in wishes:
            lists[node].add(topic)
        results = []
        for tasks in (1, 3):
            loop = LoopHere(scan_subscriptions(tasks)("subscriptions", wish_table(wishes), 0), tasks)
            table, crowded = similar(loop, 0.6, seed=seed)
            assert crowded == 0
            results.append(rows(table))
        assert results[0] == results[1]
        names = {number(node): node for node in lists}
        for one, other, similarity in results[0]:
            assert one < other
            assert similarity == jaccard(lists[names[one]], lists[names[other]]) >= 0.6
        alike = sum(jaccard(lists[one], lists[other]) >= 0.6 for one, other in combinations(lists, 2))
        assert len(results[0]) == len({row[:2] for row in results[0]}) <= alike
        found_of, all_of = found_of + len(results[0]), all_of + alike
    assert found_of > 0.95 * all_of  # 1 - (1 - 0.6**4)**32 = 0.988 at the threshold, more above


def test_a_band_of_too_many_is_told() -> None:
    wishes = {(f"n{at}", "t") for at in range(40)}
    table, crowded = similar(LoopHere(scan_subscriptions(2)("", wish_table(wishes), 0), 2), most=5)
    assert crowded == 32
    assert table.num_rows < 40 * 39 / 2


def test_topics_that_are_wanted_together_are_counted() -> None:
    for seed in range(12):
        _, wishes = made(seed)
        lists: dict[str, set[str]] = defaultdict(set)
        for node, topic in wishes:
            lists[node].add(topic)
        most = sorted(map(len, lists.values()))[-2] if len(lists) > 1 else 9
        expected: dict[frozenset[int], int] = defaultdict(int)
        for topics in lists.values():
            for pair in combinations(topics, 2) if len(topics) <= most else ():
                expected[frozenset(map(number, pair))] += 1
        for tasks in (1, 3):
            loop = LoopHere(scan_subscriptions(tasks)("subscriptions", wish_table(wishes), 0), tasks)
            table, left_out = cooccurrence(loop, 2, most)
            assert left_out == sum(len(topics) > most for topics in lists.values())
            found = {frozenset((one, other)): nodes for one, other, nodes in rows(table)}
            assert found == {pair: nodes for pair, nodes in expected.items() if nodes >= 2}


def test_communities_are_those_that_share_nodes() -> None:
    rng = np.random.default_rng(5)
    wishes = {
        (f"{group}-n{node}", f"{group}-t{topic}")
        for group in range(4)
        for node in range(40)
        for topic in rng.choice(8, 4, replace=False)
    }
    wishes |= {(f"{group}-n0", f"{(group + 1) % 4}-t0") for group in range(4)}  # a few bridges
    results = []
    for tasks in (1, 3):
        loop = LoopHere(scan_subscriptions(tasks)("subscriptions", wish_table(wishes), 0), tasks)
        table, left_out, steps = communities(loop)
        assert left_out == 0
        assert steps < 50
        results.append(rows(table))
    assert results[0] == results[1]
    label = dict(results[0])
    groups = [{label[number(f"{group}-t{topic}")] for topic in range(8)} for group in range(4)]
    assert all(len(group) == 1 for group in groups)
    assert len(set.union(*groups)) == 4


def kaplan_meier(sessions: list[tuple[float, bool]]) -> dict[float, float]:
    share, found = 1.0, {}
    for length in sorted({length for length, _ in sessions}):
        at_risk = sum(other >= length for other, _ in sessions)
        share *= 1 - sum(other == length and ended for other, ended in sessions) / at_risk
        found[length] = share
    return found


def test_sessions_survive_as_kaplan_and_meier_say() -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        changes, sessions = [], []
        for node in range(int(rng.integers(1, 40))):
            times = np.cumsum(rng.integers(1, 9, int(rng.integers(1, 7)))).astype(float).tolist()
            up = bool(rng.integers(2))
            for at, time in enumerate(times):
                changes.append((time, f"n{node}", "leave" if up else "join"))
                if not up:
                    after = times[at + 1] if at + 1 < len(times) else None
                    sessions.append((after - time, True) if after is not None else (60.0 - time, False))
                up = not up
        table = pa.table(
            {name: [row[at] for row in changes] for at, name in enumerate(("time", "node", "change"))}
        )
        for tasks in (1, 3):
            found = survival(LoopHere(scan_churn(tasks)("churn", table, 0), tasks), 1.0, end=60.0)
            expected = kaplan_meier(sessions)
            assert found.seconds.tolist() == list(expected)
            assert found.longer.tolist() == pytest.approx(list(expected.values()))
            assert (int(found.ended.sum()), int(found.lasting.sum())) == (
                sum(ended for _, ended in sessions),
                sum(not ended for _, ended in sessions),
            )


def test_the_median_is_unknown_where_most_outlast_the_record() -> None:
    table = pa.table(
        {"time": [0.0, 0.0, 0.0, 5.0], "node": ["a", "b", "c", "a"], "change": ["join"] * 3 + ["leave"]}
    )
    found = survival(LoopHere(scan_churn(1)("churn", table, 0), 1), end=100.0)
    assert math.isnan(found.median)
    assert survival(LoopHere(scan_churn(1)("churn", table.slice(0, 1), 0), 1), end=1.0).lasting.tolist() == [
        1
    ]


def test_on_spark_all_is_as_here_and_has_names(spark: SparkSession, tmp_path: Path) -> None:
    links, wishes = made(3)
    recorded = link_table(links)
    count = len(recorded)
    both = [
        pa.table(
            {"run": ["a"] * count, "time": [time] * count, "node": recorded["node"], "peer": recorded["peer"]}
        )
        for time in (1.0, 2.0)
    ]
    pq.write_table(pa.concat_tables([both[0].slice(0, count // 2), both[1]]), tmp_path / "links.parquet")
    pq.write_table(wish_table(wishes), tmp_path / "subscriptions.parquet")
    files = {name: [Place(tmp_path / f"{name}.parquet")] for name in ("links", "subscriptions")}
    source = api.tables_in(spark, files)
    with pytest.raises(BadInput, match="no run 'b'"):
        api.last_moment(spark, source, "b")
    assert api.last_moment(spark, source, None) == ("a", 2.0)
    overlay = api.at_moment(source, "a", 2.0)
    lists = wish_table(wishes)
    frames = api.of_frames({"subscriptions": spark.createDataFrame(lists)})

    expected = components(loop_of(links, wishes, 2))
    found = api.named_components(spark, overlay).toArrow()
    assert found.schema.names == api.TABLES["components"].names
    names = {number(name): name for pair in wishes for name in pair}
    assert {(topic, node, component) for topic, node, component in rows(found)} == {
        (names[topic], names[node], component) for topic, node, component in rows(expected)
    }
    table = {row["topic"]: row for row in api.named_distances(spark, overlay).toArrow().to_pylist()}
    for topic, of_topic in by_hash(distances(loop_of(links, wishes, 2))).items():
        assert repr({**of_topic, "topic": names[topic]}) == repr(table.pop(names[topic]))
    assert not table
    (whole,) = api.named_distances(spark, api.of_frames({"links": spark.createDataFrame(recorded)})).collect()
    assert (whole["topic"], whole["diameter"]) == (
        None,
        by_hash(distances(loop_of(links, None, 2)))[0]["diameter"],
    )

    def here() -> LoopHere:
        return LoopHere(scan_subscriptions(2)("subscriptions", lists, 0), 2)

    alike, crowded = api.named_similar(spark, frames, 0.6)
    assert crowded == 0
    pairs = rows(alike.toArrow())
    assert {(frozenset((one, other)), share) for one, other, share in pairs} == {
        (frozenset((names[one], names[other])), share) for one, other, share in rows(similar(here(), 0.6)[0])
    }
    wanted, left_out = api.named_cooccurrence(spark, frames)
    assert left_out == 0
    assert wanted.count() == cooccurrence(here())[0].num_rows
    grouped, _ = api.named_communities(spark, frames)
    assert rows(grouped.toArrow()) == sorted(
        (names[topic], names[community]) for topic, community in rows(communities(here())[0])
    )
