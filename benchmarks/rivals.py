"""Weave and its rivals on every workload: calm, under churn, with measured latency. docs/systems/weave.md.

    python -m benchmarks.rivals [--workloads rss,twitter] [--systems weave,omen] [--nodes 300] [--minutes 60]
    python -m benchmarks.rivals --show

One seed each. Finished runs are kept in `out/rivals`, so that the same command goes on where it was. The figures go to
`docs/systems/rivals.csv`; `--show` prints the page's tables from there. Samples of public data and measured
latency need the files of `TOPICWEAVE_DATASETS` (docs/workloads.md); what needs a file that is not there is left out.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.fronts import MODELS, Row
from topicweave.choose import compare
from topicweave.model.workload import Workload
from topicweave.workloads import generate
from topicweave.workloads.catalogue import build

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "docs" / "systems" / "rivals.csv"
OUT = ROOT / "out" / "rivals"
SYSTEMS = ("weave", "spidercast", "omen", "ring-per-topic")
GENERATED = ("rss", "zipf1", "uniform", "correlated", "multi-modal", "rare")
LATENCY = "latency/planetlab490_rtt_18slices.tar.xz"
FILES: Mapping[str, str] = {
    "epinions": "subscriptions/soc-Epinions1.txt.xz",
    "twitter": "subscriptions/ego-twitter_undirected.csv.xz",
    "facebook": "subscriptions/facebook_combined.txt.gz",
    "github": "subscriptions/github_watch_2009.txt.xz",
    "livejournal": "subscriptions/soc-LiveJournal1Adj.txt.xz",
    "wikipedia": "subscriptions/wikipedia_edits_jodie.txt.xz",
}
BOTH_WAYS: Mapping[str, Sequence[str]] = {"twitter": ("--delimiter", ","), "facebook": ()}
"""Files whose links go both ways are imported first."""
CONDITIONS: Mapping[str, Mapping[str, str]] = {
    "calm": {},
    "churn": {"churn": "600/60"},
    "distance": {"latency": LATENCY},
}
MEASURES = (
    "degree_mean",
    "degree_p95",
    "degree_max",
    "hops_mean",
    "duplicates",
    "noise",
    "hit_ratio",
    "latency_p50",
    "latency_p95",
    "control_messages",
    "control_bytes",
    "repair_time",
    "settled_after",
)
HEADINGS = ("workload", "condition", "nodes", "system", *MEASURES)


def data_file(name: str) -> Path | None:
    """A public file, if the user has it."""
    folder = os.environ.get("TOPICWEAVE_DATASETS")
    file = Path(folder) / name if folder else None
    return file if file is not None and file.exists() else None


def subscriptions(name: str, nodes: int) -> Workload | Path | None:
    """A generated workload of so many nodes, or a file of which `compare` takes a sample; None without the file."""
    if name in MODELS:
        model, sizes = MODELS[name]
        return build(model, seed=0, nodes=nodes, **sizes)
    if name not in FILES:
        return generate(nodes, 100, name, min_size=10, max_size=10, seed=0)
    file = data_file(FILES[name])
    if file is None or name not in BOTH_WAYS:
        return file
    folder = OUT / "imported" / name
    if not folder.exists():
        command = [sys.executable, "-m", "topicweave", "workload", "import", "edges", str(file)]
        subprocess.run([*command, "--direction", "both", *BOTH_WAYS[name], "--out", str(folder)], check=True)
    return folder


def measured(name: str, condition: str, nodes: int, system: str) -> Row | None:
    """One run; None if it needs a file that is not there."""
    given = subscriptions(name, nodes)
    options: dict[str, Any] = dict(CONDITIONS[condition])
    if "latency" in options:
        options["latency"] = str(data_file(options["latency"]) or "")
    if given is None or "" in options.values():
        return None
    if name in FILES:
        options["nodes"] = nodes
    found = compare(
        given,
        systems=[system],
        seeds=1,
        budget=None,
        out=OUT / f"{name}-{nodes}-{condition}",
        runs=OUT / "runs",
        workers=1,
        **options,
    )
    entry = found.entries[0]
    figures = {measure: f"{entry.measure(measure):.4g}" for measure in MEASURES}
    return {"workload": name, "condition": condition, "nodes": str(nodes), "system": system, **figures}


def read() -> list[Row]:
    if not TABLE.exists():
        return []
    with TABLE.open(newline="") as file:
        return list(csv.DictReader(file))


def keep(new: Row) -> None:
    """Put a row into the table, in the place of the one of the same run."""

    def run_of(row: Mapping[str, str]) -> tuple[str, ...]:
        return row["workload"], row["condition"], row["nodes"], row["system"]

    rows = {run_of(row): row for row in (*read(), new)}
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, HEADINGS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows.values(), key=run_of))


def run(
    names: Iterable[str], conditions: Iterable[str], systems: Sequence[str], nodes: int, ends: float
) -> None:
    for condition in conditions:
        for name in names:
            for system in systems:
                if time.monotonic() > ends:
                    print("out of time: the same command goes on")
                    return
                row = measured(name, condition, nodes, system)
                if row is None:
                    print(name, condition, "left out: its file is not in TOPICWEAVE_DATASETS")
                    break
                keep(row)
                print(name, condition, system, row["degree_mean"], row["hops_mean"], flush=True)


def tables() -> Iterator[str]:
    """One for each number of nodes and condition."""
    rows = read()
    for nodes, condition in dict.fromkeys((row["nodes"], row["condition"]) for row in rows):
        yield f"\n{condition}, {nodes} nodes\n"
        yield (
            "| workload, system | links: mean, p95, most | hops | duplicates | latency: median, p95, ms "
            "| control, msg/s and B/s | repair, s | settled, s | hit ratio, noise |"
        )
        yield "|---" * 9 + "|"
        for row in rows:
            if (row["nodes"], row["condition"]) == (nodes, condition):
                yield cells(row)


def cells(row: Row) -> str:
    number = {measure: float(row[measure]) for measure in MEASURES}
    return (
        f"| {row['workload']}, {row['system']} "
        f"| {number['degree_mean']:.1f}, {number['degree_p95']:.0f}, {number['degree_max']:.0f} "
        f"| {number['hops_mean']:.1f} | {number['duplicates']:.2f} "
        f"| {1000 * number['latency_p50']:.0f}, {1000 * number['latency_p95']:.0f} "
        f"| {number['control_messages']:.1f}, {number['control_bytes']:,.0f} "
        f"| {number['repair_time']:.0f} | {number['settled_after']:.0f} "
        f"| {row['hit_ratio']}, {row['noise']} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rivals", description=__doc__)
    parser.add_argument("--workloads", default=",".join((*GENERATED, *FILES)))
    parser.add_argument("--conditions", default=",".join(CONDITIONS))
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--nodes", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no run after so many")
    parser.add_argument("--show", action="store_true", help="no runs: print what is in the table")
    options = parser.parse_args()
    if not options.show:
        ends = time.monotonic() + 60.0 * options.minutes
        run(
            options.workloads.split(","),
            options.conditions.split(","),
            options.systems.split(","),
            options.nodes,
            ends,
        )
    print("\n".join(tables()))


if __name__ == "__main__":
    main()
