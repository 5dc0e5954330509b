"""Magnet (DEBS 2010), §4: figures 2 to 8, the Wikipedia trace, and that nothing is lost without correlation.

Cost is the number of uninterested nodes in the distribution trees, the home included, per event: averaged over topics, or over
events where topics have rates. Degree 19 (or 12) counts the distinct nodes at the other end of a link on the overlay that
the trees run over, whoever chose it: two on the ring, and both ends of 8.5 (or 5) fingers per node.

The figures are of the *converged state computed as arrays* (`topicweave.experiments.converged_magnet`), not of nodes that exchange messages:
the rows say so. `magnet/levels` sets both beside each other on networks that nodes reach in reasonable time. In every run all trees are checked
by an independent routine. Every point is the mean over several seeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean, stdev
from typing import Any

import numpy as np

from topicweave.experiments import Experiment
from topicweave.experiments.converged_plan import Converged, TopicSample
from topicweave.experiments.experiment import Result
from topicweave.experiments.model_workload import ModelWorkload
from topicweave.pipeline.power_law import fit
from topicweave.studies.study import Plan, Row, Scale, Study, claim, reported

Results = Mapping[Any, Result]

SYSTEMS = ("magnet", "strawman")
SEEDS: dict[Scale, int] = {"smoke": 2, "paper": 3}
RATE = 0.75
"""The exponent of skewed publication rates (§4.2)."""
FINGERS_12 = 5.0
MODES: dict[Scale, tuple[int, ...]] = {"smoke": (1, 3), "paper": (1, 2, 3, 4, 5)}
RATIOS = (5, 10)
"""b_n / b_p."""


def multi_modal(scale: Scale, chosen: int, ratio: int, **changes: Any) -> ModelWorkload:
    """§4.2's defaults: 10,000 nodes, 50 of 1,000 topics each; or a small likeness."""
    size = {"nodes": 10_000, "topics": 1000, "size": 50}
    if scale == "smoke":
        size = {"nodes": 600, "topics": 300, "size": 15}
    parameters = {**size, "chosen": chosen, "categories": chosen * ratio, **changes}
    return ModelWorkload("magnet-multi-modal", parameters)


def both(
    points: Mapping[Any, tuple[ModelWorkload | TopicSample, Converged]], scale: Scale, seed: int
) -> dict[Any, Experiment]:
    """Magnet and the strawman at every point, for several seeds: (point, system, seed) -> experiment."""
    experiments = {}
    for point, (workload, spec) in points.items():
        for number in range(seed, seed + SEEDS[scale]):
            drawn = type(workload)(**{**_fields(workload), "seed": number})
            for system in SYSTEMS:
                experiments[point, system, number] = Experiment(
                    system=system, workload=drawn, seed=number, converged=spec
                )
    return experiments


def _fields(workload: ModelWorkload | TopicSample) -> dict[str, Any]:
    return {name: getattr(workload, name) for name in workload.__struct_fields__}


class Point:
    """Both systems at one point, over the seeds."""

    def __init__(self, results: Results, point: Any, measure: str = "relays_per_topic") -> None:
        runs = {
            system: [result for (at, name, _), result in results.items() if at == point and name == system]
            for system in SYSTEMS
        }
        self.cost = {system: fmean(run[measure] for run in runs[system]) for system in SYSTEMS}
        shares = [
            1.0 - mine[measure] / other[measure] if other[measure] else 0.0
            for mine, other in zip(runs["magnet"], runs["strawman"], strict=True)
        ]
        self.saved = fmean(shares)
        self.spread = stdev(shares) if len(shares) > 1 else 0.0
        self.never_worse = all(share > 0 for share in shares)
        self.wrong = sum(run["wrong_trees"] for system in SYSTEMS for run in runs[system])
        self.runs = runs

    def rows(self, where: Mapping[str, Any], paper: str | None, held: bool = True) -> list[Row]:
        """Both costs, what is saved, and that all trees are right."""
        level = {**where, "level": "arrays"}
        cost = ", ".join(f"{system} {self.cost[system]:.1f}" for system in SYSTEMS)
        return [
            reported(level, "relays_per_topic", None, cost),
            Row(
                level,
                "relays_saved",
                paper or "fewer than the strawman",
                round(self.saved, 4),
                self.never_worse if held else None,
                f"above 0 with every seed; deviation {self.spread:.3f}",
            ),
            Row(
                level,
                "trees that do not span, cycle or leave a greedy route",
                0,
                self.wrong,
                not self.wrong,
                "none",
            ),
        ]


