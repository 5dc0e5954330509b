"""The real traces: every count of their description comes out. Run by `make test-real-data`; see docs/workloads.md."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from topicweave.data.formats import REAL
from topicweave.pipeline.describe import describe
from topicweave.pipeline.importing import import_trace

pytestmark = pytest.mark.real_data

COUNTS: dict[str, dict[str, int]] = {
    "subscriptions/facebook_combined.txt.gz": {"import.links": 88_234, "nodes": 4_039},
    "subscriptions/ego-twitter_undirected.csv.xz": {"import.links": 1_342_310, "nodes": 81_306},
    "subscriptions/twitter_followers_100users.csv.xz": {
        "subscriptions": 100_600,
        "nodes": 28_459,
        "topics": 100,
    },
    "subscriptions/soc-Epinions1.txt.xz": {"import.links": 508_837, "nodes": 75_879},
    "subscriptions/soc-LiveJournal1Adj.txt.xz": {"import.lines": 49_995, "subscriptions": 661_596},
    "subscriptions/wikipedia_edits_jodie.txt.xz": {
        "import.edits": 157_474,
        "subscriptions": 18_257,
        "nodes": 8_227,
        "topics": 1_000,
    },
    "subscriptions/youtube_groupmemberships.tsv.xz": {
        "subscriptions": 293_360,
        "nodes": 94_238,
        "topics": 30_087,
    },
    "subscriptions/github_watch_2009.txt.xz": {
        "subscriptions": 332_398,
        "nodes": 50_130,
        "topics": 99_583,
    },
    "churn/google2011_machine_events.csv.gz": {"import.events": 37_780, "nodes": 12_583},
    "churn/gnutella_saroiu_intervals.tsv.xz": {"nodes": 17_125, "churn.sessions": 166_071},
    "latency/planetlab490_rtt_18slices.tar.xz": {
        "rtt.slices": 18,
        "rtt.hosts": 490,
        "rtt.round_trips": 18 * 490 * 490,
    },
    "latency/vivaldi_median_p2psim.syscoord.xz": {"nodes": 1_740},
    "latency/oversim_2d_coords.csv.xz": {"nodes": 15_000},
    "latency/as-caida20071105_undirected.csv.xz": {"as_graph.links": 53_381, "as_graph.ases": 26_475},
    "latency/as_rel_2013.txt.xz": {"as_graph.links": 233_860, "as_graph.ases": 39_406},
}


@pytest.mark.parametrize("name", REAL)
def test_the_counts_come_out(spark: SparkSession, real_data: Path, tmp_path: Path, name: str) -> None:
    real = REAL[name]
    import_trace(spark, real.format, real_data / real.file, tmp_path / "out", real.options)
    found: Any = describe(spark, tmp_path / "out", sample=100)
    for count, expected in COUNTS[real.file].items():
        value = found
        for step in count.split("."):
            value = value[step]
        assert value == expected, count


def test_every_trace_is_among_them(real_data: Path) -> None:
    there = {str(path.relative_to(real_data)) for path in real_data.rglob("*.?z")}
    assert there == set(COUNTS) == {real.file for real in REAL.values()}
