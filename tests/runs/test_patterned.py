"""Patterns as a run: what is found is what matches, whatever the system."""

from __future__ import annotations

import doctest

import pytest

from topicweave.blocks.topic_names import NamesParameters
from topicweave.runs import patterned
from topicweave.runs.patterned import Patterned
from topicweave.runs.registry import decode, encode
from topicweave.runs.run import carry_out
from topicweave.runs.sources import ModelWorkload

QUICK = NamesParameters(renew=20.0, watch_renew=10.0)


def run(system: str, seed: int = 0) -> Patterned:
    workload = ModelWorkload("rare", {"nodes": 24, "popular_topics": 10})
    return Patterned(
        system=system,
        workload=workload,
        seed=seed,
        watchers=5,
        fresh=10,
        zones=4,
        names=QUICK,
        settle=90.0,  # until then nodes ask for the others that want their topics, and the ring is not at rest
        observe=20.0,
    )


def test_the_examples_in_the_docstrings() -> None:
    assert doctest.testmod(patterned).failed == 0


@pytest.mark.parametrize("system", ["weave", "scribe"])
def test_all_that_matches_is_found_and_nothing_else(system: str) -> None:
    result = carry_out(decode(encode(run(system))))
    shares = {word: result[word] for word in ("found", "found_quiet", "found_after_crash", "found_end")}
    assert shares == dict.fromkeys(shares, 1.0)
    odd = {word: result[word] for word in ("odd", "odd_quiet", "odd_after_crash", "odd_end", "incomplete")}
    assert odd == dict.fromkeys(odd, 0)
    assert 0.0 < result["found_p50"] <= result["found_p95"] < 3.0
    assert 0.0 < result["gone_p50"] <= result["gone_p95"] < 3.0
    assert result["crash_gone_max"] <= 2 * QUICK.renew + 15.0
    assert 0.0 < result["ring_bytes"] < result["all_bytes"]


def test_the_same_seed_gives_the_same_result() -> None:
    assert carry_out(run("scribe", seed=3)) == carry_out(run("scribe", seed=3))
