"""The papers' synthetic models: what each paper states of its own, and that any part of one comes out the same."""

import doctest
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from topicweave.errors import BadInput, UnknownName
from topicweave.model.patterns import matches
from topicweave.model.workload import Workload
from topicweave.workloads import catalogue, distinct, hierarchy, levels, magnet, rare, rates
from topicweave.workloads.catalogue import MODELS, build, find_model
from topicweave.workloads.distinct import distinct_choices

SMALL: dict[str, dict[str, Any]] = {
    "spidercast": {"nodes": 90},
    "vitis-random": {"nodes": 90, "topics": 500},
    "vitis-low": {"nodes": 90},
    "vitis-high": {"nodes": 90},
    "magnet-multi-modal": {"nodes": 90},
    "magnet-spatial": {"nodes": 90, "average": 8},
    "magnet-hierarchical": {"nodes": 90, "topics": 64, "average": 4},
    "omen-uniform": {"nodes": 90},
    "omen-zipf": {"nodes": 90},
    "omen-expo": {"nodes": 90},
    "rare": {"nodes": 90},
    "levels": {"nodes": 90},
}


def sizes_of(workload: Workload) -> npt.NDArray[np.int64]:
    return np.diff(workload.offsets)


def audience_of(workload: Workload) -> npt.NDArray[np.int64]:
    return np.bincount(workload.topic_index, minlength=workload.topics)


