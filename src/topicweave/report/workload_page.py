"""A workload described on one HTML page that needs nothing but itself."""

from __future__ import annotations

import json
from html import escape
from typing import Any

import topicweave
from topicweave.report.assets import STYLE
from topicweave.report.page import POLICY, PlotlyMissing

_LINE = "#3b6ea5"
_LAYOUT = {
    "margin": {"l": 60, "r": 20, "t": 10, "b": 50},
    "height": 320,
    "paper_bgcolor": "rgba(0,0,0,0)",
    "plot_bgcolor": "rgba(0,0,0,0)",
}
_DRAW = (
    "for (const figure of JSON.parse(document.getElementById('figures').textContent))"
    " Plotly.newPlot(figure.name, figure.data, figure.layout, {displaylogo: false, responsive: true});"
)


def workload_page(description: dict[str, Any]) -> str:
    """The whole page. Raises `PlotlyMissing`."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise PlotlyMissing from None
    library = get_plotlyjs().replace("</script", "<\\/script")
    drawn = _figures(description)
    data = json.dumps(
        [{"name": name, "data": traces, "layout": layout} for name, _, traces, layout in drawn]
    ).replace("<", "\\u003c")
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta name="generator" content="Topicweave {topicweave.__version__}">',
        f"<title>{escape(description['folder'])}</title>",
        f"<style>{STYLE}</style>",
        "</head>",
        "<body>",
        "<main>",
        f"<h1>{escape(description['folder'])}</h1>",
        *(
            f"<figure><h3>{escape(title)}</h3>"
            f'<div class="plot" id="{name}" role="img" aria-label="{escape(title)}"></div></figure>'
            for name, title, _, _ in drawn
        ),
        "<h2>Numbers</h2>",
        '<div class="wide"><table><tbody>',
        *(
            f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
            for name, value in _rows(description)
        ),
        "</tbody></table></div>",
        "</main>",
        f'<script type="application/json" id="figures">{data}</script>',
        f"<script>{library}</script>",
        f"<script>{_DRAW}</script>",
        "</body>",
        "</html>",
    ]
    return "\n".join(parts) + "\n"


def _rows(description: dict[str, Any]) -> list[tuple[str, str]]:
    from topicweave.pipeline.describe import facts

    return list(facts(description))


Drawn = tuple[str, str, list[dict[str, Any]], dict[str, Any]]


def _figures(description: dict[str, Any]) -> list[Drawn]:
    """(name, title, traces, layout) of each figure that the description has numbers for."""
    drawn: list[Drawn] = []
    for name, title, axis in (
        ("popularity", "How popular topics are (CCDF)", "subscribers"),
        ("list_sizes", "How long nodes' lists are (CCDF)", "topics"),
    ):
        if curve := description.get(name, {}).get("ccdf"):
            x, y = zip(*curve, strict=True)
            traces = [_line(list(x), list(y), "found")]
            fitted = description[name].get("exponent")
            if fitted and fitted["tail"]:
                traces.append(_fitted(fitted, x, description[name], curve))
            drawn.append((name, title, traces, _axes(axis, "share of that many or more", log=True)))
    if steps := description.get("likeness", {}).get("friends"):
        friends = [step["friends"] for step in steps]
        traces = [
            _line(friends, [step["coverage_mean"] for step in steps], "topics covered, mean"),
            {
                **_line(friends, [step["fully_covered"] for step in steps], "nodes fully covered"),
                "line": {"dash": "dash"},
            },
        ]
        drawn.append(
            (
                "friends",
                "What k greedily chosen best friends cover",
                traces,
                _axes("friends", "share", log=False),
            )
        )
    return drawn


def _line(x: list[Any], y: list[Any], name: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": x,
        "y": y,
        "name": name,
        "marker": {"color": _LINE},
    }


def _fitted(
    fitted: dict[str, Any], values: tuple[int, ...], _found: dict[str, Any], curve: list[list[float]]
) -> dict[str, Any]:
    """The fitted power law from where it holds, set at the height of the found curve there."""
    x = [value for value in values if value >= fitted["x_min"]]
    height = next(share for value, share in curve if value >= fitted["x_min"])
    y = [height * (value / x[0]) ** (1 - fitted["alpha"]) for value in x]
    name = f"power law, alpha = {fitted['alpha']:.2f} ± {fitted['error']:.2f}"
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": y,
        "name": name,
        "line": {"dash": "dot", "color": "#888"},
    }


def _axes(x: str, y: str, *, log: bool) -> dict[str, Any]:
    kind = "log" if log else "linear"
    return {
        **_LAYOUT,
        "xaxis": {"title": {"text": x}, "type": kind},
        "yaxis": {"title": {"text": y}, "type": kind},
    }
