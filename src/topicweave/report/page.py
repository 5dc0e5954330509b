"""A comparison as one HTML page that needs nothing but itself: it opens offline, today and in ten years.

The page is a function of the comparison (and of the installed plotly.js): no time, no random identifier, no path that
the user did not type.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from html import escape
from typing import Any

import topicweave
from topicweave.errors import TopicweaveError
from topicweave.report.assets import SCRIPT, STYLE
from topicweave.report.columns import COLUMNS, Column, column_marks
from topicweave.report.comparison import Comparison, Entry, as_text
from topicweave.report.figures import Figure, colour_of, dash_of, figures
from topicweave.report.findings import findings

EXTRA = "topicweave[report]"

# The browser itself keeps the promise that nothing is fetched.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)

_BORDER = {"solid": "solid", "dash": "dashed", "dot": "dotted"}


class PlotlyMissing(TopicweaveError):
    """plotly is not installed."""

    def __init__(self) -> None:
        super().__init__(f"the report needs plotly: pip install '{EXTRA}'")


def comparison_page(comparison: Comparison) -> str:
    """The whole page. Raises `PlotlyMissing`."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise PlotlyMissing from None
    # Were the library ever to hold the tag that ends a script, it would end it too early.
    library = get_plotlyjs().replace("</script", "<\\/script")
    drawn = figures(comparison)
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta name="generator" content="Topicweave {topicweave.__version__}">',
        f"<title>Systems compared on {escape(comparison.workload['name'])}</title>",
        f"<style>{STYLE}</style>",
        "</head>",
        "<body>",
        "<main>",
        "<h1>Systems compared</h1>",
        f'<p class="about">{escape(_in_a_line(comparison))}</p>',
        '<ul class="findings">',
        *(f"<li>{escape(sentence)}</li>" for sentence in findings(comparison)),
        "</ul>",
        *_table(comparison),
        *_figures(comparison, drawn),
        *_about_workload(comparison),
        *_settings(comparison),
        *_reproduce(comparison),
        "</main>",
        f'<script type="application/json" id="figures">{_figure_data(drawn)}</script>',
        f"<script>{library}</script>",
        f"<script>{SCRIPT}</script>",
        "</body>",
        "</html>",
    ]
    return "\n".join(parts) + "\n"


def _in_a_line(comparison: Comparison) -> str:
    workload = comparison.workload
    return (
        f"{workload['source']}: {workload['nodes']:,} nodes, {workload['topics']:,} topics, {workload['subscriptions']:,} subscriptions; "
        f"{comparison.setting.events:,} events; {_seeds(comparison)}"
    )


def _seeds(comparison: Comparison) -> str:
    seeds = comparison.setting.seeds
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {', '.join(map(str, seeds))}"


def _table(comparison: Comparison) -> Iterator[str]:
    entries = comparison.entries
    yield "<h2>Comparison</h2>"
    # A region that scrolls must be reachable by keyboard.
    yield '<div class="wide" role="region" aria-label="Comparison" tabindex="0"><table class="sortable">'
    yield '<thead><tr><th scope="col" aria-sort="none"><button type="button">system<i></i></button></th>'
    for column in COLUMNS:
        name = _column_name(column)
        yield (
            f'<th scope="col" aria-sort="none" title="{escape(column.meaning)}">'
            f'<button type="button">{name}</button></th>'
        )
    yield "</tr></thead><tbody>"
    marks = {column.measure: column_marks(column, entries) for column in COLUMNS}
    for place, entry in enumerate(entries):
        cells = (_cell(column, entry, marks[column.measure][place]) for column in COLUMNS)
        label = escape(entry.label)
        yield f'<tr><th scope="row" data-value="{label}">{label}</th>{"".join(cells)}</tr>'
    yield "</tbody></table></div>"
    yield (
        '<p class="note">Press a heading to sort. '
        '<span class="best">best</span> and <span class="worst">worst</span> in a column. '
        "Links, messages and bytes are per node; latencies are in milliseconds of virtual time.</p>"
    )


def _column_name(column: Column) -> str:
    """The <i> takes the arrow of the sorting order."""
    if column.group.endswith("-"):  # One word in two lines where room is scarce; here it need not be.
        return f"{escape(column.group.removesuffix('-') + column.title)}<i></i>"
    return f"{escape(column.group)}<i></i>" + (
        f" <small>{escape(column.title)}</small>" if column.title else ""
    )