def listed(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.3f}" for value in values)


def falls(values: Sequence[float]) -> bool:
    return all(later < earlier for earlier, later in pairwise(values))


def rises(values: Sequence[float]) -> bool:
    return falls(list(values)[::-1])


def fig2(scale: Scale, seed: int) -> Plan:
    """How many links nodes have."""
    experiments = both({"default": (multi_modal(scale, 1, 10), Converged(by_topic=True))}, scale, seed)

    def judge(results: Results) -> list[Row]:
        rows = []
        for system in SYSTEMS:
            degrees = np.concatenate(
                [np.array(run["degrees"]) for (_, name, _), run in results.items() if name == system]
            )
            where = {"system": system, "level": "arrays"}
            mean = float(degrees.mean())
            shares = [float(np.quantile(degrees, share)) for share in (0.0, 0.05, 0.5, 0.95, 1.0)]
            rows += [
                Row(where, "degree_mean", 19, mean, abs(mean - 19) <= 0.5, "within 0.5"),
                reported(where, "degree: least, 5 %, median, 95 %, most", None, listed(shares)),
            ]
        return rows

    return Plan(experiments, judge)


def _modes(scale: Scale, rate: float) -> dict[Any, tuple[ModelWorkload, Converged]]:
    return {
        (ratio, chosen, rate): (multi_modal(scale, chosen, ratio, rate_exponent=rate), Converged())
        for ratio in RATIOS
        for chosen in MODES[scale]
    }


def fig3a(scale: Scale, seed: int) -> Plan:
    """Correlation, with equal publication rates."""
    experiments = both(_modes(scale, 0.0), scale, seed)

    def judge(results: Results) -> list[Row]:
        rows = []
        for ratio in RATIOS:
            points = [Point(results, (ratio, chosen, 0.0)) for chosen in MODES[scale]]
            for chosen, point in zip(MODES[scale], points, strict=True):
                rows += point.rows({"b_p": chosen, "b_n": chosen * ratio, "rates": "equal"}, "0.2 to 0.8")
            saved = [point.saved for point in points]
            where = {"b_p": "rising", "b_p / b_n": 1 / ratio, "rates": "equal", "level": "arrays"}
            rows.append(
                claim(where, "relays_saved", "falls with less correlation", listed(saved), falls(saved))
            )
        return rows

    return Plan(experiments, judge)


def fig3b(scale: Scale, seed: int) -> Plan:
    """The same with skewed rates, which similarity weighs by."""
    experiments = both({**_modes(scale, RATE), **_modes(scale, 0.0)}, scale, seed)

    def judge(results: Results) -> list[Row]:
        rows = []
        for ratio in RATIOS:
            points = {c: Point(results, (ratio, c, RATE), "relays_by_rate") for c in MODES[scale]}
            equal = {c: Point(results, (ratio, c, 0.0)) for c in MODES[scale]}
            for chosen, point in points.items():
                where = {"b_p": chosen, "b_n": chosen * ratio, "rates": f"power law {RATE}"}
                rows += point.rows(where, "0.2 to 0.8")
                rows.append(
                    claim(
                        {**where, "level": "arrays"},
                        "relays_saved",
                        "more than with equal rates",
                        f"{point.saved:.3f} against {equal[chosen].saved:.3f}",
                        point.saved > equal[chosen].saved,
                    )
                )
            saved = [point.saved for point in points.values()]
            where = {"b_p": "rising", "b_p / b_n": 1 / ratio, "rates": f"power law {RATE}", "level": "arrays"}
            rows.append(
                claim(where, "relays_saved", "falls with less correlation", listed(saved), falls(saved))
            )
        return rows

    return Plan(experiments, judge)


def _five_thousand(scale: Scale, size: int, alpha: float, rate: float = 0.0) -> ModelWorkload:
    """Figure 4's networks: 5,000 nodes, one mode of five."""
    nodes = {"nodes": 5000, "topics": 1000} if scale == "paper" else {"nodes": 500, "topics": 250}
    return multi_modal(scale, 1, 5, **nodes, size=size, alpha=alpha, rate_exponent=rate)


