"""Who wanted what, as nodes have recorded it, on Spark; see `topicweave.telemetry.interests`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from topicweave.telemetry.interests import wanted_between

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def wanted_on_spark(
    interests: DataFrame, start: float, end: float, stay: float = math.inf
) -> tuple[DataFrame, DataFrame]:
    """What `wanted_between` finds, as DataFrames; all rows of a node are in one task."""
    rows = interests.select("time", "node", "topic", "wanted").repartition("node")

    def subscriptions(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if mine := list(batches):
            yield from wanted_between(pa.Table.from_batches(mine), start, end).subscriptions.to_batches()

    def churn(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if mine := list(batches):
            yield from wanted_between(pa.Table.from_batches(mine), start, end, stay).churn.to_batches()

    return (
        rows.mapInArrow(subscriptions, "node string, topic string"),
        rows.mapInArrow(churn, "time double, node string, change string"),
    )
