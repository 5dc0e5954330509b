"""The sentences say what the numbers say."""

from tests.report.comparisons import comparison, entry, without_events
from topicweave.report.findings import findings


def test_the_leanest_of_those_that_deliver_everything_comes_first() -> None:
    said = findings(
        comparison(
            entry("lean", degree_mean=12.1),
            entry("rich", degree_mean=16.0),
            entry("leaky", degree_mean=9.0, hit_ratio=0.991, partitioned_topics=13.0),
        )
    )
    assert said[0] == (
        "lean and rich deliver every event to everybody who wants it; "
        "lean does so with the fewest: 12.1 links per node on average."
    )
    assert (
        "Fewest of all: leaky, 9.0 links per node on average, but only 99.1% of the expected deliveries."
        in said
    )
    assert "Topics whose subscribers are not connected through subscribers alone: leaky (13 of 100)." in said


def test_only_one_delivers_everything() -> None:
    said = findings(comparison(entry("good", degree_mean=8.0), entry("bad", hit_ratio=0.9, degree_mean=9.0)))
    assert (
        said[0]
        == "Only good delivers every event to everybody who wants it, with 8.0 links per node on average."
    )
    assert not any(sentence.startswith("Fewest") for sentence in said)


def test_none_delivers_everything() -> None:
    said = findings(comparison(entry("a", hit_ratio=0.8), entry("b", hit_ratio=0.9)))
    assert said[0].startswith("No system delivers every event to everybody who wants it: b makes 90.0%")


def test_noise_is_told_by_system() -> None:
    assert "No node received an event that it did not want." in findings(comparison(entry("a"), entry("b")))
    said = findings(comparison(entry("a"), entry("b", noise=0.25), entry("c", noise=0.5)))
    assert "Share of the events received that were not wanted: b 25.0% and c 50.0%." in said


def test_extremes_name_all_that_look_alike_and_are_left_out_where_nobody_differs() -> None:
    said = findings(
        comparison(entry("a", latency_p95=0.35), entry("b", latency_p95=0.65), entry("c", latency_p95=0.3501))
    )
    assert "Fastest: a and c, with 95% of the deliveries within 350 ms; slowest: b (650 ms)." in said
    assert not any("control traffic" in sentence for sentence in said)


def test_a_comparison_without_events_speaks_of_links_only() -> None:
    said = findings(comparison(without_events("a", degree_mean=3.0), without_events("b"), events=0))
    assert said == [
        "Fewest of all: a, 3.0 links per node on average.",
        "No topic falls apart: the subscribers of each are connected through subscribers alone.",
    ]


def test_one_system_alone_is_not_compared_with_anybody() -> None:
    said = findings(comparison(entry("a")))
    assert said[0] == "a delivers every event to everybody who wants it, with 12.0 links per node on average."
    assert not any("Only" in sentence or "Fewest" in sentence or "Fastest" in sentence for sentence in said)
