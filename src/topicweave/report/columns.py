"""The columns of a comparison, for the terminal's table and the page's: titles, formats, and what is better."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from topicweave.report.comparison import OWN_BYTES, Entry

Mark = Literal["best", "worst", ""]


def one_decimal(value: float) -> str:
    return f"{value:,.1f}"


def two_decimals(value: float) -> str:
    return f"{value:,.2f}"


def whole(value: float) -> str:
    return f"{value:,.0f}"


def thousands(value: float) -> str:
    return f"{value / 1000:,.0f}"


def milliseconds(value: float) -> str:
    return f"{1000 * value:,.0f}"


def percent(share: float) -> str:
    """One decimal; but 100% means all and 0% means none, never nearly so."""
    if share in (0.0, 1.0):
        return f"{share:.0%}"
    return f"{100 * min(max(share, 0.001), 0.999):.1f}%"


_SCALES: Mapping[Callable[[float], str], tuple[float, str]] = {
    thousands: (1e-3, ""),
    milliseconds: (1e3, ""),
    percent: (1e2, "%"),
}


@dataclass(frozen=True)
class Column:
    measure: str
    group: str
    title: str
    """Within the group; may be empty."""
    meaning: str
    text: Callable[[float], str]
    better: Literal["lower", "higher"] = "lower"
    least_spread: float = 5e-4
    """An interval narrower than this is not worth showing."""

    def cell(self, value: float) -> str:
        if math.isnan(value):
            return "–"
        return self.text(value) if math.isfinite(value) else "never"

    def exact(self, value: float) -> str:
        """As in a cell, or with more digits where a cell rounds: for a bound, and what misses it narrowly."""
        text = self.cell(value)
        scale, unit = _SCALES.get(self.text, (1.0, ""))
        same = not math.isfinite(value) or math.isclose(
            float(text.rstrip("%").replace(",", "")), scale * value
        )
        return text if same else f"{scale * value:,.6g}{unit}"

    def spread(self, half_width: float) -> str:
        """The interval as it stands behind a value; nothing where it can't be seen, or is not known."""
        if not math.isfinite(half_width):
            return ""
        shown = self.text(half_width)
        # A share's text never says 0% of what is not 0.
        return "" if shown == self.text(0.0) or half_width < self.least_spread else f"±{shown}"


COLUMNS = (
    Column("degree_mean", "links", "mean", "links per node, on average", one_decimal),
    Column("degree_p95", "links", "p95", "links that 95% of the nodes do not exceed", whole),
    Column("degree_max", "links", "max", "links of the node with the most", whole),
    Column("partitioned_topics", "topics", "apart", "topics whose subscribers are not all connected", whole),
    Column(
        "hit_ratio", "hit", "ratio", "share of expected deliveries that happened", percent, "higher", 0.005
    ),
    Column("noise", "noise", "", "share of events received that were not wanted", percent),
    Column("duplicates", "dupli-", "cates", "times received again, per wanted delivery", two_decimals),
    Column(
        "relays_per_topic",
        "relays",
        "/topic",
        "nodes per topic that passed it on without wanting it",
        one_decimal,
    ),
    Column("hops_mean", "hops", "mean", "links that a wanted event crossed, on average", one_decimal),
    Column("hops_max", "hops", "max", "links that a wanted event crossed at most", whole),
    Column("latency_p50", "latency", "p50 ms", "milliseconds until half of the deliveries", milliseconds),
    Column("latency_p95", "latency", "p95 ms", "milliseconds until 95% of the deliveries", milliseconds),
    Column("control_messages", "control", "msg/s", "control messages per node and second", one_decimal),
    Column("control_bytes", "control", "B/s", "bytes of control messages per node and second", whole),
    Column(OWN_BYTES, "own", "B/s", "bytes of them that the system itself sends, without membership", whole),
    Column(
        "membership_bytes",
        "membership",
        "B/s",
        "bytes of them that membership takes: learning who is there and wants what; none (–) of systems that do it "
        "by themselves",
        whole,
    ),
    Column(
        "membership_contacts",
        "membership",
        "contacts",
        "peers with whom membership keeps in touch; they carry no events",
        one_decimal,
    ),
    Column("repair_time", "repair", "s", "seconds until all are served again after the crash", one_decimal),
    Column("memory_bytes", "memory", "kB", "memory that a node keeps, in thousands of bytes", thousands),
    Column("settled_after", "settled", "s", "virtual seconds until the overlay had settled", whole),
)


NOBODY_MARKED = "nobody is marked, because no delivery was expected"


def who_is_marked(entries: Sequence[Entry]) -> str:
    """Of whom the best and the worst are marked, as a legend says it; empty where nobody's reach is known."""
    if all(math.isnan(entry.measure("hit_ratio")) for entry in entries):
        return ""
    return "of those that reach everybody (hit ratio: of all)"


def column_marks(column: Column, entries: Sequence[Entry]) -> list[Mark]:
    """Who is best and who is worst in a column; nobody where all are alike.

    Judged by what is printed: a difference that cannot be seen is not worth a mark. Whoever does not reach everybody is
    ranked by reach alone: few links are no merit where events do not arrive. `who_is_marked` says so.
    """
    ranked = [entry.reaches_everybody or column.measure == "hit_ratio" for entry in entries]
    values = [entry.measure(column.measure) for entry in entries]
    cells = [column.cell(value) for value in values]
    known = [place for place, value in enumerate(values) if ranked[place] and not math.isnan(value)]
    if len({cells[place] for place in known}) < 2:
        return [""] * len(values)
    lowest, highest = min(known, key=values.__getitem__), max(known, key=values.__getitem__)
    best, worst = (lowest, highest) if column.better == "lower" else (highest, lowest)
    marks: dict[str, Mark] = {cells[worst]: "worst", cells[best]: "best"}
    return [marks.get(cell, "") if place in known else "" for place, cell in enumerate(cells)]
