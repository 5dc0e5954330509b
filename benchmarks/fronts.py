"""Links against hops, and links against control traffic: every system with several settings. docs/systems/weave.md.

    python -m benchmarks.fronts [--workloads rss,rare] [--systems weave,omen] [--minutes 10]
    python -m benchmarks.fronts --draw

What was run is kept in `out/fronts`, so that the same command goes on where it was. The figures go to
`docs/systems/fronts.csv`, the pictures to `docs/systems`. `--draw` makes the pictures alone.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.fronts_picture import Point, picture
from benchmarks.fronts_sketch import sketch
from topicweave.choose import compare
from topicweave.model.workload import Workload
from topicweave.workloads import generate
from topicweave.workloads.catalogue import build

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "docs" / "systems" / "fronts.csv"
PICTURES = ROOT / "docs" / "systems"
OUT = ROOT / "out" / "fronts"
NODES = 300
SKETCH = "in one place"
FEWEST = 4
"""Of systems, in a picture."""

SETTINGS: Mapping[str, Sequence[str]] = {
    "rappel": ("", "alpha=3", "alpha=10", "beta=3", "beta=10", "utility=interest"),
    "gossipsub": (
        "",
        "d=3:d_low=2:d_high=5:d_out=1",
        "d=4:d_low=3:d_high=8:d_out=1",
        "d=8:d_low=6:d_high=12:d_out=3",
        "flood_publish=false",
        "d=3:d_low=2:d_high=5:d_out=1:flood_publish=false",
    ),
    "vitis": ("", "table_size=10", "table_size=20", "table_size=25", "small_world=3", "gateway_hops=3"),
    "magnet": (
        "",
        "oscar.fingers=5",
        "oscar.fingers=12",
        "oscar.fingers=17",
        "samples.size=20",
        "improvements=0",
    ),
    "omen": (
        "",
        "resilience=4",
        "finds=coordinators",
        "finds=coordinators:rho=1",
        "finds=coordinators:rho=3",
        "finds=coordinators:builder=greedy",
    ),
    "spidercast": (
        "",
        "k_greedy=1",
        "k_greedy=2",
        "k_greedy=4",
        "k_greedy=2:k_random=1",
        "k_greedy=3:k_random=1",
    ),
    "ring-per-topic": ("", "bridges=8"),
    "weave": ("", "hubs=1", "links=7", "links=12", "lean=0", "improve=false"),
}
"""A ring per topic has no dial: what its nodes link to is given."""
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
HEADINGS = ("workload", "system", "setting", *MEASURES)
Row = dict[str, str]


MODELS: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "correlated": ("vitis-high", {"topics": 100, "size": 10, "buckets": 10}),
    "multi-modal": ("magnet-multi-modal", {"topics": 100, "size": 10}),
    "rare": ("rare", {}),
}
"""Of the catalogue. Whatever else is named is a popularity of topics: everybody wants 10 of 100, as in the demo."""


def workload(name: str) -> Workload:
    if name not in MODELS:
        return generate(NODES, 100, name, min_size=10, max_size=10, seed=0)
    model, sizes = MODELS[name]
    return build(model, seed=0, nodes=NODES, **sizes)


def read() -> list[Row]:
    if not TABLE.exists():
        return []
    with TABLE.open(newline="") as file:
        return list(csv.DictReader(file))


def keep(new: Iterable[Row]) -> None:
    """Put rows into the table, each in the place of the one of the same system and setting. Those of settings
    that are not in `SETTINGS` go.
    """
    rows = {
        (row["workload"], row["system"], row["setting"]): row
        for row in (*read(), *new)
        if row["system"] == SKETCH or row["setting"] in SETTINGS[row["system"]]
    }
    ordered = sorted(
        rows.values(), key=lambda row: (row["workload"], row["system"], float(row["degree_mean"]))
    )
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, HEADINGS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(ordered)


def measured(name: str, subscriptions: Workload, system: str, setting: str) -> Row:
    """One run of one setting, one seed."""
    found = compare(
        subscriptions,
        systems=[f"{system}:{setting}" if setting else system],
        seeds=1,
        budget=None,
        out=OUT / name,
        workers=1,
    )
    entry = found.entries[0]
    figures = {measure: f"{entry.measure(measure):.4g}" for measure in MEASURES}
    return {"workload": name, "system": system, "setting": setting, **figures}


def run(names: Sequence[str], systems: Sequence[str], seconds: float) -> None:
    began = time.monotonic()
    for name in names:
        subscriptions = workload(name)
        keep(sketched(name, subscriptions))
        for system in systems:
            for setting in SETTINGS[system]:
                if time.monotonic() - began > seconds:
                    print("out of time: the same command goes on")
                    return
                row = measured(name, subscriptions, system, setting)
                keep([row])
                print(
                    name, system, setting, row["degree_mean"], row["hops_mean"], row["duplicates"], flush=True
                )


def sketched(name: str, subscriptions: Workload) -> Iterator[Row]:
    for links, hops in sketch(subscriptions):
        about = {"workload": name, "system": SKETCH, "setting": f"{links:.1f}"}
        yield (
            dict.fromkeys(HEADINGS, "") | about | {"degree_mean": f"{links:.4g}", "hops_mean": f"{hops:.4g}"}
        )


def draw() -> None:
    """Two pictures for each workload that has enough systems."""
    rows = read()
    for name in dict.fromkeys(row["workload"] for row in rows):
        own = [row for row in rows if row["workload"] == name]
        if len({row["system"] for row in own}) < FEWEST:
            continue
        for measure, words in (
            ("hops_mean", "hops, mean"),
            ("control_bytes", "control traffic, B/s and node"),
        ):
            points: dict[str, list[Point]] = {system: [] for system in (*SETTINGS, SKETCH)}
            for row in own:
                if row[measure]:
                    at = Point(float(row["degree_mean"]), float(row[measure]), row["setting"] == "")
                    points[row["system"]].append(at)
            title = f"{name}, {NODES} nodes: links and {words}"
            kind = measure.partition("_")[0]
            drawn = picture(title, "links per node, mean", words, points, curve=SKETCH)
            (PICTURES / f"fronts-{name}-{kind}.svg").write_text(drawn)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fronts", description=__doc__)
    parser.add_argument("--workloads", default="rss,rare")
    parser.add_argument("--systems", default=",".join(SETTINGS))
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no run after so many")
    parser.add_argument("--draw", action="store_true", help="no runs: draw what is in the table")
    options = parser.parse_args()
    if not options.draw:
        run(options.workloads.split(","), options.systems.split(","), 60.0 * options.minutes)
    draw()


if __name__ == "__main__":
    main()
