"""Subscription lists of SpiderCast §3.1: their law, their sizes, and that any part comes out the same."""

import doctest
import itertools
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from topicweave.errors import BadInput, UnknownName
from topicweave.workloads import draw_lists, generate, popularity, spidercast

SMALL = np.array([0.5, 0.25, 0.15, 0.1])


def sequential_law(probabilities: npt.NDArray[np.float64], size: int) -> dict[tuple[int, ...], float]:
    """The probability of each set of topics, summed over all the orders it can be drawn in, one by one."""
    law: defaultdict[tuple[int, ...], float] = defaultdict(float)
    for order in itertools.permutations(range(len(probabilities)), size):
        chance, left = 1.0, 1.0
        for topic in order:
            chance *= probabilities[topic] / left
            left -= probabilities[topic]
        law[tuple(sorted(order))] += chance
    return law


def lists_of(nodes: npt.NDArray[np.int64], topics: npt.NDArray[np.int64]) -> dict[int, tuple[int, ...]]:
    return {int(node): tuple(topics[nodes == node].tolist()) for node in np.unique(nodes)}


def test_the_examples_in_the_docstrings() -> None:
    outcome = doctest.testmod(spidercast)
    assert outcome.attempted > 0
    assert outcome.failed == 0


class TestLaw:
    @pytest.mark.parametrize("size", [1, 2, 3])
    @pytest.mark.parametrize("seed", [0, 1])
    def test_lists_follow_the_sequential_draw(self, size: int, seed: int) -> None:
        law = sequential_law(SMALL, size)
        _, topics = draw_lists(0, 20_000, SMALL, size, size, seed)
        counts = Counter(map(tuple, topics.reshape(-1, size).tolist()))
        assert counts.keys() <= law.keys()
        observed, expected = zip(
            *((counts[drawn], 20_000 * chance) for drawn, chance in law.items()), strict=True
        )
        assert stats.chisquare(observed, expected).pvalue > 1e-4

    def test_the_test_above_tells_other_laws_apart(self) -> None:
        """A draw that forgot popularity after the first topic would be noticed."""
        _, topics = draw_lists(0, 20_000, SMALL, 2, 2, 0)
        counts = Counter(map(tuple, topics.reshape(-1, 2).tolist()))
        wrong = {
            pair: (SMALL[pair[0]] + SMALL[pair[1]]) / 3
            for pair in itertools.combinations(range(len(SMALL)), 2)
        }
        observed, expected = zip(
            *((counts[drawn], 20_000 * chance) for drawn, chance in wrong.items()), strict=True
        )
        assert stats.chisquare(observed, expected).pvalue < 1e-9

    @pytest.mark.parametrize("name", ["rss", "zipf1", "zipf2", "nyse", "uniform"])
    def test_first_draws_follow_the_popularity(self, name: str) -> None:
        probabilities = popularity(name, 50)
        _, topics = draw_lists(0, 50_000, probabilities, 1, 1, seed=3)
        counts = np.bincount(topics, minlength=50)
        assert stats.chisquare(counts, 50_000 * probabilities).pvalue > 1e-4

    def test_the_tenth_most_popular_stocks_draw_55_percent(self) -> None:
        _, topics = draw_lists(0, 50_000, popularity("nyse", 100), 1, 1, seed=2)
        # Standard error of a share of 0.55 in 50,000 draws: 0.0022; we allow four of them.
        assert np.mean(topics < 10) == pytest.approx(0.55, abs=0.009)

    def test_sizes_are_uniform_between_min_and_max(self) -> None:
        nodes, _ = draw_lists(0, 30_000, popularity("rss", 20), 2, 7, seed=5)
        sizes = np.bincount(np.bincount(nodes, minlength=30_000), minlength=9)
        assert sizes[:2].sum() == sizes[8:].sum() == 0
        assert stats.chisquare(sizes[2:8]).pvalue > 1e-4

    def test_a_smaller_list_of_mixed_sizes_keeps_the_law(self) -> None:
        """The one topic of a list of one is a first draw: the first to arrive, not any that arrived."""
        nodes, topics = draw_lists(0, 60_000, SMALL, 1, 3, seed=6)
        lone = topics[np.bincount(nodes)[nodes] == 1]
        assert len(lone) > 15_000
        assert stats.chisquare(np.bincount(lone, minlength=4), len(lone) * SMALL).pvalue > 1e-4


