"""Who is up when, as intervals in a DataFrame: `topicweave.measures.uptime`, for any number of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topicweave.errors import BadInput

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_EVER = float("inf")


def intervals(nodes: DataFrame, churn: DataFrame | None) -> DataFrame:
    """(node, begin, end) of all `nodes` (a DataFrame with the column `node`)."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sf

    ever = (sf.lit(-_EVER).alias("begin"), sf.lit(_EVER).alias("end"))
    if churn is None:
        return nodes.select("node", *ever)
    odd = churn.where("change not in ('join', 'leave')").select("change").first()
    if odd is not None:
        raise BadInput(f"churn: column 'change': {odd['change']!r}; write 'join' or 'leave'")
    changes = churn.select("node", "time", "change").join(nodes.select("node"), "node", "left_semi")
    by_time = Window.partitionBy("node").orderBy("time")
    following = changes.withColumn("end", sf.coalesce(sf.lead("time").over(by_time), sf.lit(_EVER)))
    first = following.withColumn("place", sf.row_number().over(by_time)).where("place = 1")
    early = first.where("change = 'leave'").select(
        "node", sf.lit(-_EVER).alias("begin"), sf.col("time").alias("end")
    )
    joined = following.where("change = 'join'").select("node", sf.col("time").alias("begin"), "end")
    steady = nodes.join(changes.select("node").distinct(), "node", "left_anti").select("node", *ever)
    return steady.unionByName(early).unionByName(joined)


def covers(begin: Column, end: Column, start: Column, stop: Column) -> Column:
    """Whether an interval holds all of start to stop; who never leaves is up even until the end of time."""
    from pyspark.sql import functions as sf

    return (begin <= start) & ((stop < end) | (end == sf.lit(_EVER)))


def node_seconds(up: DataFrame, start: float, end: float) -> float:
    """The time that nodes are up between two moments, summed over nodes."""
    from pyspark.sql import functions as sf

    overlap = sf.least("end", sf.lit(end)) - sf.greatest("begin", sf.lit(start))
    row = up.agg(sf.sum(sf.greatest(overlap, sf.lit(0.0)))).first()
    return float(row[0] or 0.0) if row else 0.0