def _cell(column: Column, entry: Entry, mark: str) -> str:
    value = entry.measure(column.measure)
    text = escape(column.cell(value) + column.spread(entry.interval(column.measure)))
    marked = f'<span class="{mark}" title="{mark}">{text}</span>' if mark else text
    return f'<td data-value="{_sorted_by(value)}">{marked}</td>'


def _sorted_by(value: float) -> str:
    """As JavaScript reads numbers; nothing for what has no value."""
    if math.isnan(value):
        return ""
    return repr(value) if math.isfinite(value) else "Infinity"


def _figures(comparison: Comparison, drawn: list[Figure]) -> Iterator[str]:
    yield "<h2>Figures</h2>"
    yield '<ul class="legend" aria-label="Systems: press to hide or show">'
    for place, entry in enumerate(comparison.entries):
        label = escape(entry.label)
        stroke = f"border-top-color:{colour_of(place)};border-top-style:{_BORDER[dash_of(place)]}"
        yield (
            f'<li><button type="button" aria-pressed="true" data-name="{label}">'
            f'<span class="stroke" style="{stroke}"></span>{label}</button></li>'
        )
    yield "</ul>"
    yield "<noscript><p>The figures are drawn by JavaScript; the table above holds the same results.</p></noscript>"
    yield '<div class="figures">'
    for figure in drawn:
        full = ' class="full"' if figure.name == "control" else ""
        yield (
            f"<figure{full}><h3>{escape(figure.title)}</h3><figcaption>{escape(figure.reading)}</figcaption>"
            f'<div class="plot" id="{figure.name}" role="img" aria-label="{escape(figure.title)}"></div></figure>'
        )
    yield "</div>"


def _about_workload(comparison: Comparison) -> Iterator[str]:
    facts = comparison.workload
    smallest, largest = facts["topics_per_node_min"], facts["topics_per_node_max"]
    rows = {
        "source": facts["source"],
        "nodes": f"{facts['nodes']:,}",
        "topics": f"{facts['topics']:,}",
        "subscriptions": f"{facts['subscriptions']:,}",
        "topics per node": (
            f"{smallest} each"
            if smallest == largest
            else f"{smallest} to {largest}, {facts['topics_per_node']:.1f} on average"
        ),
        "joins and leaves": f"{facts['changes']:,}" if facts["changes"] else "none: everybody stays",
        "fingerprint": facts["fingerprint"],
    }
    yield "<h2>Workload</h2>"
    yield from _facts(rows)


def _settings(comparison: Comparison) -> Iterator[str]:
    setting = comparison.setting
    yield "<h2>Run</h2>"
    yield from _facts(
        {
            "world": "simulator, virtual time",
            "seeds": ", ".join(map(str, setting.seeds)),
            "events": f"{setting.events:,}, on topics by their rates, from random subscribers",
            "overlay looked at after": f"{setting.settle:g} s",
            "membership": setting.membership,
            "latency": setting.latency,
            "joins and leaves": setting.churn or "none: everybody stays",
            "crash in the end": f"{setting.crash:.0%} of the nodes, the one with the most links among them",
            "Topicweave": topicweave.__version__,
        }
    )
    for entry in comparison.entries:
        yield f"<details><summary>Parameters of {escape(entry.label)}</summary>"
        yield from _facts({name: as_text(value) for name, value in entry.settings.items()})
        yield "</details>"


def _reproduce(comparison: Comparison) -> Iterator[str]:
    yield "<h2>The same again</h2>"
    yield "<p>A run is a function of its inputs and its seed. With the same version, this command gives this page, to the byte:</p>"
    yield f"<pre><code>{escape(comparison.command)}</code></pre>"


def _facts(rows: dict[str, str]) -> Iterator[str]:
    yield "<dl>"
    for name, value in rows.items():
        yield f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>"
    yield "</dl>"


def _figure_data(drawn: list[Figure]) -> str:
    data: dict[str, Any] = {
        figure.name: {"traces": figure.traces, "layout": figure.layout} for figure in drawn
    }
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")  # No text in it can end the script element.
