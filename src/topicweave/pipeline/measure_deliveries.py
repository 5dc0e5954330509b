"""Measures of what became of published events (`topicweave.measures.delivery`) as Spark jobs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from topicweave.measures.columns import ratio
from topicweave.pipeline.quantiles import exact_quantiles
from topicweave.pipeline.uptimes import covers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def received(publishes: DataFrame, deliveries: DataFrame) -> DataFrame:
    """One row per event and node that received it: the first reception, and how many there were.

    `deliveries` has a column `order`, the place of the row in the table: of simultaneous receptions the earliest
    row is the first. What comes back to its publisher is never first.
    """
    from pyspark.sql import functions as sf

    events = publishes.groupBy("event").agg(
        sf.min_by("topic", "order").alias("topic"),
        sf.min_by("node", "order").alias("publisher"),
        sf.min_by("time", "order").alias("published"),
    )
    first = sf.min(sf.struct("time", "order", "hops", "wanted"))
    return (
        deliveries.groupBy("event", "node")
        .agg(
            first.alias("one"),
            sf.count("*").alias("receptions"),
            sf.count_if(~sf.col("wanted")).alias("unwanted"),
        )
        .join(events, "event")
        .select(
            "event",
            "node",
            "topic",
            "publisher",
            "published",
            sf.col("one.time").alias("time"),
            sf.col("one.hops").alias("hops"),
            sf.col("one.wanted").alias("wanted"),
            "receptions",
            "unwanted",
            (sf.col("node") != sf.col("publisher")).alias("first"),
        )
    )


def delivery_measures(events: DataFrame, receptions: DataFrame) -> dict[str, float]:
    """All but hit_ratio and fairness, which need to know who wants what. `receptions` is read several times."""
    from pyspark.sql import functions as sf

    delivered = sf.col("first") & sf.col("wanted")
    row = receptions.agg(
        sf.avg(sf.when(sf.col("first"), (~sf.col("wanted")).cast("double"))).alias("noise"),
        sf.sum("unwanted").alias("unwanted"),
        sf.sum("receptions").alias("receptions"),
        sf.count_if(sf.col("first")).alias("firsts"),
        sf.count_if(delivered).alias("delivered"),
        sf.avg(sf.when(delivered, sf.col("hops"))).alias("hops_mean"),
        sf.max(sf.when(delivered, sf.col("hops"))).alias("hops_max"),
    ).first()
    assert row is not None
    by_node = receptions.groupBy("node").agg(
        sf.avg(sf.when(sf.col("first"), (~sf.col("wanted")).cast("double"))).alias("noise"),
        (sf.sum("unwanted") / sf.sum("receptions")).alias("noise_all"),
    )
    means = by_node.agg(sf.avg("noise"), sf.avg("noise_all")).first()
    assert means is not None
    relays = receptions.where("first and not wanted").select("topic", "node").distinct().count()
    topics = events.select("topic").distinct().count()
    latency = receptions.where(delivered).select((sf.col("time") - sf.col("published")).alias("latency"))
    p50, p95, longest = exact_quantiles(latency, "latency", [0.5, 0.95, 1.0])
    every = row["receptions"] or 0
    return {
        "noise": _number(row["noise"]),
        "noise_node_mean": _number(means[0]),
        "noise_all": ratio(row["unwanted"] or 0, every),
        "noise_all_node_mean": _number(means[1]),
        "duplicates": ratio(every - row["firsts"], row["delivered"]),
        "relays_per_topic": ratio(relays, topics),
        "hops_mean": _number(row["hops_mean"]),
        "hops_max": _number(row["hops_max"]),
        "latency_p50": p50,
        "latency_p95": p95,
        "latency_max": longest,
    }


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def hit_ratio(
    events: DataFrame,
    receptions: DataFrame,
    wishes: DataFrame,
    up: DataFrame | None,
    grace: float,
    window: float,
) -> float:
    """The share of expected deliveries that happened; `up` holds intervals, None if everybody stayed."""
    from pyspark.sql import functions as sf

    in_time = receptions.where(sf.col("first") & (sf.col("time") <= sf.col("published") + window))
    hits = in_time.join(wishes, ["topic", "node"], "left_semi")
    if up is None:
        audience = wishes.groupBy("topic").agg(sf.count("*").alias("audience"))
        asked = events.join(audience, "topic").agg(sf.sum("audience")).first()
        own = events.select("topic", "node").join(wishes, ["topic", "node"], "left_semi").count()
        expected = int(asked[0] or 0) if asked else 0
        return ratio(hits.count(), expected - own)
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
    hit_pairs = hits.select("node", "published").join(up, "node").where(throughout)
    return ratio(hit_pairs.count(), expected_pairs.count())


def fairness(
    events: DataFrame,
    deliveries: DataFrame,
    receptions: DataFrame,
    wishes: DataFrame,
    everyone: DataFrame,
) -> float:
    """The correlation over nodes between the messages they handle and the events they asked for."""
    from pyspark.sql import functions as sf

    counted = deliveries.join(events.select("event").distinct(), "event", "left_semi")
    handled = (
        receptions.groupBy("node")
        .agg(sf.sum("receptions").alias("traffic"))
        .unionByName(counted.groupBy(sf.col("sender").alias("node")).agg(sf.count("*").alias("traffic")))
    )
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
