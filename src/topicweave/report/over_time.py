"""The figures of what happens over time: while nodes come and go, and after a crash."""

from __future__ import annotations

from collections.abc import Sequence

from topicweave.measures.intervals import mean
from topicweave.report.comparison import Entry
from topicweave.report.figure import Figure, Trace, escaped
from topicweave.report.lines import lines

CHURN = "What happens while nodes come and go?"
CRASH = "What happens when nodes crash?"
_CHURNS = "seconds up and away on average, or the workload's own trace"


def served_under_churn(entries: Sequence[Entry], churn: str) -> Figure:
    traces = _over_time(entries, 3, "from %{x:.0f} s on: %{y:.1%}")
    least = min((min(trace["y"]) for trace in traces), default=0.0)
    return Figure(
        "churn-served",
        "Reach over time",
        f"Nodes come and go ({escaped(churn)}: {_CHURNS}). The share of expected deliveries made, of the events published in each stretch of time; "
        "newcomers count from ten seconds after they came.",
        "churn_curve: (second, nodes, links, share served), averaged over the seeds",
        traces,
        {
            "xaxis": {"title": {"text": "seconds"}, "rangemode": "tozero"},
            "yaxis": {
                "title": {"text": "expected deliveries made"},
                "tickformat": ".1~%",
                "range": [max(0.0, least - 0.05 * (1.02 - least)), 1 + 0.05 * (1.02 - least)],
            },
        },
        CHURN,
    )


def links_under_churn(entries: Sequence[Entry], churn: str) -> Figure:
    return Figure(
        "churn-links",
        "Links over time",
        f"Nodes come and go ({escaped(churn)}: {_CHURNS}). A line that rises is a system that mends by adding links and takes none away.",
        "churn_curve: (second, nodes, links, share served), averaged over the seeds",
        _over_time(entries, 2, "%{x:.0f} s: %{y:.1f} links"),
        {
            "xaxis": {"title": {"text": "seconds"}, "rangemode": "tozero"},
            "yaxis": {"title": {"text": "links per node (mean)"}, "rangemode": "tozero"},
        },
        CHURN,
    )


def _over_time(entries: Sequence[Entry], column: int, hover: str) -> list[Trace]:
    """A column of the churn curves, averaged over the seeds that have it."""

    def points(entry: Entry) -> tuple[list[float], list[float]]:
        found: dict[float, list[float]] = {}
        for result in entry.results:
            for row in result.get("churn_curve", ()):
                if row[column] is not None:
                    found.setdefault(row[0], []).append(row[column])
        return sorted(found), [mean(found[second]) for second in sorted(found)]

    return lines(entries, points, hover)


def after_crash(entries: Sequence[Entry], crashing: str) -> Figure:
    """Second by second, over the seeds that have it."""

    def points(entry: Entry) -> tuple[list[float], list[float]]:
        shares: dict[int, list[float]] = {}
        for result in entry.results:
            for second, share in result.get("repair_curve", ()):
                shares.setdefault(second, []).append(share)
        seconds = sorted(shares)
        return [float(second) for second in seconds], [mean(shares[second]) for second in seconds]

    traces = lines(entries, points, "%{x:.0f} s: %{y:.1%}")
    for trace in traces:
        trace |= {"mode": "lines+markers", "marker": {"color": trace["line"]["color"], "size": 5}}
    least = min((min(trace["y"]) for trace in traces), default=0.0)
    return Figure(
        "repair",
        "Reach over time, before and after a crash",
        f"At second 0, {crashing} without a word, the one with the most links first of all. Every "
        "second, events on some topics show which share of the subscribers still there is served.",
        "repair_curve: (second, share) of probes, averaged over the seeds",
        traces,
        {
            "xaxis": {"title": {"text": "seconds since the crash"}, "zeroline": False},
            "yaxis": {
                "title": {"text": "share of subscribers served"},
                "tickformat": ".1~%",
                "range": [max(0.0, least - 0.05 * (1.02 - least)), 1 + 0.05 * (1.02 - least)],
            },
            "shapes": [
                {
                    "type": "line",
                    "x0": 0,
                    "x1": 0,
                    "y0": 0,
                    "y1": 1,
                    "yref": "paper",
                    "line": {"width": 1.5, "dash": "dot", "color": "#c0392b"},
                }
            ],
            "annotations": [
                {
                    "x": 0,
                    "y": 0.02,
                    "yref": "paper",
                    "yanchor": "bottom",
                    "xanchor": "left",
                    "text": " crash",
                    "showarrow": False,
                }
            ],
        },
        CRASH,
    )
