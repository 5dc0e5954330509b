"""What long runs found, row by row: workloads that several benchmarks share, and tables that grow over many calls."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from topicweave.model.workload import Workload
from topicweave.report.comparison import Entry
from topicweave.workloads import generate
from topicweave.workloads.catalogue import build

SYSTEMS_FOLDER = Path(__file__).parents[1] / "docs" / "systems"
MEASURES = (
    "degree_mean",
    "degree_p95",
    "degree_max",
    "hops_mean",
    "duplicates",
    "noise",
    "hit_ratio",
    "latency_p95",
    "control_messages",
    "control_bytes",
    "repair_time",
    "settled_after",
)
Row = dict[str, str]
MODELS: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "correlated": ("vitis-high", {"topics": 100, "size": 10, "buckets": 10}),
    "multi-modal": ("magnet-multi-modal", {"topics": 100, "size": 10}),
    "rare": ("rare", {}),
}
"""Of the catalogue. Whatever else is named is a popularity of topics: everybody wants 10 of 100, as in the demo."""


def workload(name: str, nodes: int) -> Workload:
    if name not in MODELS:
        return generate(nodes, 100, name, min_size=10, max_size=10, seed=0)
    model, sizes = MODELS[name]
    return build(model, seed=0, nodes=nodes, **sizes)


def figures(entry: Entry, measures: Iterable[str]) -> Row:
    return {measure: f"{entry.measure(measure):.4g}" for measure in measures}


def read(table: Path) -> list[Row]:
    if not table.exists():
        return []
    with table.open(newline="") as file:
        return list(csv.DictReader(file))


def keep(
    table: Path,
    headings: Sequence[str],
    new: Iterable[Row],
    run_of: Callable[[Row], Any],
    order: Callable[[Mapping[str, str]], Any],
    stays: Callable[[Row], bool] = lambda _row: True,
) -> None:
    """Put rows into a table, each in the place of the one of the same run. Rows that should not stay go."""
    rows = {run_of(row): row for row in (*read(table), *new) if stays(row)}
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, headings, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows.values(), key=order))
