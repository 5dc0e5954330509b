"""Measures of an overlay at one moment (`topicweave.measures.overlay`, `.diameter`) as Spark jobs.

What concerns one topic is computed by the same functions as in memory, one group of `applyInArrow` per topic.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from topicweave.measures.columns import codes
from topicweave.measures.diameter import topic_diameters
from topicweave.measures.graph import Graph, TopicGraph
from topicweave.measures.interests import Interests
from topicweave.measures.overlay import topic_components

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NORMAL_95 = 1.959963984540054  # as in topicweave.measures.overlay
_PER_TOPIC = "subscribers long, components long, diameter long, covered long"


def snapshot(links: DataFrame, time: float | None, within: float) -> tuple[DataFrame, float | None]:
    """The links of one moment, by default the latest, and that moment; see `topicweave.measures.graph.snapshot`."""
    from pyspark.sql import functions as sf

    if time is None:
        row = links.agg(sf.max("time")).first()
        if row is None or row[0] is None:
            return links, None
        time = float(row[0])
    recent = links.where((sf.col("time") >= time - within) & (sf.col("time") <= time))
    last = recent.groupBy("node").agg(sf.max("time").alias("last"))
    latest = recent.join(last, "node").where("time = last").drop("last")
    found = latest.agg(sf.max("time")).first()
    return latest, None if found is None or found[0] is None else float(found[0])


def edges_of(links: DataFrame, present: DataFrame, kinds: Collection[str] | None) -> DataFrame:
    """(node, peer) from both ends, each once; only among the nodes that are present."""
    from pyspark.sql import functions as sf

    if kinds is not None:
        links = links.where(sf.col("kind").isin(*kinds))
    proper = links.where("node != peer").select("node", "peer")
    both = proper.union(proper.select("peer", "node")).distinct()
    others = present.select(sf.col("node").alias("peer"))
    return both.join(present, "node", "left_semi").join(others, "peer", "left_semi").select("node", "peer")


def degree_measures(edges: DataFrame, present: DataFrame) -> dict[str, float]:
    """From the histogram of degrees, which has few different values."""
    from pyspark.sql import functions as sf

    degrees = present.join(edges.groupBy("node").agg(sf.count("*").alias("degree")), "node", "left")
    counted = degrees.groupBy(sf.coalesce("degree", sf.lit(0)).cast("long").alias("degree")).count().toArrow()
    counted = counted.sort_by("degree")
    values, times = counted["degree"].to_numpy(), counted["count"].to_numpy()
    nodes = int(times.sum()) if len(times) else 0
    if not nodes:
        return dict.fromkeys(("degree_mean", "degree_mean_ci95", "degree_p95", "degree_max"), math.nan)
    mean = float((values * times).sum() / nodes)
    variance = float((times * (values - mean) ** 2).sum() / (nodes - 1)) if nodes > 1 else math.nan
    place = 0.95 * (nodes - 1)
    ends = np.cumsum(times)
    low, high = (
        float(values[np.searchsorted(ends, rank, side="right")])
        for rank in (math.floor(place), min(math.floor(place) + 1, nodes - 1))
    )
    return {
        "degree_mean": mean,
        "degree_mean_ci95": _NORMAL_95 * math.sqrt(variance) / nodes**0.5 if nodes > 1 else math.nan,
        "degree_p95": low + (high - low) * (place - math.floor(place)),
        "degree_max": float(values[-1]),
    }


def links_by_kind(links: DataFrame, present: DataFrame) -> dict[str, float]:
    """Of each kind in the snapshot, how many a node that is present lists on average."""
    from pyspark.sql import functions as sf

    listed = links.join(present.withColumn("here", sf.lit(1)), "node", "left")
    counts = (
        listed.groupBy("kind").agg(sf.count("here").alias("links")).orderBy("kind").collect()
    )  # few kinds
    nodes = max(present.count(), 1)
    return {f"links.{row['kind']}": row["links"] / nodes for row in counts}


def topic_measures(edges: DataFrame, present: DataFrame, wishes: DataFrame, k: int) -> dict[str, float]:
    """components, partitioned_topics, coverage and diameters over the topics' own subgraphs."""
    from pyspark.sql import functions as sf

    members = wishes.join(present, "node", "left_semi").select("topic", "node").distinct()
    inside = (
        edges.where("node < peer")
        .join(members, "node")
        .join(members.select("topic", sf.col("node").alias("peer")), ["topic", "peer"])
        .select("topic", "node", "peer")
    )

    def one_topic(rows: pa.Table) -> pa.Table:
        links = rows.filter(pc.is_valid(rows["peer"]))
        interests = Interests.of(rows.filter(pc.is_null(rows["peer"])))
        one, other = codes(links["node"], interests.nodes), codes(links["peer"], interests.nodes)
        graph = Graph.of_edges(len(interests.nodes), one, other)
        topic = TopicGraph(interests, graph)
        others = len(interests.nodes) - 1
        return pa.table(
            {
                "subscribers": [len(interests.nodes)],
                "components": topic_components(topic),
                "diameter": topic_diameters(topic),
                "covered": [int(np.count_nonzero(graph.degrees >= min(k, others)))],
            }
        )

    # A topic's members (rows without peer) and the links among them, in one group.
    nobody = sf.lit(None).cast("long").alias("peer")
    rows = members.select("topic", "node", nobody).unionByName(inside)
    per_topic = rows.groupBy("topic").applyInArrow(one_topic, _PER_TOPIC)
    row = per_topic.agg(
        sf.sum("components"),
        sf.count_if(sf.col("components") > 1),
        sf.sum("covered") / sf.sum("subscribers"),
        sf.avg("diameter"),
        sf.max("diameter"),
    ).first()
    assert row is not None
    return {
        "components": float(row[0] or 0),
        "partitioned_topics": float(row[1]),
        "coverage": math.nan if row[2] is None else float(row[2]),
        "topic_diameter_mean": math.nan if row[3] is None else float(row[3]),
        "topic_diameter_max": math.nan if row[4] is None else float(row[4]),
    }
