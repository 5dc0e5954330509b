"""Magnet §4.3 and §4.4: spatial and hierarchical subscriptions, figures 6 to 8."""

from __future__ import annotations

from statistics import fmean

import numpy as np

from topicweave.bulk.magnet.plan import Converged
from topicweave.papers.magnet.settings import (
    Point,
    both,
)
from topicweave.papers.study import Plan, Results, Row, Scale, listed
from topicweave.pipeline.power_law import fit
from topicweave.runs.sources import ModelWorkload


def fig6(scale: Scale, seed: int) -> Plan:
    """The spatial model: sizes of networks and of subscriptions."""
    sizes = (1000, 2500, 5000, 10_000) if scale == "paper" else (300, 1000)
    averages = (8, 16, 32)
    runs = both(
        {
            (nodes, average): (
                ModelWorkload("magnet-spatial", {"nodes": nodes, "average": average}),
                Converged(),
            )
            for nodes in sizes
            for average in averages
        },
        scale,
        seed,
    )

    def rows_of(results: Results) -> list[Row]:
        rows, saved = [], {}
        for nodes in sizes:
            for average in averages:
                point = Point(results, (nodes, average))
                saved[nodes, average] = point.saved
                paper = 0.8 if (nodes, average) == (10_000, 32) else None
                rows += point.rows({"nodes": nodes, "topics_per_node": average}, paper)
        for nodes in sizes:
            values = [saved[nodes, average] for average in averages]
            where = {"nodes": nodes, "topics_per_node": "8, 16, 32", "level": "arrays"}
            rows.append(Row(where, "relays_saved", "rises with t", listed(values)))
        for average in averages:
            values = [saved[nodes, average] for nodes in sizes]
            where = {"nodes": "rising", "topics_per_node": average, "level": "arrays"}
            rows.append(Row(where, "relays_saved", "rises with the network", listed(values)))
        return rows

    return Plan(runs, rows_of)


def hierarchical(scale: Scale, average: float, share: float, homophily: float) -> ModelWorkload:
    count = 2**14 if scale == "paper" else 2**10
    return ModelWorkload(
        "magnet-hierarchical",
        {
            "nodes": count,
            "topics": count,
            "average": average,
            "initial_share": share,
            "homophily": homophily,
        },
    )


def fig7(scale: Scale, seed: int) -> Plan:
    """Topic popularity in the hierarchical model."""
    runs = both({"default": (hierarchical(scale, 16, 0.1, 2.0), Converged(by_topic=True))}, scale, seed)

    def rows_of(results: Results) -> list[Row]:
        likelihood, slopes, starts, literal = [], [], [], []
        for (_, system, _), run in results.items():
            if system == "magnet":
                sizes, times = np.unique([size for size in run["wanted"] if size > 0], return_counts=True)
                found = fit(sizes, times)
                likelihood.append(found.alpha)
                starts.append(float(found.x_min))
                slopes.append(found.ccdf_slope)
                literal.append(float(-np.polyfit(np.log(sizes), np.log(times), 1)[0]))
        where = {"nodes": 2**14 if scale == "paper" else 2**10, "topics_per_node": 16}
        return [
            Row(
                where,
                "exponent by maximum likelihood, x_min by the smallest distance",
                1.68,
                fmean(likelihood),
            ),
            Row(where, "its x_min", None, listed(starts)),
            Row(where, "slope of a line through the histogram in log-log (footnote 3)", 1.68, fmean(literal)),
            Row(where, "slope of a line through the CCDF in log-log", 1.68, fmean(slopes)),
        ]

    return Plan(runs, rows_of)


LAMBDAS: dict[Scale, tuple[float, ...]] = {"smoke": (0.5, 2.0), "paper": (0.5, 1.0, 1.5, 2.0, 3.0)}


def fig8a(scale: Scale, seed: int) -> Plan:
    """The hierarchical model: homophily, and how much of the lists is random to begin with."""
    shares = (0.1, 0.2, 0.4) if scale == "paper" else (0.1, 0.4)
    runs = both(
        {
            (share, homophily): (hierarchical(scale, 16, share, homophily), Converged())
            for share in shares
            for homophily in LAMBDAS[scale]
        },
        scale,
        seed,
    )

    def rows_of(results: Results) -> list[Row]:
        rows, saved = [], {}
        for share in shares:
            for homophily in LAMBDAS[scale]:
                point = Point(results, (share, homophily))
                saved[share, homophily] = point.saved
                paper = "0.2 to 0.6" if share == 0.1 else None
                rows += point.rows({"lambda": homophily, "initFrac": share, "Z": 16}, paper)
        for share in shares:
            values = [saved[share, homophily] for homophily in LAMBDAS[scale]]
            where = {"lambda": "rising", "initFrac": share, "Z": 16, "level": "arrays"}
            rows.append(Row(where, "relays_saved", "rises with lambda", listed(values)))
        for homophily in LAMBDAS[scale]:
            values = [saved[share, homophily] for share in shares]
            where = {"lambda": homophily, "initFrac": "rising", "Z": 16, "level": "arrays"}
            rows.append(Row(where, "relays_saved", "falls with initFrac", listed(values)))
        low = [saved[0.1, homophily] for homophily in LAMBDAS[scale]]
        where = {"lambda": "all", "initFrac": 0.1, "Z": 16, "level": "arrays"}
        rows.append(Row(where, "relays_saved", "0.2 to 0.6", listed(low)))
        return rows

    return Plan(runs, rows_of)


def fig8b(scale: Scale, seed: int) -> Plan:
    """The hierarchical model: sizes of subscriptions."""
    averages = (8, 16, 32)
    lambdas = LAMBDAS[scale]
    runs = both(
        {
            (average, homophily): (hierarchical(scale, average, 0.1, homophily), Converged())
            for average in averages
            for homophily in lambdas
        },
        scale,
        seed,
    )

    def rows_of(results: Results) -> list[Row]:
        rows, saved = [], {}
        for average in averages:
            for homophily in lambdas:
                point = Point(results, (average, homophily))
                saved[average, homophily] = point.saved
                rows += point.rows({"lambda": homophily, "initFrac": 0.1, "Z": average}, None)
        for homophily in lambdas:
            values = [saved[average, homophily] for average in averages]
            where = {"lambda": homophily, "initFrac": 0.1, "Z": "8, 16, 32", "level": "arrays"}
            rows.append(Row(where, "relays_saved", "falls with Z", listed(values)))
        return rows

    return Plan(runs, rows_of)
