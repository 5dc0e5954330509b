"""What the paper leaves open, measured: rho, and points (a), (b) and (d) of docs/systems/omen.md."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from topicweave.designs import DEFAULT_RHO
from topicweave.papers.omen.runs import Lists, mended, restored, samples
from topicweave.papers.study import Plan, Results, Row, Scale
from topicweave.runs.run import Run

ROUNDS = 1000
OPEN: dict[str, dict[str, Any]] = {
    "as it is": {},
    "components spread": {"components": "spread"},
    "components of the shadow set": {"components": "shadow"},
    "maximum over the shadow set": {"ceiling": "shadow"},
    "one cover, each topic five times": {"covers": "multi"},
}
RHOS = (1.5, 2.0, 3.0)


def choices(scale: Scale, seed: int) -> Plan:
    """OMen with one choice changed at a time; and with other values of rho, each beside LowODA-Re with the same."""
    workloads: dict[str, Lists] = samples(scale, seed, "facebook", how_many=3)
    if scale == "paper":
        workloads |= samples(scale, seed, "twitter", how_many=2)
    runs: dict[Any, Run] = {
        (name, choice): mended(*("omen", lists, scale, seed, ROUNDS), looks=20, labels=True, **changed)
        for name, lists in workloads.items()
        for choice, changed in OPEN.items()
    }
    for name, lists in workloads.items():
        for rho in RHOS:
            for system in ("omen", "lowoda-re"):
                labels = system == "omen"
                runs[name, system, rho] = mended(
                    *(system, lists, scale, seed, ROUNDS), looks=20, labels=labels, rho=rho
                )

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for name in workloads:
            for choice in OPEN:
                result = results[name, choice]
                where = {"workload": name, "choice": choice}
                best = results[name, "lowoda-re", DEFAULT_RHO]
                rows += [*_degrees(where, result, best), restored(where, result)]
                labels = result.get("label_messages_per_leave")
                if labels is not None:
                    rows.append(Row(where, "messages that spread labels, per leave", None, labels))
            for rho in RHOS:
                where = {"workload": name, "choice": f"rho {rho:g}"}
                rows += _degrees(where, results[name, "omen", rho], results[name, "lowoda-re", rho])
        for choice in (*OPEN, *(f"rho {rho:g}" for rho in RHOS)):
            same = [
                row.measured
                for row in rows
                if row.where.get("choice") == choice and row.measure == "degree_max / LowODA-Re's"
            ]
            where = {"workload": "all", "choice": choice}
            mean = fmean(ratio for ratio in same if isinstance(ratio, float))
            rows.append(Row(where, "degree_max / LowODA-Re's, mean over samples", None, mean))
        return rows

    return Plan(runs, rows_of)


def _degrees(where: dict[str, Any], result: Any, best: Any) -> list[Row]:
    first, last = result["looks"][0], result["looks"][-1]
    return [
        Row(where, "degree_max, first and last", None, f"{first['degree_max']}, {last['degree_max']}"),
        Row(
            where,
            "degree_mean, first and last",
            None,
            f"{first['degree_mean']:.2f}, {last['degree_mean']:.2f}",
        ),
        Row(where, "degree_max / LowODA-Re's", None, result["degree_max_mean"] / best["degree_max_mean"]),
        Row(where, "degree_mean - LowODA-Re's", None, result["degree_mean_mean"] - best["degree_mean_mean"]),
    ]