class TestDrawLists:
    @given(st.integers(1, 30), st.data())
    def test_rows_are_in_order_and_never_repeat(self, topic_count: int, data: st.DataObject) -> None:
        max_size = data.draw(st.integers(0, topic_count))
        min_size = data.draw(st.integers(0, max_size))
        nodes, topics = draw_lists(5, 25, popularity("zipf1", topic_count), min_size, max_size, seed=9)
        rows = list(zip(nodes.tolist(), topics.tolist(), strict=True))
        assert rows == sorted(set(rows))
        sizes = np.bincount(nodes, minlength=25)
        assert sizes[:5].sum() == 0
        assert min_size <= sizes[5:].min() <= sizes[5:].max() <= max_size
        assert all(0 <= topic < topic_count for topic in topics)

    @given(st.lists(st.integers(0, 300), max_size=4), st.sampled_from([1, 64, 1000, 1 << 18]))
    def test_partitions_and_chunks_do_not_matter(self, cuts: list[int], chunk_cells: int) -> None:
        probabilities = popularity("rss", 40)
        whole = draw_lists(0, 300, probabilities, 3, 8, seed=4)
        borders = [0, *sorted(cuts), 300]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(spidercast, "_CHUNK_CELLS", chunk_cells)
            parts = [draw_lists(a, b, probabilities, 3, 8, seed=4) for a, b in itertools.pairwise(borders)]
        for column in (0, 1):
            assert np.array_equal(whole[column], np.concatenate([part[column] for part in parts]))

    def test_the_size_range_does_not_change_the_race(self) -> None:
        """A node with a longer list wants all that it would with a shorter one."""
        short = lists_of(*draw_lists(0, 100, popularity("rss", 30), 4, 4, seed=1))
        long = lists_of(*draw_lists(0, 100, popularity("rss", 30), 9, 9, seed=1))
        assert all(set(short[node]) < set(long[node]) for node in range(100))

    def test_seeds_differ(self) -> None:
        one, other = (draw_lists(0, 50, popularity("rss", 100), 10, 10, seed)[1] for seed in (1, 2))
        assert not np.array_equal(one, other)

    @pytest.mark.parametrize(("min_size", "max_size"), [(-1, 2), (3, 2), (2, 5)])
    def test_impossible_sizes_are_refused(self, min_size: int, max_size: int) -> None:
        with pytest.raises(
            BadInput, match=rf"{min_size} to {max_size} of 4 topics per node: impossible; choose"
        ):
            draw_lists(0, 10, SMALL, min_size, max_size, seed=0)


class TestGenerate:
    def test_holds_the_drawn_lists_under_their_names(self) -> None:
        workload = generate(120, 30, "zipf2", 0, 5, seed=8)
        nodes, topics = workload.subscription_pairs()
        drawn = draw_lists(0, 120, popularity("zipf2", 30), 0, 5, seed=8)
        assert np.array_equal(nodes, drawn[0])
        assert np.array_equal(topics, drawn[1])
        assert workload.node_names == tuple(f"n{node}" for node in range(120))
        assert workload.topic_names == tuple(f"t{topic}" for topic in range(30))
        assert set(workload.rates.tolist()) == {1.0}

    def test_keeps_nodes_and_topics_nobody_drew(self) -> None:
        workload = generate(3, 1000, min_size=0, max_size=0)
        assert (workload.nodes, workload.topics) == (3, 1000)

    def test_the_defaults_are_the_paper_s_most_used_workload(self) -> None:
        assert generate(50, 100) == generate(50, 100, "rss", 10, 10, seed=0)

    @pytest.mark.parametrize(("nodes", "topics"), [(0, 5), (5, 0), (-1, 5)])
    def test_nothing_to_generate_is_refused(self, nodes: int, topics: int) -> None:
        with pytest.raises(
            BadInput, match=rf"{nodes} nodes and {topics} topics: too few; ask for at least one"
        ):
            generate(nodes, topics, min_size=0, max_size=0)

    def test_an_unknown_popularity_is_refused(self) -> None:
        with pytest.raises(UnknownName, match="unknown popularity model 'zipf9'"):
            generate(5, 5, "zipf9", 1, 1)

    def test_saved_bytes_are_the_same_in_every_process(self, tmp_path: Path) -> None:
        script = (
            "import sys; from topicweave.workloads import generate; "
            "generate(200, 50, seed=3).save(sys.argv[1])"
        )
        for hash_seed in ("1", "2"):
            subprocess.run(
                [sys.executable, "-c", script, str(tmp_path / hash_seed)],
                check=True,
                env={"PYTHONHASHSEED": hash_seed},
            )
        for table in ("subscriptions.parquet", "topics.parquet"):
            assert (tmp_path / "1" / table).read_bytes() == (tmp_path / "2" / table).read_bytes()
