"""Samples in memory: what each paper's section says, checked with plain sets."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topicweave.data.sampling import (
    breadth_first,
    chances,
    followed,
    neighbourhood,
    random_topics,
    subscribers_of_popular,
    universe,
)
from topicweave.errors import BadInput
from topicweave.model.workload import Workload
from topicweave.workloads import generate

GRAPHS = st.dictionaries(
    st.integers(0, 25), st.lists(st.integers(0, 25), unique=True, max_size=6), min_size=4
).filter(lambda lists: any(lists.values()))


def graph_of(lists: dict[int, list[int]]) -> Workload:
    """Everybody is a node; nobody follows themselves."""
    everyone = sorted({*lists, *(other for others in lists.values() for other in others)})
    return Workload.from_lists(
        {f"{user}": [f"{other}" for other in lists.get(user, []) if other != user] for user in everyone}
    )


def links(workload: Workload) -> set[tuple[str, str]]:
    node, topic = workload.subscription_pairs()
    return {
        (workload.node_names[one], workload.topic_names[other])
        for one, other in zip(node, topic, strict=True)
    }


def by_chance(seed: int, names: set[str]) -> list[str]:
    return sorted(names, key=lambda name: hashlib.sha256(f"{seed}/{name}".encode()).digest()[:8])


def test_a_chance_is_a_hash_of_seed_and_name() -> None:
    assert chances(3, ["ä", "b"]).tolist() == [
        int.from_bytes(hashlib.sha256(f"3/{name}".encode()).digest()[:8], "big") for name in ("ä", "b")
    ]


@given(lists=GRAPHS, nodes=st.integers(1, 20), seeds=st.integers(1, 4), seed=st.integers(0, 99))
def test_breadth_first_goes_level_by_level(
    lists: dict[int, list[int]], nodes: int, seeds: int, seed: int
) -> None:
    graph = graph_of(lists)
    every, everyone = links(graph), set(graph.node_names)
    if nodes > graph.nodes:
        with pytest.raises(BadInput, match="fewer than"):
            breadth_first(graph, nodes=nodes, seeds=seeds, seed=seed)
        return
    found: set[str] = set()
    level: set[str] = set()
    begun = seeds
    while len(found) < nodes:
        reached = {b for a, b in every if a in level} | {a for a, b in every if b in level}
        if level:
            level = set(by_chance(seed, reached - found)[: nodes - len(found)])
        else:
            level = set(by_chance(seed, everyone - found)[: min(begun, nodes - len(found))])
            begun = 1
        found |= level
    expected = {(a, b) for a, b in every if a in found and b in found}
    if not expected:
        with pytest.raises(BadInput, match="the sample is empty"):
            breadth_first(graph, nodes=nodes, seeds=seeds, seed=seed)
        return
    sample = breadth_first(graph, nodes=nodes, seeds=seeds, seed=seed)
    assert set(sample.node_names) == found
    assert links(sample) == expected
    assert set(sample.topic_names) == {b for _, b in expected}


@given(lists=GRAPHS, nodes=st.integers(2, 10), seed=st.integers(0, 99))
def test_random_users_come_with_all_whom_they_follow(
    lists: dict[int, list[int]], nodes: int, seed: int
) -> None:
    graph = graph_of(lists)
    every, found = links(graph), set[str]()
    if nodes > graph.nodes:
        return
    for user in by_chance(seed, set(graph.node_names)):
        if len(found) >= nodes:
            break
        found |= {user} | {b for a, b in every if a == user}
    expected = {(a, b) for a, b in every if a in found and b in found}
    if expected:
        sample = followed(graph, nodes=nodes, seed=seed)
        assert set(sample.node_names) == found
        assert links(sample) == expected


@given(lists=GRAPHS, seeds=st.integers(1, 5), publishers=st.integers(1, 5), seed=st.integers(0, 99))
def test_the_universe_is_who_wants_a_popular_journal(
    lists: dict[int, list[int]], seeds: int, publishers: int, seed: int
) -> None:
    graph = graph_of(lists)
    every = links(graph)
    if not every:
        return
    journals = set(by_chance(seed, {b for _, b in every})[:seeds])
    users = {a for a, b in every if b in journals}
    inside = [(a, b) for a, b in every if a in users]
    counts = {journal: sum(b == journal for _, b in inside) for _, journal in inside}
    popular = sorted(counts, key=lambda journal: (-counts[journal], len(journal), journal))[:publishers]
    sample = universe(graph, seeds=seeds, publishers=publishers, seed=seed)
    assert links(sample) == {(a, b) for a, b in inside if b in popular}
    assert set(sample.node_names) == {a for a, b in inside if b in popular}, "who wants none is no subscriber"


def test_as_many_seeds_are_taken_as_give_the_subscribers() -> None:
    lists = {f"u{n}": [f"f{n % 7}", f"f{n % 3}"] if n % 7 != n % 3 else [f"f{n % 3}"] for n in range(60)}
    whole = Workload.from_lists(lists)
    sample, popular = subscribers_of_popular(whole, subscribers=25, publishers=2, seed=4)
    assert sample.nodes == 25
    assert set(sample.topic_names) <= set(popular)
    assert len(popular) == 2
    of_fewest = next(
        one
        for seeds in range(1, 8)
        if (one := universe(whole, seeds=seeds, publishers=2, seed=4)).nodes >= 25
    )
    assert links(sample) <= links(of_fewest)
    with pytest.raises(BadInput, match="fewer than the 100 asked for"):
        subscribers_of_popular(whole, subscribers=100, publishers=2)


def test_random_topics_come_with_everybody_who_wants_one() -> None:
    whole = Workload.from_lists({f"u{n}": [f"t{n % 5}", f"t{n % 4 + 5}"] for n in range(40)}, hosts=None)
    sample = random_topics(whole, topics=3, seed=2)
    chosen = set(by_chance(2, set(whole.topic_names))[:3])
    assert links(sample) == {(a, b) for a, b in links(whole) if b in chosen}
    with pytest.raises(BadInput, match="9 topics, 10 asked for"):
        random_topics(whole, topics=10)


def test_only_a_graph_of_users_is_searched() -> None:
    places = Workload.from_lists({"1": ["2", "7"], "2": ["1"]})
    for sample in (breadth_first, followed):
        with pytest.raises(BadInput, match="topic '7' is no node, so this is no graph of users"):
            sample(places, nodes=2)


# By what nodes have in common.


def crowd(nodes: int = 2000, topics: int = 1500) -> Workload:
    """Lists of 1 to 40 topics, a few topics wanted by many and most by few."""
    return generate(nodes, topics, "zipf1", 1, 40, seed=3)


def audiences(workload: Workload) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.bincount(workload.topic_index, minlength=workload.topics)


def test_a_sample_by_neighbourhood_keeps_company_and_lengths() -> None:
    whole = crowd()
    some = by_chance(1, set(whole.node_names))[:150]
    lists = {name: whole.interests(whole.node_names.index(name)) for name in some}
    near, random = (
        neighbourhood(whole, 150, seed=1),
        Workload.from_lists(
            {name: [whole.topic_names[topic] for topic in topics] for name, topics in lists.items()}
        ),
    )
    assert near.nodes == random.nodes == 150

    def lonely(workload: Workload) -> float:
        return float((audiences(workload) == 1).mean())

    assert lonely(near) < 0.8 * lonely(random)
    assert audiences(near).mean() > 1.2 * audiences(random).mean()
    lengths, all_lengths = np.diff(near.offsets), np.diff(whole.offsets)
    for share in (0.1, 0.25, 0.5, 0.75, 0.9):
        assert np.quantile(lengths, share) == pytest.approx(np.quantile(all_lengths, share), abs=3)


def test_nodes_keep_all_their_topics_their_places_and_their_changes() -> None:
    lists = {f"n{number}": [f"t{number % 3}", f"u{number % 7}"] for number in range(30)}
    whole = Workload.from_lists(
        lists,
        rates={f"{kind}{number}": 1.0 + number for kind, of in (("t", 3), ("u", 7)) for number in range(of)},
        churn=[(5.0, f"n{number}", "leave") for number in range(30)],
        hosts={name: (float(number), 0.0) for number, name in enumerate(lists)},
    )
    sample = neighbourhood(whole, 10, seed=1)
    for index, name in enumerate(sample.node_names):
        assert sorted(sample.topic_names[topic] for topic in sample.interests(index)) == sorted(lists[name])
        assert sample.hosts is not None
        assert sample.hosts[index, 0] == float(name[1:])
    assert sample.churn.size == 10
    for name, rate in zip(sample.topic_names, sample.rates, strict=True):
        assert rate == 1.0 + int(name[1:])


def test_the_same_seed_gives_the_same_neighbourhood_and_another_gives_another() -> None:
    whole = crowd(400, 300)
    assert neighbourhood(whole, 50, seed=1) == neighbourhood(whole, 50, seed=1)
    assert neighbourhood(whole, 50, seed=1) != neighbourhood(whole, 50, seed=2)
    assert neighbourhood(whole, 400, seed=1) is whole


@given(st.integers(1, 39), st.integers(0, 5))
def test_as_many_as_asked_for(count: int, seed: int) -> None:
    lists = {f"n{number}": [f"t{number % 4}", f"u{number % 5}"][: 1 + number % 2] for number in range(40)}
    assert neighbourhood(Workload.from_lists(lists), count, seed).nodes == count