def fig4a(scale: Scale, seed: int) -> Plan:
    """Topic popularity inside a mode."""
    alphas = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0) if scale == "paper" else (0.25, 1.0, 2.0)
    experiments = both(
        {alpha: (_five_thousand(scale, 18, alpha), Converged()) for alpha in alphas}, scale, seed
    )

    def judge(results: Results) -> list[Row]:
        points = {alpha: Point(results, alpha) for alpha in alphas}
        rows = [row for alpha, point in points.items() for row in point.rows({"alpha": alpha}, None)]
        saved = [point.saved for point in points.values()]
        where = {"alpha": "rising", "level": "arrays"}
        return [*rows, claim(where, "relays_saved", "rises with alpha", listed(saved), rises(saved))]

    return Plan(experiments, judge)


def fig4b(scale: Scale, seed: int) -> Plan:
    """Sizes of subscriptions, with equal and with skewed rates."""
    sizes = (5, 10, 18, 30, 50) if scale == "paper" else (5, 18)
    experiments = both(
        {
            (size, rate): (_five_thousand(scale, size, 0.75, rate), Converged())
            for size in sizes
            for rate in (0.0, RATE)
        },
        scale,
        seed,
    )

    def judge(results: Results) -> list[Row]:
        rows = []
        for size in sizes:
            for rate in (0.0, RATE):
                point = Point(results, (size, rate), "relays_by_rate")
                where = {"topics_per_node": size, "rates": f"power law {rate}" if rate else "equal"}
                rows += point.rows(where, None)
        return rows

    return Plan(experiments, judge)


