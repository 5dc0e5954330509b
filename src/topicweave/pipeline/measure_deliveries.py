"""Measures of what became of published events (`topicweave.measures.delivery`) as Spark jobs.

The deliveries are shuffled and sorted once, by event; what all measures but the latencies need is then in a table
of one row per topic and node that received something of it, which is small beside the deliveries.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from topicweave.measures.columns import ratio
from topicweave.pipeline.quantiles import exact_quantiles
from topicweave.pipeline.uptimes import covers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Received(NamedTuple):
    """What was received of the events that count. Both frames are kept while they are used."""

    rows: DataFrame
    """A row per reception: topic, node, sender, published, latency, and whether it was `first`, `in_time`, `wanted`."""
    pairs: DataFrame
    """A row per topic and node: how many receptions there were of which sort."""


def published(publishes: DataFrame) -> DataFrame:
    """Every event once, (event, topic, node, time), by its first row; `order` is the place of the row in the table."""
    from pyspark.sql import functions as sf

    firsts = (sf.min_by(name, "order").alias(name) for name in ("topic", "node", "time"))
    return publishes.groupBy("event").agg(*firsts)


@contextmanager
def received(events: DataFrame, deliveries: DataFrame, window: float = math.inf) -> Iterator[Received]:
    """The receptions of `published` events. The deliveries have a column `order`, the place of the row in the table.

    Of simultaneous receptions the earliest row is the first. What comes back to its publisher is never first.
    """
    rows = _rows(events, deliveries, window).persist()
    pairs = _pairs(rows).persist()
    try:
        yield Received(rows, pairs)
    finally:
        pairs.unpersist()
        rows.unpersist()


def _rows(events: DataFrame, deliveries: DataFrame, window: float) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as sf

    published = events.withColumnsRenamed({"node": "publisher", "time": "published"})
    receptions = Window.partitionBy("event", "node").orderBy("time", "order")
    first = (sf.col("place") == 1) & (sf.col("node") != sf.col("publisher"))
    return (
        # By event alone: then neither ranking nor joining has to move the rows again.
        deliveries.repartition("event")
        .withColumn("place", sf.row_number().over(receptions))
        .join(published, "event")
        .select(
            "topic",
            "node",
            "sender",
            "published",
            "hops",
            "wanted",
            first.alias("first"),
            (first & (sf.col("time") <= sf.col("published") + window)).alias("in_time"),
            (sf.col("time") - sf.col("published")).alias("latency"),
        )
    )


def _pairs(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as sf

    first, wanted = sf.col("first"), sf.col("wanted")
    return rows.groupBy("topic", "node").agg(
        sf.count("*").alias("receptions"),
        sf.count_if(~wanted).alias("unwanted"),
        sf.count_if(first).alias("firsts"),
        sf.count_if(first & ~wanted).alias("relayed"),
        sf.count_if("in_time").alias("in_time"),
        sf.sum(sf.when(first & wanted, sf.col("hops"))).alias("hops"),
        sf.max(sf.when(first & wanted, sf.col("hops"))).alias("hops_max"),
    )


def delivery_measures(events: DataFrame, received: Received) -> dict[str, float]:
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
    topics = events.select("topic").distinct().count()
    wanted = received.rows.where("first and wanted").select("latency")
    p50, p95, longest = exact_quantiles(wanted, "latency", [0.5, 0.95, 1.0])
    return {
        "noise": ratio(relayed, firsts),
        "noise_node_mean": _number(row["noise_mean"]),
        "noise_all": ratio(row["unwanted"] or 0, receptions),
        "noise_all_node_mean": _number(row["noise_all_mean"]),
        "duplicates": ratio(receptions - firsts, delivered),
        "relays_per_topic": ratio(row["relays"] or 0, topics),
        "hops_mean": ratio(row["hops"] or 0, delivered),
        "hops_max": _number(row["hops_max"]),
        "latency_p50": p50,
        "latency_p95": p95,
        "latency_max": longest,
    }


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def hit_ratio(
    events: DataFrame,
    received: Received,
    wishes: DataFrame,
    up: DataFrame | None,
    grace: float,
    window: float,
) -> float:
    """The share of expected deliveries that happened; `up` holds intervals, None if everybody stayed."""
    from pyspark.sql import functions as sf

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
    in_time = received.rows.where("in_time").select("topic", "node", "published")
    hit_pairs = in_time.join(wishes, ["topic", "node"], "left_semi").join(up, "node").where(throughout)
    return ratio(hit_pairs.count(), expected_pairs.count())


def fairness(events: DataFrame, received: Received, wishes: DataFrame, everyone: DataFrame) -> float:
    """The correlation over nodes between the messages they handle and the events they asked for."""
    from pyspark.sql import functions as sf

    sent = received.rows.groupBy(sf.col("sender").alias("node")).agg(sf.count("*").alias("traffic"))
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
