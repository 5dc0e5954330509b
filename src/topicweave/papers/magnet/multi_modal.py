"""Magnet §4.2: multi-modal subscriptions, figures 2 to 5."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import numpy as np

from topicweave.bulk.magnet.plan import Converged
from topicweave.measures.trees import share_uninterested
from topicweave.papers.magnet.settings import (
    MODES,
    RATE,
    RATIOS,
    SYSTEMS,
    Point,
    both,
    degree_quantiles,
    multi_modal,
)
from topicweave.papers.study import Plan, Results, Row, Scale, listed
from topicweave.runs.run import Result
from topicweave.runs.sources import ModelWorkload


def fig2(scale: Scale, seed: int) -> Plan:
    """How many links nodes have."""
    runs = both({"default": (multi_modal(scale, 1, 10), Converged(by_topic=True))}, scale, seed)

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for system in SYSTEMS:
            degrees = np.concatenate(
                [np.array(run["degrees"]) for (_, name, _), run in results.items() if name == system]
            )
            where = {"system": system, "level": "arrays"}
            mean = float(degrees.mean())
            curve = degree_quantiles(degrees)
            rows += [
                Row(where, "degree_mean", 19, mean),
                Row(where, f"degree: {', '.join(curve)}", None, listed(list(curve.values()))),
            ]
        return rows

    return Plan(runs, rows_of)


def _modes(scale: Scale, rate: float) -> dict[Any, tuple[ModelWorkload, Converged]]:
    return {
        (ratio, chosen, rate): (multi_modal(scale, chosen, ratio, rate_exponent=rate), Converged())
        for ratio in RATIOS
        for chosen in MODES[scale]
    }


def fig3a(scale: Scale, seed: int) -> Plan:
    """Correlation, with equal publication rates."""
    runs = both(_modes(scale, 0.0), scale, seed)

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for ratio in RATIOS:
            points = [Point(results, (ratio, chosen, 0.0)) for chosen in MODES[scale]]
            for chosen, point in zip(MODES[scale], points, strict=True):
                where = {"b_p": chosen, "b_p / b_n": 1 / ratio, "rates": "equal"}
                rows += point.rows(where, "0.2 to 0.8")
            saved = [point.saved for point in points]
            where = {"b_p": "rising", "b_p / b_n": 1 / ratio, "rates": "equal", "level": "arrays"}
            rows.append(Row(where, "relays_saved", "falls with less correlation", listed(saved)))
        return rows

    return Plan(runs, rows_of)


def fig3b(scale: Scale, seed: int) -> Plan:
    """The same with skewed rates, which similarity weighs by."""
    runs = both({**_modes(scale, RATE), **_modes(scale, 0.0)}, scale, seed)

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for ratio in RATIOS:
            points = {c: Point(results, (ratio, c, RATE), "relays_by_rate") for c in MODES[scale]}
            equal = {c: Point(results, (ratio, c, 0.0)) for c in MODES[scale]}
            for chosen, point in points.items():
                where = {"b_p": chosen, "b_p / b_n": 1 / ratio, "rates": f"power law {RATE}"}
                rows += point.rows(where, "0.2 to 0.8")
                rows.append(
                    Row(
                        {**where, "level": "arrays"},
                        "relays_saved",
                        "more than with equal rates",
                        f"{point.saved:.3f} against {equal[chosen].saved:.3f}",
                    )
                )
            saved = [point.saved for point in points.values()]
            where = {"b_p": "rising", "b_p / b_n": 1 / ratio, "rates": f"power law {RATE}", "level": "arrays"}
            rows.append(Row(where, "relays_saved", "falls with less correlation", listed(saved)))
        return rows

    return Plan(runs, rows_of)


def _five_thousand(scale: Scale, size: int, alpha: float, rate: float = 0.0) -> ModelWorkload:
    """Figure 4's networks: 5,000 nodes, one mode of five."""
    nodes = {"nodes": 5000, "topics": 1000} if scale == "paper" else {"nodes": 500, "topics": 250}
    return multi_modal(scale, 1, 5, **nodes, size=size, alpha=alpha, rate_exponent=rate)


def fig4a(scale: Scale, seed: int) -> Plan:
    """Topic popularity inside a mode."""
    alphas = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0) if scale == "paper" else (0.25, 1.0, 2.0)
    runs = both({alpha: (_five_thousand(scale, 18, alpha), Converged()) for alpha in alphas}, scale, seed)

    def rows_of(results: Results) -> list[Row]:
        points = {alpha: Point(results, alpha) for alpha in alphas}
        rows = [row for alpha, point in points.items() for row in point.rows({"alpha": alpha}, None)]
        saved = [point.saved for point in points.values()]
        where = {"alpha": "rising", "level": "arrays"}
        return [*rows, Row(where, "relays_saved", "rises with alpha", listed(saved))]

    return Plan(runs, rows_of)


def fig4b(scale: Scale, seed: int) -> Plan:
    """Sizes of subscriptions, with equal and with skewed rates."""
    sizes = (5, 10, 18, 30, 50) if scale == "paper" else (5, 18)
    runs = both(
        {
            (size, rate): (_five_thousand(scale, size, 0.75, rate), Converged())
            for size in sizes
            for rate in (0.0, RATE)
        },
        scale,
        seed,
    )

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for size in sizes:
            for rate in (0.0, RATE):
                point = Point(results, (size, rate), "relays_by_rate")
                where = {"topics_per_node": size, "rates": f"power law {rate}" if rate else "equal"}
                rows += point.rows(where, None)
        return rows

    return Plan(runs, rows_of)


def fig5(scale: Scale, seed: int) -> Plan:
    """Topics by falling popularity: which share of all messages goes to uninterested nodes."""
    cases = {"most correlated": (1, 10), "least correlated": (5, 5)}
    runs = both(
        {
            name: (multi_modal(scale, chosen, ratio, rate_exponent=RATE), Converged(by_topic=True))
            for name, (chosen, ratio) in cases.items()
        },
        scale,
        seed,
    )
    tenth = 100 if scale == "paper" else 30

    def share(run: Result, first: int) -> float:
        relays, wanted, rates = (np.array(run[key]) for key in ("relays", "wanted", "rates"))
        return share_uninterested(relays, wanted, rates, first)

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for name, (chosen, ratio) in cases.items():
            point = Point(results, name, "relays_by_rate")
            where = {"workload": name, "b_p": chosen, "b_n": chosen * ratio, "level": "arrays"}
            for first in (tenth // 10, tenth, 3 * tenth, 10 * tenth):
                found = {s: fmean(share(run, first) for run in point.runs[s]) for s in SYSTEMS}
                both_shares = ", ".join(f"{system} {found[system]:.3f}" for system in SYSTEMS)
                measure = f"share of messages to uninterested nodes, first {first} topics"
                rows.append(Row(where, measure, "below the strawman's", both_shares))
                if first == tenth and name == "most correlated":
                    rows.append(Row(where, measure, "almost none", found["magnet"]))
            rows += point.rows(where, None)
        return rows

    return Plan(runs, rows_of)