def fig5(scale: Scale, seed: int) -> Plan:
    """Topics by falling popularity: which share of all messages goes to uninterested nodes."""
    cases = {"most correlated": (1, 10), "least correlated": (5, 5)}
    experiments = both(
        {
            name: (multi_modal(scale, chosen, ratio, rate_exponent=RATE), Converged(by_topic=True))
            for name, (chosen, ratio) in cases.items()
        },
        scale,
        seed,
    )
    tenth = 100 if scale == "paper" else 30

    def share(run: Result, first: int) -> float:
        wanted, relays, rates = (np.array(run[key], float) for key in ("wanted", "relays", "rates"))
        order = np.argsort(-wanted, kind="stable")[:first]
        lost = (rates * relays)[order].sum()
        return float(lost / (lost + (rates * wanted)[order].sum()))

    def judge(results: Results) -> list[Row]:
        rows = []
        for name, (chosen, ratio) in cases.items():
            point = Point(results, name, "relays_by_rate")
            where = {"workload": name, "b_p": chosen, "b_n": chosen * ratio, "level": "arrays"}
            for first in (tenth // 10, tenth, 3 * tenth, 10 * tenth):
                found = {s: fmean(share(run, first) for run in point.runs[s]) for s in SYSTEMS}
                both_shares = ", ".join(f"{system} {found[system]:.3f}" for system in SYSTEMS)
                measure = f"share of messages to uninterested nodes, first {first} topics"
                rows.append(reported(where, measure, None, both_shares))
                if first == tenth and name == "most correlated":
                    rows.append(
                        Row(
                            where,
                            measure,
                            "almost none",
                            found["magnet"],
                            found["magnet"] <= 0.05,
                            "at most 0.05",
                        )
                    )
                rows.append(
                    claim(
                        where,
                        measure,
                        "below the strawman's",
                        both_shares,
                        found["magnet"] < found["strawman"],
                    )
                )
            rows += point.rows(where, None)
        return rows

    return Plan(experiments, judge)


def fig6(scale: Scale, seed: int) -> Plan:
    """The spatial model: sizes of networks and of subscriptions."""
    sizes = (1000, 2500, 5000, 10_000) if scale == "paper" else (300, 1000)
    averages = (8, 16, 32)
    experiments = both(
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

    def judge(results: Results) -> list[Row]:
        rows, saved = [], {}
        for nodes in sizes:
            for average in averages:
                point = Point(results, (nodes, average))
                saved[nodes, average] = point.saved
                rows += point.rows({"nodes": nodes, "topics_per_node": average}, None)
        for nodes in sizes:
            values = [saved[nodes, average] for average in averages]
            where = {"nodes": nodes, "topics_per_node": "8, 16, 32", "level": "arrays"}
            rows.append(claim(where, "relays_saved", "rises with t", listed(values), rises(values)))
        for average in averages:
            values = [saved[nodes, average] for nodes in sizes]
            where = {"nodes": "rising", "topics_per_node": average, "level": "arrays"}
            rows.append(claim(where, "relays_saved", "rises with the network", listed(values), rises(values)))
        largest = saved[sizes[-1], 32]
        where = {"nodes": sizes[-1], "topics_per_node": 32, "level": "arrays"}
        at_scale = abs(largest - 0.8) <= 0.08 if scale == "paper" else None
        rows.append(Row(where, "relays_saved", 0.8, largest, at_scale, "within 0.08, at 10,000 nodes"))
        return rows

    return Plan(experiments, judge)


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
    experiments = both(
        {"default": (hierarchical(scale, 16, 0.1, 2.0), Converged(by_topic=True))}, scale, seed
    )

    def judge(results: Results) -> list[Row]:
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
            reported(
                where,
                "exponent by maximum likelihood, x_min by the smallest distance",
                1.68,
                fmean(likelihood),
            ),
            reported(where, "its x_min", None, listed(starts)),
            reported(
                where, "slope of a line through the histogram in log-log (footnote 3)", 1.68, fmean(literal)
            ),
            reported(where, "slope of a line through the CCDF in log-log", 1.68, fmean(slopes)),
        ]

    return Plan(experiments, judge)


LAMBDAS: dict[Scale, tuple[float, ...]] = {"smoke": (0.5, 2.0), "paper": (0.5, 1.0, 1.5, 2.0, 3.0)}


def fig8a(scale: Scale, seed: int) -> Plan:
    """The hierarchical model: homophily, and how much of the lists is random to begin with."""
    shares = (0.1, 0.2, 0.4) if scale == "paper" else (0.1, 0.4)
    experiments = both(
        {
            (share, homophily): (hierarchical(scale, 16, share, homophily), Converged())
            for share in shares
            for homophily in LAMBDAS[scale]
        },
        scale,
        seed,
    )

    def judge(results: Results) -> list[Row]:
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
            rows.append(claim(where, "relays_saved", "rises with lambda", listed(values), rises(values)))
        for homophily in LAMBDAS[scale]:
            values = [saved[share, homophily] for share in shares]
            where = {"lambda": homophily, "initFrac": "rising", "Z": 16, "level": "arrays"}
            rows.append(claim(where, "relays_saved", "falls with initFrac", listed(values), falls(values)))
        low = [saved[0.1, homophily] for homophily in LAMBDAS[scale]]
        inside = all(0.15 <= value <= 0.65 for value in low) if scale == "paper" else None
        where = {"lambda": "all", "initFrac": 0.1, "Z": 16, "level": "arrays"}
        rows.append(Row(where, "relays_saved", "0.2 to 0.6", listed(low), inside, "0.15 to 0.65"))
        return rows

    return Plan(experiments, judge)


def fig8b(scale: Scale, seed: int) -> Plan:
    """The hierarchical model: sizes of subscriptions."""
    averages = (8, 16, 32)
    lambdas = LAMBDAS[scale]
    experiments = both(
        {
            (average, homophily): (hierarchical(scale, average, 0.1, homophily), Converged())
            for average in averages
            for homophily in lambdas
        },
        scale,
        seed,
    )

    def judge(results: Results) -> list[Row]:
        rows, saved = [], {}
        for average in averages:
            for homophily in lambdas:
                point = Point(results, (average, homophily))
                saved[average, homophily] = point.saved
                rows += point.rows({"lambda": homophily, "initFrac": 0.1, "Z": average}, None)
        for homophily in lambdas:
            values = [saved[average, homophily] for average in averages]
            where = {"lambda": homophily, "initFrac": 0.1, "Z": "8, 16, 32", "level": "arrays"}
            rows.append(claim(where, "relays_saved", "falls with Z", listed(values), falls(values)))
        return rows

    return Plan(experiments, judge)


def wikipedia(scale: Scale, seed: int) -> Plan:
    """Real subscriptions with a degree of 12: Wikipedia edits; also YouTube groups and GitHub watches."""
    spec = Converged(fingers=FINGERS_12)
    traces: dict[Any, tuple[ModelWorkload | TopicSample, Converged]]
    if scale == "paper":
        traces = {name: (TopicSample(name), spec) for name in ("wikipedia", "youtube", "github")}
    else:
        traces = {"hierarchical stand-in": (hierarchical(scale, 8, 0.2, 1.0), spec)}
    experiments = both(traces, scale, seed)

    def judge(results: Results) -> list[Row]:
        rows = []
        for name in traces:
            point = Point(results, name)
            run = point.runs["magnet"][0]
            where = {"workload": name, "nodes": run["nodes"], "topics": run["topics"]}
            level = {**where, "level": "arrays"}
            more = point.cost["strawman"] / point.cost["magnet"] - 1.0
            paper = 0.77 if name == "wikipedia" else None
            rows += [
                reported(level, "subscribers per topic, mean (paper: 5.4)", None, run["subscribers_mean"]),
                reported(level, "subscribers per topic, most (paper: 348)", None, run["subscribers_max"]),
                reported(level, "overlay_degree (paper: 12)", 12, run["overlay_degree"]),
                Row(level, "strawman's relays above Magnet's", paper, more, more > 0, "above 0"),
                *point.rows(where, None),
            ]
        return rows

    return Plan(experiments, judge)


def uncorrelated(scale: Scale, seed: int) -> Plan:
    """Topics drawn all alike: nothing to exploit, and nothing to lose."""
    size = {"nodes": 10_000, "topics": 1000, "size": 50}
    if scale == "smoke":
        size = {"nodes": 600, "topics": 300, "size": 15}
    experiments = both({"random": (ModelWorkload("vitis-random", size), Converged())}, scale, seed)

    def judge(results: Results) -> list[Row]:
        point = Point(results, "random")
        rows = point.rows({"workload": "uncorrelated"}, "not worse", held=False)
        holds = point.saved >= -2 * max(point.spread, 0.002)
        where = {"workload": "uncorrelated", "level": "arrays"}
        words = "never worse than the strawman"
        rows.append(Row(where, "relays_saved", words, point.saved, holds, "not below 0 by two deviations"))
        return rows

    return Plan(experiments, judge)


def levels(scale: Scale, seed: int) -> Plan:
    """The same networks by messages in the simulator, and as arrays."""
    nodes = 120 if scale == "smoke" else 600
    workload = multi_modal("smoke", 1, 5, nodes=nodes, topics=nodes // 2, size=12)
    arrivals = 120.0 if scale == "smoke" else 300.0
    experiments = {}
    for level in ("arrays", "messages"):
        spec = Converged(level=level, arrivals=arrivals)
        for system in SYSTEMS:
            experiments[level, system] = Experiment(
                system=system, workload=workload, seed=seed, converged=spec
            )

    def judge(results: Results) -> list[Row]:
        rows = []
        for system in SYSTEMS:
            arrays, messages = results["arrays", system], results["messages", system]
            where = {"system": system, "nodes": nodes}
            rows += [
                reported(
                    where,
                    measure,
                    None,
                    f"{arrays[measure]:.2f} as arrays, {messages[measure]:.2f} by messages",
                )
                for measure in ("relays_per_topic", "hops_mean", "overlay_degree")
            ]
            ratio = messages["relays_per_topic"] / arrays["relays_per_topic"]
            rows += [
                reported(where, "relays by messages / as arrays", 1.0, ratio),
                Row(
                    where, "hit_ratio", 1.0, messages["hit_ratio"], messages["hit_ratio"] == 1.0, "everybody"
                ),
                Row(
                    where,
                    "wrong trees by messages",
                    0,
                    messages["wrong_trees"],
                    not messages["wrong_trees"],
                    "none",
                ),
            ]
        return rows

    return Plan(experiments, judge)


_TITLES = {
    fig2: ("links per node", "§4.2, Figure 2"),
    fig3a: ("correlation, equal rates: uninterested relays", "§4.2, Figure 3(a)"),
    fig3b: ("correlation, skewed rates: uninterested relays", "§4.2, Figure 3(b)"),
    fig4a: ("topic popularity: relays saved", "§4.2, Figure 4(a)"),
    fig4b: ("subscription sizes: relays saved", "§4.2, Figure 4(b)"),
    fig5: ("messages to uninterested nodes, popular topics first", "§4.2, Figure 5"),
    fig6: ("spatial model: relays saved", "§4.3, Figure 6"),
    fig7: ("hierarchical topics: popularity", "§4.4, Figure 7"),
    fig8a: ("hierarchical topics: homophily and initFrac", "§4.4, Figure 8(a)"),
    fig8b: ("hierarchical topics: subscription sizes", "§4.4, Figure 8(b)"),
    wikipedia: ("real subscriptions: relays of the strawman above Magnet's", "§4.5"),
    uncorrelated: ("uncorrelated subscriptions: not worse than the strawman", "§1, §6"),
    levels: ("by messages and as arrays: the same costs", "ours"),
}

STUDIES = [
    Study(f"magnet/{plan.__name__}", title, f"Magnet (DEBS 2010) {section}", plan)
    for plan, (title, section) in _TITLES.items()
]
