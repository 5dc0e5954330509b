"""The compiled rules of Vitis and RVR against the rules that nodes call, on random small inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topicweave.blocks import small_world
from topicweave.bulk.vitis import kernels
from topicweave.model.ids import RING_SIZE
from topicweave.systems.vitis import rules

TOPICS = 12
identifiers = st.lists(
    st.one_of(st.integers(0, 40), st.integers(0, RING_SIZE - 1)), min_size=2, max_size=14, unique=True
).map(sorted)
"""Close together, so that ties are common, and all over the ring."""
points = st.one_of(st.integers(0, 40), st.integers(0, RING_SIZE - 1))
interests = st.frozensets(st.integers(0, TOPICS - 1), max_size=6)


def subscribers(ids: list[int], wants: list[frozenset[int]], rates: list[float] | None = None) -> Any:
    weights = np.array(rates or [1.0] * TOPICS)
    offsets = np.cumsum([0, *(len(wanted) for wanted in wants)])
    topics = np.array([topic for wanted in wants for topic in sorted(wanted)], np.int32)
    return kernels.Subscribers(
        np.array(ids, np.uint64),
        np.array([(7919 * topic * RING_SIZE // 104729) % RING_SIZE for topic in range(TOPICS)], np.uint64),
        offsets,
        topics,
        weights,
        np.array([sum(weights[topic] for topic in wanted) for wanted in wants]),
    )


@given(identifiers, points, st.data())
@settings(max_examples=150, deadline=None)
def test_lookups_go_where_the_router_goes(ids: list[int], point: int, data: st.DataObject) -> None:
    own = data.draw(st.integers(0, len(ids) - 1))
    links = data.draw(st.lists(st.integers(0, len(ids) - 1), unique=True))
    kept = [data.draw(st.booleans()) for _ in links]
    hop = kernels.next_hop(
        *(np.array(ids, np.uint64), own, np.array(links, np.int32), np.array(kept, np.bool_), len(links)),
        np.uint64(point),
    )
    router = small_world.Router(
        ids[own], [ids[link] for link, there in zip(links, kept, strict=True) if there]
    )
    assert ids[hop] == router.next_hop(point)


@given(st.integers(2, 30), st.data())
@settings(max_examples=150, deadline=None)
def test_sides_are_those_of_the_ring(nodes: int, data: st.DataObject) -> None:
    own = data.draw(st.integers(0, nodes - 1))
    peers = data.draw(st.lists(st.integers(0, nodes - 1).filter(lambda peer: peer != own), unique=True))
    around = np.empty(8, np.int64)
    found = kernels.ring_sides(own, nodes, np.array(peers, np.int64), len(peers), 4, around)
    assert around[:found].tolist() == small_world.ring_sides(own, sorted(peers), 4)


@given(
    st.integers(0, RING_SIZE - 1),
    st.floats(0.0, 1.0, exclude_max=True),
    st.integers(1, 40).map(lambda n: 1 << n),
)
@settings(max_examples=150, deadline=None)
def test_long_links_lead_as_far_as_the_rule_says(own: int, place: float, nodes: int) -> None:
    far = (int(kernels.harmonic_point(np.uint64(own), place, nodes)) - own) % RING_SIZE
    assert far == pytest.approx(small_world.harmonic_distance(place, nodes), rel=1e-9, abs=1)


@given(identifiers, st.data())
@settings(max_examples=100, deadline=None)
def test_the_estimate_of_how_many_there_are_is_the_rules(ids: list[int], data: st.DataObject) -> None:
    own = data.draw(st.sampled_from(ids))
    one, other = (data.draw(st.sampled_from([peer for peer in ids if peer != own])) for _ in range(2))
    estimate = kernels.estimated_nodes(*map(np.uint64, (own, one, other)))
    assert estimate == min(small_world.estimated_nodes(own, one, other), 1 << 62)


@given(interests, interests, st.lists(st.floats(0.0, 100.0), min_size=TOPICS, max_size=TOPICS))
@settings(max_examples=150, deadline=None)
def test_utility_is_equation_1(mine: frozenset[int], theirs: frozenset[int], rates: list[float]) -> None:
    marks = np.full(TOPICS, -1, np.int64)
    for given_rates in (None, rates):
        both = subscribers([1, 2], [mine, theirs], given_rates)
        kernels.mark_topics(both, 0, marks)
        expected = rules.utility(mine, theirs, dict(enumerate(rates)) if given_rates else None)
        assert kernels.utility(both, 0, 1, marks) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(identifiers, st.data())
@settings(max_examples=300, deadline=None)
def test_tables_are_those_of_algorithm_4(ids: list[int], data: st.DataObject) -> None:
    wants = [data.draw(interests) for _ in ids]
    # Whole numbers: their sums are exact in any order, so equal utilities are equal in both.
    rates = [float(data.draw(st.integers(0, 4))) for _ in range(TOPICS)]
    own = data.draw(st.integers(0, len(ids) - 1))
    candidates = data.draw(
        st.lists(st.integers(0, len(ids) - 1).filter(lambda peer: peer != own), unique=True)
    )
    size = data.draw(st.integers(3, 8))
    targets = data.draw(st.lists(points, max_size=size - 2))
    friends = data.draw(st.booleans())
    everyone = subscribers(ids, wants, rates)
    chosen = np.empty(size + 2, np.int64)
    found = kernels.select_neighbours(
        *(everyone, own, np.array(candidates, np.int64), len(candidates), np.array(targets, np.uint64), size),
        *(friends, np.full(TOPICS, -1, np.int64), chosen),
    )
    by_id = dict(zip(ids, wants, strict=True))
    named = dict(enumerate(rates))
    choices = rules.select_neighbours(
        ids[own],
        [ids[peer] for peer in candidates],
        sorted(ids[peer] for peer in candidates),
        targets,
        size,
        (lambda peers: [rules.utility(wants[own], by_id[peer], named) for peer in peers])
        if friends
        else None,
    )
    assert [ids[candidates[place]] for place in chosen[:found]] == [peer for peer, _ in choices]


@given(identifiers, st.integers(0, 5), st.data())
@settings(max_examples=300, deadline=None)
def test_proposals_are_those_of_algorithm_5(ids: list[int], most_hops: int, data: st.DataObject) -> None:
    wants = [data.draw(interests) for _ in ids]
    everyone = subscribers(ids, wants)
    wishes = len(everyone.topics)
    node = st.integers(0, len(ids) - 1)
    proposals = kernels.Proposals(
        np.array([data.draw(node) for _ in range(wishes)], np.int32),
        np.array([data.draw(node) for _ in range(wishes)], np.int32),
        np.array([data.draw(st.integers(0, 5)) for _ in range(wishes)], np.int32),
    )
    before = [column.copy() for column in proposals]
    own = data.draw(node)
    links = sorted(data.draw(st.sets(node.filter(lambda peer: peer != own))))
    kernels.elect_gateways(
        *(everyone, proposals, own, np.array(links, np.int32), most_hops),
        *(np.full(TOPICS, -1, np.int64), np.empty(TOPICS, np.int64), np.full(len(ids), -1, np.int64)),
    )
    start, end = everyone.offsets[own : own + 2]
    mine = everyone.topics[start:end].tolist()
    offers = [
        (mine.index(topic), link, place)
        for link in links
        for place, topic in enumerate(everyone.topics.tolist())
        if everyone.offsets[link] <= place < everyone.offsets[link + 1] and topic in mine
    ]
    names = everyone.ids
    said = np.array(
        [
            [names[before[0][place]] for _, _, place in offers],
            [names[before[1][place]] for _, _, place in offers],
            [before[2][place] for _, _, place in offers],
        ],
        np.uint64,
    ).reshape(3, len(offers))
    expected = rules.elect_gateways(
        ids[own],
        everyone.points[mine],
        rules.Offers(
            np.array([topic for topic, _, _ in offers], np.int64),
            names[[link for _, link, _ in offers]],
            said,
        ),
        names[links],
        most_hops,
    )
    assert names[proposals.gateways[start:end]].tolist() == expected[rules.GATEWAYS].tolist()
    assert names[proposals.parents[start:end]].tolist() == expected[rules.PARENTS].tolist()
    assert proposals.hops[start:end].tolist() == expected[rules.HOPS].tolist()
    others = np.ones(wishes, np.bool_)
    others[start:end] = False
    for column, old in zip(proposals, before, strict=True):
        assert (column[others] == old[others]).all()


@given(st.lists(st.integers(0, 6), max_size=12), st.integers(1, 8))
@settings(max_examples=100, deadline=None)
def test_the_freshest_stay(made: list[int], most: int) -> None:
    peers, when = np.arange(len(made)), np.array(made, np.float64)
    count = kernels.keep_freshest(peers, when, len(made), most)
    by_age = sorted(range(len(made)), key=lambda peer: -made[peer])[:most]
    assert peers[:count].tolist() == (by_age if len(made) > most else list(range(len(made))))
    assert when[:count].tolist() == [made[peer] for peer in peers[:count]]
