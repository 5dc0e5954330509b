"""Topic popularity as SpiderCast §3.1 states it."""

import doctest

import numpy as np
import pytest

from topicweave.errors import BadInput, UnknownName
from topicweave.workloads import popularity as popularity_function
from topicweave.workloads.popularity import MODELS, nyse, popularity, uniform, zipf


def test_the_examples_in_the_docstrings() -> None:
    assert popularity_function is popularity
    found = doctest.DocTestFinder().find(popularity, globs={"popularity": popularity})
    outcomes = [doctest.DocTestRunner().run(example) for example in found]
    assert sum(outcome.attempted for outcome in outcomes) > 0
    assert sum(outcome.failed for outcome in outcomes) == 0


@pytest.mark.parametrize("topics", [1, 7, 100, 1000])
@pytest.mark.parametrize("name", MODELS)
def test_models_are_probabilities_that_never_grow(name: str, topics: int) -> None:
    probabilities = popularity(name, topics)
    assert probabilities.shape == (topics,)
    assert probabilities.sum() == pytest.approx(1.0)
    assert (probabilities > 0).all()
    assert (np.diff(probabilities) <= 0).all()


@pytest.mark.parametrize(("name", "alpha"), [("rss", 0.5), ("zipf1", 1.0), ("zipf2", 2.0)])
def test_zipf_falls_with_its_exponent(name: str, alpha: float) -> None:
    probabilities = popularity(name, 100)
    assert np.array_equal(probabilities, zipf(100, alpha))
    assert probabilities[0] / probabilities[3] == pytest.approx(4**alpha)
    assert probabilities[0] / probabilities[99] == pytest.approx(100**alpha)


@pytest.mark.parametrize("topics", [10, 100, 1000, 10_000])
def test_the_tenth_most_popular_stocks_draw_55_percent(topics: int) -> None:
    assert nyse(topics)[: topics // 10].sum() == pytest.approx(0.55, abs=1e-9)


def test_stocks_decay_exponentially() -> None:
    probabilities = nyse(100)
    assert probabilities[1:] / probabilities[:-1] == pytest.approx(probabilities[1] / probabilities[0])


def test_uniform_topics_are_alike() -> None:
    assert uniform(8).tolist() == [0.125] * 8


def test_an_unknown_model_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        UnknownName, match=r"unknown popularity model 'zip'; known: nyse, rss, uniform, zipf1, zipf2, zipf:A"
    ):
        popularity("zip", 10)


def test_zipf_with_any_exponent() -> None:
    assert popularity("zipf:2", 30).tolist() == popularity("zipf2", 30).tolist()
    for wrong in ("zipf:", "zipf:steep", "zipf:-1", "zipf:nan"):
        with pytest.raises(BadInput, match="popularity"):
            popularity(wrong, 10)


def test_every_model_has_a_one_line_description() -> None:
    for model in MODELS.values():
        assert model.description
        assert "\n" not in model.description