@pytest.mark.parametrize("module", [catalogue, distinct, levels, magnet, rare, rates])
def test_the_examples_in_the_docstrings(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


def test_every_model_is_there() -> None:
    assert set(SMALL) == set(MODELS)


@pytest.mark.parametrize("name", SMALL)
def test_parts_drawn_apart_fit_together(name: str) -> None:
    model = find_model(name)
    settings = model.settings(**SMALL[name])
    moment = hierarchy.stopping_time(model.growth(settings), 5) if model.growth else 0.0
    whole = model.lists(settings, 5, 0, 90, moment)
    parts = [model.lists(settings, 5, first, last, moment) for first, last in pairwise((0, 1, 40, 40, 90))]
    for place in (0, 1):
        np.testing.assert_array_equal(np.concatenate([part[place] for part in parts]), whole[place])
    assert (np.diff(whole[0] * 10_000 + whole[1]) > 0).all(), "by node, then topic, without repetitions"


@pytest.mark.parametrize("name", SMALL)
def test_another_seed_is_another_workload(name: str) -> None:
    assert build(name, 1, **SMALL[name]) != build(name, 2, **SMALL[name])


def test_distinct_choices_take_every_number_alike() -> None:
    for choices, wanted in ((12, 5), (100, 5)):  # the dense and the sparse way
        drawn = distinct_choices(3, 1, np.arange(20_000), choices, wanted)
        assert (np.diff(drawn, axis=1) > 0).all()
        counts = np.bincount(drawn.ravel(), minlength=choices)
        # Within a row choices exclude each other, so the statistic is a little below chi-square: a safe test.
        assert stats.chisquare(counts).pvalue > 1e-4


def test_vitis_popularity_is_uniform_and_correlation_grows() -> None:
    alike = {}
    for name in ("vitis-random", "vitis-low", "vitis-high"):
        workload = build(name, 1, nodes=2000)
        assert (sizes_of(workload) == 50).all()
        audience = audience_of(workload)
        assert len(audience) == 5000
        assert audience.mean() == 20
        assert audience.max() < 50, "no topic stands out"
        first = set(workload.interests(0).tolist())
        alike[name] = max(len(first & set(workload.interests(node).tolist())) for node in range(1, 2000))
    assert alike["vitis-random"] < alike["vitis-low"] < alike["vitis-high"]


@pytest.mark.parametrize(("name", "buckets", "each"), [("vitis-low", 5, 10), ("vitis-high", 2, 25)])
def test_vitis_lists_take_an_equal_share_of_a_few_buckets(name: str, buckets: int, each: int) -> None:
    workload = build(name, 4, nodes=200)
    for node in range(200):
        _, counts = np.unique(workload.interests(node) // 50, return_counts=True)
        assert counts.tolist() == [each] * buckets


def test_rates_follow_the_power_law_and_average_one() -> None:
    flat, steep = (build("vitis-random", 1, nodes=10, rate_exponent=alpha).rates for alpha in (0.3, 3.0))
    assert flat.mean() == pytest.approx(1) == steep.mean()
    assert flat[0] / flat[999] == pytest.approx(1000**0.3)
    assert steep[0] / steep.sum() > 0.8, "§IV-D: almost all the events are published on a single topic"


def test_multi_modal_keeps_to_its_categories_and_prefers_the_popular() -> None:
    workload = build("magnet-multi-modal", 2, nodes=3000, chosen=2, categories=20)
    assert (sizes_of(workload) == 50).all()
    for node in range(200):
        assert len(np.unique(workload.interests(node) % 20)) <= 2
    by_rank = audience_of(workload).reshape(50, 20).sum(axis=1)
    assert by_rank[0] > by_rank[5] > by_rank[20] > by_rank[49]


def test_the_ratio_of_categories_keeps_topic_frequencies() -> None:
    """§4.2: b_p and b_n in one ratio give the same frequencies, less correlation with more categories."""
    few, many = (
        build("magnet-multi-modal", 3, nodes=4000, chosen=chosen, categories=10 * chosen, size=20, alpha=0.0)
        for chosen in (1, 5)
    )
    assert audience_of(few).mean() == audience_of(many).mean() == 80

    def common(workload: Workload) -> float:
        lists = [set(workload.interests(node).tolist()) for node in range(300)]
        return max(len(lists[0] & other) for other in lists[1:])

    assert common(few) > common(many)


@pytest.mark.parametrize("average", [8, 16, 32])
def test_spatial_lists_have_the_wanted_length_on_average(average: int) -> None:
    nodes = 4000
    workload = build("magnet-spatial", 1, nodes=nodes, average=average)
    # Neighbours are nearly Poisson, and each pair counts at both ends.
    error = (2 * average / nodes) ** 0.5
    assert sizes_of(workload).mean() == pytest.approx(average, abs=4 * error)


def test_spatial_lists_are_all_nodes_within_the_radius() -> None:
    workload = build("magnet-spatial", 7, nodes=300, average=12)
    assert workload.hosts is not None
    radius = magnet.radius_for(300, 12)
    gaps = workload.hosts[:, np.newaxis] - workload.hosts
    near = (gaps**2).sum(axis=2) <= radius * radius
    for node in range(300):
        assert workload.interests(node).tolist() == np.flatnonzero(near[node]).tolist()


def test_hierarchical_lists_average_z_and_every_topic_has_a_subscriber() -> None:
    workload = build("magnet-hierarchical", 1, nodes=1024, topics=1024, average=8, initial_share=0.2)
    assert workload.topic_index.size == 8 * 1024
    assert audience_of(workload).min() >= 1
    assert sizes_of(workload).min() >= 1


def test_homophily_brings_topics_of_a_list_together() -> None:
    def distance(homophily: float) -> float:
        workload = build("magnet-hierarchical", 2, nodes=512, topics=1024, average=6, homophily=homophily)
        gaps = [
            (int(a) ^ int(b)).bit_length()
            for node in range(512)
            for a, b in pairwise(workload.interests(node).tolist())
        ]
        return float(np.mean(gaps))

    assert distance(2.0) < distance(0.7) < distance(0.0)


@pytest.mark.parametrize("homophily", [0.0, 1.0, 4.0])
def test_lists_grow_until_they_hold_all_topics_also_where_the_tree_is_not_full(homophily: float) -> None:
    model = hierarchy.Hierarchy(200, 6, 1, 0.5, 2.0, homophily)
    grown = hierarchy.grow(model, 0, 200, 1e9, 1)
    who = np.unique(grown.node)
    np.testing.assert_array_equal(grown.node, np.repeat(who, 6))
    np.testing.assert_array_equal(grown.topic, np.tile(np.arange(6), len(who)))


def test_what_is_brought_is_what_a_proposal_would_be_if_it_is_new() -> None:
    """Proposals drawn literally and those that add nothing thrown away, against ours: the same chances for
    every topic.
    """
    model = hierarchy.Hierarchy(1, 11, 1, 1.0, 2.0, 0.8)
    held, draws = [2, 3, 9], 40_000
    lists = hierarchy._Lists(hierarchy._tree(model), draws, 8)
    rows = np.arange(draws)
    for topic in held:
        lists.add(rows, np.full(draws, topic), 0.0)
    rng = np.random.default_rng(1)
    place = np.zeros(draws, np.int64)
    brought, any_left = lists.bring(
        rows, place, rng.random(draws), rng.integers(1 << 63, size=draws).astype(np.uint64)
    )
    assert any_left.all()
    # From topic 2: 3 at distance 1; 0 and 1 at 2; 4 to 7 at 3; 8 to 10 at 4.
    chances = np.exp(-0.8 * np.array([1, 2, 3, 4]))
    chances /= chances.sum()
    each = np.repeat(chances / [1, 2, 4, 3], [1, 2, 4, 3])
    by_topic = dict(zip([3, 0, 1, 4, 5, 6, 7, 8, 9, 10], each.tolist(), strict=True))
    wanted = {topic: chance for topic, chance in by_topic.items() if topic not in held}
    assert lists.new[0, 0] == pytest.approx(sum(wanted.values()))
    counts = np.bincount(brought, minlength=11)
    assert set(np.flatnonzero(counts)) == set(wanted)
    expected = np.array([wanted[topic] for topic in sorted(wanted)])
    expected *= draws / expected.sum()
    assert stats.chisquare([counts[topic] for topic in sorted(wanted)], expected).pvalue > 1e-4


def test_growing_peer_by_peer_has_the_law_of_the_papers_process() -> None:
    """The process of §4.4 b), drawn literally, and ours: the same distribution of list sizes."""
    nodes, topics, average, homophily = 64, 32, 5.0, 1.0
    model = hierarchy.Hierarchy(nodes, topics, average, 0.3, 2.0, homophily)
    ours, literal = [], []
    rng = np.random.default_rng(5)
    for seed in range(60):
        workload = build(
            "magnet-hierarchical",
            seed,
            nodes=nodes,
            topics=topics,
            average=average,
            initial_share=0.3,
            homophily=homophily,
        )
        ours += sizes_of(workload).tolist()
        peers, leaves = hierarchy.initial_subscriptions(model, 0, nodes, seed)
        edges = list(zip(peers.tolist(), leaves.tolist(), strict=True))
        held = set(edges)
        while len(edges) < model.target:
            peer, leaf = edges[rng.integers(len(edges))]
            levels = np.arange(1, model.height + 1)
            chances = np.exp(-homophily * levels)
            level = int(rng.choice(levels, p=chances / chances.sum()))
            new = (((leaf >> (level - 1)) ^ 1) << (level - 1)) + int(rng.integers(1 << (level - 1)))
            if (peer, new) not in held:
                held.add((peer, new))
                edges.append((peer, new))
        literal += np.bincount([peer for peer, _ in edges], minlength=nodes).tolist()
    assert stats.ks_2samp(ours, literal).pvalue > 1e-3


def test_omen_sizes_follow_a_power_law_within_their_interval() -> None:
    sizes = sizes_of(build("omen-uniform", 1, nodes=20_000))
    assert (int(sizes.min()), int(sizes.max())) == (10, 90)
    weights = np.arange(10, 91) ** -2.0
    expected = 20_000 * weights / weights.sum()
    assert stats.chisquare(np.bincount(sizes, minlength=91)[10:], expected).pvalue > 1e-4


def test_omen_popularities_are_those_of_the_paper() -> None:
    flat, steep = (audience_of(build(f"omen-{kind}", 1)) for kind in ("uniform", "zipf"))
    assert flat.max() < 1.5 * flat.mean()
    assert steep[0] == 2000, "with an exponent of 2 everybody has the first topic"
    expo = audience_of(build("omen-expo", 1, min_size=1, max_size=1))
    assert expo[:20].sum() / expo.sum() == pytest.approx(0.55, abs=4 * (0.55 * 0.45 / 2000) ** 0.5)


@pytest.mark.parametrize(
    ("name", "parameters", "words"),
    [
        ("vitis-low", {"size": 51}, "equal shares"),
        ("vitis-random", {"topics": 10}, "50 topics from 1 buckets of 10"),
        ("vitis-high", {"nodes": 0}, "too few"),
        ("magnet-multi-modal", {"chosen": 11}, "11 of 10 categories"),
        ("magnet-spatial", {"average": 0.5}, "out of reach"),
        ("magnet-hierarchical", {"average": 9000}, "at most a quarter"),
        ("omen-zipf", {"min_size": 0}, "choose 1 <= min <= max"),
        ("omen-zipf", {"sizes": 3}, "its parameters: nodes, topics"),
        ("spidercast", {"nodes": "many"}, "spidercast"),
        ("spidercast", {"popularity": "zipf:x"}, "zipf:1.3"),
    ],
)
def test_impossible_parameters_are_refused_in_words(
    name: str, parameters: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadInput, match=words):
        build(name, 0, **parameters)


def test_an_unknown_model_names_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="vitis-high"):
        find_model("vitis")


def test_rare_topics_have_just_the_audience_asked_for() -> None:
    workload = build("rare", 3, nodes=100, popular_topics=20, popular=3, rare=2, audience=3)
    assert (sizes_of(workload) == 5).all()
    audience = audience_of(workload)
    assert audience[:20].sum() == 300
    # 33 groups of three in each of two orders; the hundredth node joins the last one.
    assert sorted(audience[20:].tolist()) == [3] * 64 + [4] * 2
    two = audience_of(build("rare", 3, nodes=1000, popular_topics=0, popular=0, rare=4, audience=2))
    assert two.tolist() == [2] * 2000


def test_rare_refuses_what_cannot_be() -> None:
    for changes in ({"popular": 21}, {"audience": 0}, {"popular": 0, "rare": 0}):
        with pytest.raises(BadInput, match="choose"):
            build("rare", 1, **changes)


def test_levels_are_what_their_patterns_match() -> None:
    workload = build("levels", 3, nodes=60, zones=7, devices=9, whole=2, across=1)
    names = [f"zone/{topic % 7}/device/{topic // 7}/t" for topic in range(63)]
    for node in range(60):
        wanted = workload.interests(node).tolist()
        zones = [
            zone for zone in range(7) if {topic for topic in range(63) if topic % 7 == zone} <= set(wanted)
        ]
        devices = [device for device in range(9) if set(range(7 * device, 7 * device + 7)) <= set(wanted)]
        assert (len(zones), len(devices)) == (2, 1)
        patterns = [*(f"zone/{zone}/#" for zone in zones), f"zone/+/device/{devices[0]}/#"]
        expected = [
            topic for topic in range(63) if any(matches(pattern, names[topic]) for pattern in patterns)
        ]
        assert wanted == expected
    with pytest.raises(BadInput, match="choose"):
        build("levels", 1, whole=21)
