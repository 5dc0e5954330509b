"""What all pages have in common: one HTML file that needs nothing but itself, today and in ten years.

A page is a function of what it shows (and of the installed plotly.js): no time, no random identifier, no path that the
user did not type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

import topicweave
from topicweave.errors import TopicweaveError
from topicweave.report.assets import SCRIPT, STYLE
from topicweave.report.figure import HEIGHT, Figure

EXTRA = "topicweave[report]"

# The browser itself keeps the promise that nothing is fetched.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)


class PlotlyMissing(TopicweaveError):
    """plotly is not installed."""

    def __init__(self) -> None:
        super().__init__(f"the report needs plotly: pip install '{EXTRA}'")


def whole_page(
    title: str,
    name: str,
    body: Iterable[str],
    figures: Sequence[Figure],
    graphs: Mapping[str, Any] | None = None,
) -> str:
    """The page around its body. Raises `PlotlyMissing`.

    name    what files that are saved from it start with
    graphs  by figure, what is drawn by those that are pictures of nodes and links
    """
    library = _library()
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta name="generator" content="Topicweave {topicweave.__version__}">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        "</head>",
        "<body>",
        "<main>",
        *body,
        "</main>",
        '<div class="light" hidden></div>',
        '<p class="unseen" id="status" role="status"></p>',
        f'<script type="application/json" id="data">{_data(name, figures, graphs or {})}</script>',
        f"<script>{library}</script>",
        f"<script>{SCRIPT}</script>",
        "</body>",
        "</html>",
    ]
    return "\n".join(parts) + "\n"


def figure_markup(figure: Figure, command: str) -> Iterator[str]:
    """The place of a figure, its words, and how to save it and to get it again."""
    # The height is there before the plot is: nothing moves when it comes.
    height = f"height:{figure.layout.get('height', HEIGHT)}px"
    plot = f'<div class="plot" id="{figure.name}" style="{height}" role="img" aria-label="{escape(figure.title)}"></div>'
    yield from framed(figure.name, figure.title, figure.reading, plot, figure.source, command)


def framed(name: str, title: str, reading: str, drawn: str, source: str, command: str) -> Iterator[str]:
    """Anything drawn, as a figure."""
    yield f"<figure><h4>{escape(title)}</h4><figcaption>{escape(reading)}</figcaption>"
    yield drawn
    yield f'<div class="foot"><div class="export" role="group" aria-label="Save {escape(title)}">Save as'
    for file_format in ("png", "svg", "csv"):
        yield f'<button type="button" data-figure="{name}" data-format="{file_format}">{file_format.upper()}</button>'
    yield "</div>"
    yield f"<details><summary>Data</summary><p>{escape(source)}.</p>"
    yield f"<p>The same figure again:</p><pre><code>{escape(command)}</code></pre>"
    yield "</details></div></figure>"


def facts_markup(rows: Mapping[str, str]) -> Iterator[str]:
    yield '<dl class="facts">'
    for name, value in rows.items():
        yield f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>"
    yield "</dl>"


def file_name(text: str) -> str:
    """What can stand in a file's name anywhere.

    >>> file_name("my feeds, 2024.csv")
    'my-feeds-2024-csv'
    """
    return re.sub(r"[^\w]+", "-", text).strip("-") or "topicweave"


def library_version() -> str:
    """Of plotly.js, as its first lines tell it."""
    found = re.search(r"plotly\.js v([\w.-]+)", _library()[:500])
    return found.group(1) if found else "unknown"


def _library() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise PlotlyMissing from None
    # Were the library ever to hold the tag that ends a script, it would end it too early.
    library: str = get_plotlyjs().replace("</script", "<\\/script")
    return library


def _data(name: str, figures: Sequence[Figure], graphs: Mapping[str, Any]) -> str:
    drawn = {
        figure.name: {"title": figure.title, "traces": figure.traces, "layout": figure.layout}
        for figure in figures
    }
    text = json.dumps(
        {"name": name, "figures": drawn, "graphs": graphs}, allow_nan=False, separators=(",", ":")
    )
    return text.replace("<", "\\u003c")  # No text in it can end the script element.
