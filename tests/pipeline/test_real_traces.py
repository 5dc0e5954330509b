"""The real traces: every count of their description comes out. Needs TOPICWEAVE_DATA; see docs/workloads.md."""

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from topicweave.pipeline.describe import describe
from topicweave.pipeline.importing import Options, import_trace

DATA = os.environ.get("TOPICWEAVE_DATA", "")

pytestmark = pytest.mark.skipif(
    not DATA or not Path(DATA).is_dir(), reason="TOPICWEAVE_DATA does not name the folder of real traces"
)

TRACES: list[tuple[str, str, dict[str, Any], dict[str, int]]] = [
    (
        "subscriptions/facebook_combined.txt.gz",
        "edges",
        {"direction": "both"},
        {"import.links": 88_234, "nodes": 4_039},
    ),
    (
        "subscriptions/twitter_followers_100users.csv.xz",
        "pairs",
        {"header": True, "node": "follower", "topic": "followed"},
        {"subscriptions": 100_600, "nodes": 28_459, "topics": 100},
    ),
    (
        "subscriptions/wikipedia_edits_jodie.txt.xz",
        "edits",
        {},
        {"import.edits": 157_474, "subscriptions": 18_257, "nodes": 8_227, "topics": 1_000},
    ),
    (
        "churn/google2011_machine_events.csv.gz",
        "machine-events",
        {},
        {"import.events": 37_780, "nodes": 12_583},
    ),
    (
        "churn/gnutella_saroiu_intervals.tsv.xz",
        "availability",
        {},
        {"nodes": 17_125, "churn.sessions": 166_071},
    ),
    ("latency/vivaldi_median_p2psim.syscoord.xz", "coordinates", {}, {"nodes": 1_740}),
    (
        "latency/as-caida20071105_undirected.csv.xz",
        "as-graph",
        {},
        {"as_graph.links": 53_381, "as_graph.ases": 26_475},
    ),
]


@pytest.mark.parametrize(("file", "format_name", "options", "counts"), TRACES, ids=[one[0] for one in TRACES])
def test_the_counts_come_out(
    spark: SparkSession,
    tmp_path: Path,
    file: str,
    format_name: str,
    options: dict[str, Any],
    counts: dict[str, int],
) -> None:
    import_trace(spark, format_name, Path(DATA) / file, tmp_path / "out", Options(**options))
    found: Any = describe(spark, tmp_path / "out", sample=0)
    for name, expected in counts.items():
        value = found
        for step in name.split("."):
            value = value[step]
        assert value == expected, name
