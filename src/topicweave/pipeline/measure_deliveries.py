"""Measures of what became of published events (`topicweave.measures.delivery`), from what one pass over them has counted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from topicweave.measures.columns import ratio
from topicweave.pipeline.measure_pass import COUNTS, HIT, NODE, PAIR, RUN, Passed
from topicweave.pipeline.quantiles import exact_quantiles
from topicweave.pipeline.uptimes import covers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ReceivedInRun(NamedTuple):
    """What was received in one run; names are hashes."""

    events: DataFrame
    """event, topic, node, time: the events that count."""
    pairs: DataFrame
    """A row per topic and node: how many receptions there were of which sort."""
    nodes: DataFrame
    """Whoever received or sent anything: node, how much of it counts as `sent`, whether it has rows of its own (`seen`)."""
    latencies: DataFrame
    """Of wanted first receptions: sorted arrays."""
    hits: DataFrame
    """topic, node, published: first receptions in time, where the pass was told to keep them."""
    last: float | None
    """The time of the last row."""


def received(passed: Passed, run: int) -> ReceivedInRun:
    from pyspark.sql import functions as sf

    mine = passed.handed_on.where(sf.col("run") == run)
    sums = (sf.sum(name).alias(name) for name in COUNTS[:-1])
    pairs = mine.where(sf.col("kind") == PAIR).groupBy("topic", "node")
    nodes = mine.where(sf.col("kind") == NODE).groupBy("node")
    whole = mine.where(sf.col("kind") == RUN)
    last = whole.agg(sf.max("time")).first()
    return ReceivedInRun(
        passed.events.where(sf.col("run") == run).select("event", "topic", "node", "time"),
        pairs.agg(*sums, sf.max("hops_max").alias("hops_max")),
        nodes.agg(sf.sum("receptions").alias("sent"), sf.max("firsts").alias("seen")),
        whole.select("latencies"),
        mine.where(sf.col("kind") == HIT).select("topic", "node", sf.col("time").alias("published")),
        None if last is None or last[0] is None else float(last[0]),
    )


def delivery_measures(received: ReceivedInRun) -> dict[str, float]:
    """All but hit_ratio and fairness, which need to know who wants what."""
    from pyspark.sql import functions as sf

    nodes = received.pairs.groupBy("node").agg(
        *(sf.sum(name).alias(name) for name in ("receptions", "unwanted", "firsts", "relayed", "hops")),
        sf.max("hops_max").alias("hops_max"),
        sf.count_if(sf.col("relayed") > 0).alias("relays"),
    )
    row = nodes.agg(
        *(
            sf.sum(name).alias(name)
            for name in ("receptions", "unwanted", "firsts", "relayed", "hops", "relays")
        ),
        sf.max("hops_max").alias("hops_max"),
        # A node that only got its own events back has no first reception, and no share of them: null.
        sf.avg(sf.when(sf.col("firsts") > 0, sf.col("relayed") / sf.col("firsts"))).alias("noise_mean"),
        sf.avg(sf.col("unwanted") / sf.col("receptions")).alias("noise_all_mean"),
    ).first()
    assert row is not None
    receptions, firsts, relayed = (row[name] or 0 for name in ("receptions", "firsts", "relayed"))
    delivered = firsts - relayed
    topics = received.events.select("topic").distinct().count()
    p50, p95, longest = exact_quantiles(received.latencies, "latencies", [0.5, 0.95, 1.0])
    return {
        "noise": ratio(relayed, firsts),
        "noise_node_mean": _number(row["noise_mean"]),
        "noise_all": ratio(row["unwanted"] or 0, receptions),
        "noise_all_node_mean": _number(row["noise_all_mean"]),
        "duplicates": ratio(receptions - firsts, delivered),
        "relays_per_topic": ratio(row["relays"] or 0, topics),
        "hops_mean": ratio(row["hops"] or 0, delivered),
        "hops_max": _number(row["hops_max"]) if delivered else math.nan,
        "latency_p50": p50,
        "latency_p95": p95,
        "latency_max": longest,
    }


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def hit_ratio(
    received: ReceivedInRun, wishes: DataFrame, up: DataFrame | None, grace: float, window: float
) -> float:
    """The share of expected deliveries that happened; `up` holds intervals, None if everybody stayed."""
    from pyspark.sql import functions as sf

    events = received.events
    if up is None:
        hits = received.pairs.join(wishes, ["topic", "node"], "left_semi").agg(sf.sum("in_time")).first()
        audience = wishes.groupBy("topic").agg(sf.count("*").alias("audience"))
        asked = events.join(audience, "topic").agg(sf.sum("audience")).first()
        own = events.select("topic", "node").join(wishes, ["topic", "node"], "left_semi").count()
        happened, expected = (int(row[0] or 0) if row else 0 for row in (hits, asked))
        return ratio(happened, expected - own)
    throughout = covers(
        sf.col("begin"), sf.col("end"), sf.col("published") - grace, sf.col("published") + window
    )
    expected_pairs = (
        events.select("topic", sf.col("node").alias("publisher"), sf.col("time").alias("published"))
        .join(wishes, "topic")
        .where("node != publisher")
        .join(up, "node")
        .where(throughout)
    )
    hit_pairs = received.hits.join(wishes, ["topic", "node"], "left_semi").join(up, "node").where(throughout)
    return ratio(hit_pairs.count(), expected_pairs.count())


def fairness(received: ReceivedInRun, wishes: DataFrame, everyone: DataFrame) -> float:
    """The correlation over nodes between the messages they handle and the events they asked for."""
    from pyspark.sql import functions as sf

    events = received.events
    sent = received.nodes.select("node", sf.col("sent").alias("traffic"))
    handled = received.pairs.select("node", sf.col("receptions").alias("traffic")).unionByName(sent)
    per_topic = events.groupBy("topic").agg(sf.count("*").alias("events"))
    asked = wishes.join(per_topic, "topic").select("node", sf.col("events").alias("demand"))
    own = (
        events.select("topic", "node")
        .join(wishes, ["topic", "node"], "left_semi")
        .select("node", sf.lit(-1).cast("long").alias("demand"))
    )
    zero = sf.lit(0).cast("long")
    rows = (
        handled.select("node", "traffic", zero.alias("demand"))
        .unionByName(asked.unionByName(own).select("node", zero.alias("traffic"), "demand"))
        .unionByName(everyone.select("node", zero.alias("traffic"), zero.alias("demand")))
    )
    nodes = rows.groupBy("node").agg(sf.sum("traffic").alias("traffic"), sf.sum("demand").alias("demand"))
    row = nodes.agg(
        sf.corr("traffic", "demand"),
        sf.max("traffic") - sf.min("traffic"),
        sf.max("demand") - sf.min("demand"),
        sf.count("*"),
    ).first()
    if row is None or row[3] < 2 or not row[1] or not row[2]:
        return math.nan
    return float(row[0])
