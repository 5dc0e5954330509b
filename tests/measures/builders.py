"""Small tables for the tests of this folder, from plain Python rows."""

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from topicweave.telemetry import Tables
from topicweave.telemetry.schema import SCHEMAS

Rows = Iterable[Sequence[Any]]


def telemetry_table(table: str, rows: Rows = (), run: str = "r") -> pa.Table:
    """Rows in the order of the schema's columns, without `run`."""
    listed = [(run, *row) for row in rows]
    columns = []
    for place, field in enumerate(SCHEMAS[table]):
        values = [row[place] for row in listed]
        if pa.types.is_dictionary(field.type):
            columns.append(pa.array(values, pa.string()).dictionary_encode())
        else:
            columns.append(pa.array(values, field.type))
    return pa.table(columns, schema=SCHEMAS[table])


def links_table(edges: Rows, time: float = 0.0, kind: str = "x") -> pa.Table:
    """One snapshot, from (node, peer) rows."""
    return telemetry_table("links", [(time, node, peer, kind) for node, peer in edges])


def tables(
    links: Rows = (), publishes: Rows = (), deliveries: Rows = (), control: Rows = (), run: str = "r"
) -> Tables:
    return Tables(
        links=telemetry_table("links", links, run),
        publishes=telemetry_table("publishes", publishes, run),
        deliveries=telemetry_table("deliveries", deliveries, run),
        control=telemetry_table("control", control, run),
    )


def subscriptions_table(pairs: Iterable[tuple[str, str]]) -> pa.Table:
    """From (node, topic) pairs."""
    listed = list(pairs)
    return pa.table(
        {
            "node": pa.array([node for node, _ in listed], pa.string()),
            "topic": pa.array([topic for _, topic in listed], pa.string()),
        }
    )


def churn_table(changes: Iterable[tuple[float, str, str]]) -> pa.Table:
    """From (time, node, change) rows."""
    listed = list(changes)
    return pa.table(
        {
            "time": pa.array([time for time, _, _ in listed], pa.float64()),
            "node": pa.array([node for _, node, _ in listed], pa.string()),
            "change": pa.array([change for _, _, change in listed], pa.string()),
        }
    )
