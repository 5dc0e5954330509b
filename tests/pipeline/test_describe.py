"""Descriptions of workloads, held to the definitions in memory."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from topicweave.errors import BadInput
from topicweave.measures import tdi
from topicweave.model.workload import Workload
from topicweave.pipeline import power_law
from topicweave.pipeline.describe import describe, facts
from topicweave.pipeline.generate import generate
from topicweave.report.files import json_text
from topicweave.report.workload_page import workload_page


def greedy_coverage(workload: Workload, friends: int) -> list[tuple[float, float]]:
    """Rappel's figure 1 in a few plain lines; which of equally good friends is taken is left open."""
    lists = [set(workload.interests(node).tolist()) for node in range(workload.nodes)]
    left = [set(wanted) for wanted in lists]
    steps = []
    for _ in range(friends):
        for node, uncovered in enumerate(left):
            best = max(
                (other for at, other in enumerate(lists) if at != node), key=lambda one: len(one & uncovered)
            )
            left[node] = uncovered - best
        covered = [1 - len(rest) / len(wanted) for rest, wanted in zip(left, lists, strict=True)]
        steps.append((float(np.mean(covered)), float(np.mean([share == 1 for share in covered]))))
    return steps


def test_a_workload_is_described_as_memory_would(spark: SparkSession, tmp_path: Path) -> None:
    generate("omen-expo", {"nodes": 60, "topics": 100, "max_size": 30}, 4, tmp_path / "w")
    workload = Workload.load(tmp_path / "w")
    found = describe(spark, tmp_path / "w", d=7)
    sizes = np.diff(workload.offsets)
    assert (found["nodes"], found["topics"], found["subscriptions"]) == (60, 100, int(sizes.sum()))
    assert found["list_sizes"]["mean"] == pytest.approx(sizes.mean())
    assert found["list_sizes"]["max"] == sizes.max()
    likeness = found["likeness"]
    assert likeness["sampled"] == likeness["of"] == 60
    assert likeness["tdi_7"] == pytest.approx(tdi(workload.tables()["subscriptions"], 7))
    first = greedy_coverage(workload, 1)[0]
    assert likeness["friends"][0]["coverage_mean"] == pytest.approx(first[0])
    shares = [step["coverage_mean"] for step in likeness["friends"]]
    assert len(shares) == 10
    assert shares == sorted(shares)

    assert json.loads(json_text(found))["nodes"] == 60
    assert ("nodes", "60") in list(facts(found))
    page = workload_page(found)
    assert 'id="popularity"' in page
    assert "http-equiv" in page


def test_a_power_law_is_found_with_its_error() -> None:
    drawn = np.floor((1 - np.random.default_rng(1).random(200_000)) ** (-1 / 1.5) * 4.5 + 0.5).astype(
        np.int64
    )
    values, times = np.unique(drawn, return_counts=True)
    fitted = power_law.fit(values, times)
    assert fitted.alpha == pytest.approx(2.5, abs=0.05)
    assert fitted.error == pytest.approx((fitted.alpha - 1) / math.sqrt(fitted.tail))
    assert fitted.fits
    narrow = power_law.fit(np.arange(40, 60), np.full(20, 100))
    assert not narrow.fits, "twenty values of one height: some exponent is found, and it means nothing"
    nothing = power_law.fit(np.empty(0, np.int64), np.empty(0, np.int64))
    assert math.isnan(nothing.alpha)


def test_a_folder_without_tables_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no tables of ours"):
        describe(spark, tmp_path)
