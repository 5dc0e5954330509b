"""Measures of control traffic: what it costs to keep an overlay, beside the events themselves."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from topicweave.measures.columns import codes, distinct, numbers, ratio


class ControlTraffic(NamedTuple):
    """Messages and bytes: sums, or either per something."""

    messages: float
    bytes: float

    def per(self, amount: float) -> ControlTraffic:
        return ControlTraffic(ratio(self.messages, amount), ratio(self.bytes, amount))


def traffic_by_kind(
    control: pa.Table, *, start: float = -math.inf, end: float = math.inf
) -> dict[str, ControlTraffic]:
    """What was sent in (start, end], by kind of message.

    A row stands for the period that ends at its time: hence the interval without its start.
    """
    times = numbers(control["time"])
    within = (times > start) & (times <= end)
    kinds = distinct(control["kind"])
    kind = codes(control["kind"], kinds)[within]

    def sums(column: str) -> list[float]:
        values = numbers(control[column])[within]
        return [float(value) for value in np.bincount(kind, weights=values, minlength=len(kinds))]

    messages, sizes = sums("messages"), sums("bytes")
    return {
        name: ControlTraffic(messages[place], sizes[place]) for place, name in enumerate(kinds.to_pylist())
    }


def total(traffic: Collection[ControlTraffic]) -> ControlTraffic:
    return ControlTraffic(sum(one.messages for one in traffic), sum(one.bytes for one in traffic))


def control_measures(
    control: pa.Table, *, node_seconds: float, start: float = -math.inf, end: float = math.inf
) -> dict[str, float]:
    """control_messages and control_bytes per node and second, in all and by kind (`control_messages.kind`).

    `node_seconds` is the time that nodes were up in (start, end], summed over nodes: nodes times seconds when
    nobody comes or goes.
    """
    return control_rates(traffic_by_kind(control, start=start, end=end), node_seconds)


def control_rates(by_kind: Mapping[str, ControlTraffic], node_seconds: float) -> dict[str, float]:
    """As `control_measures`, of traffic that is added up."""
    rates = {"": total(by_kind.values()).per(node_seconds)}
    rates |= {f".{kind}": traffic.per(node_seconds) for kind, traffic in by_kind.items()}
    return {f"control_messages{kind}": rate.messages for kind, rate in rates.items()} | {
        f"control_bytes{kind}": rate.bytes for kind, rate in rates.items()
    }


def control_per_operation(
    control: pa.Table,
    kinds: Collection[str],
    operations: int,
    *,
    start: float = -math.inf,
    end: float = math.inf,
) -> ControlTraffic:
    """Control traffic of the given kinds per join or leave (SpiderCast §3.8.1). nan without operations.

    `kinds` are those that churn causes (connecting, disconnecting, …), not the periodic ones.
    """
    by_kind = traffic_by_kind(control, start=start, end=end)
    return total([traffic for kind, traffic in by_kind.items() if kind in kinds]).per(operations)
