"""Links against hops, and links against control traffic: every system with several settings. docs/systems/weave.md.

    python -m benchmarks.fronts [--workloads rss,rare] [--systems weave,omen] [--minutes 10]
    python -m benchmarks.fronts --draw

What was run is kept in `out/fronts`, so that the same command goes on where it was. The figures go to
`docs/systems/fronts.csv`, the pictures to `docs/systems`. `--draw` makes the pictures alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks import kept
from benchmarks.fronts_picture import Point, picture
from benchmarks.fronts_sketch import sketch
from benchmarks.kept import MEASURES, SYSTEMS_FOLDER, Row
from topicweave.choose import compare
from topicweave.model.workload import Workload

ROOT = Path(__file__).parents[1]
TABLE = SYSTEMS_FOLDER / "fronts.csv"
PICTURES = SYSTEMS_FOLDER
OUT = ROOT / "out" / "fronts"
NODES = 300
SKETCH = "in one place"
FEWEST = 4
"""Of systems, in a picture."""

SETTINGS: Mapping[str, Sequence[str]] = {
    "weave": ("", "hubs=1", "links=7", "links=12", "lean=0", "improve=false"),
    "spidercast": (
        "",
        "k_greedy=1",
        "k_greedy=2",
        "k_greedy=4",
        "k_greedy=2:k_random=1",
        "k_greedy=3:k_random=1",
    ),
    "omen": (
        "",
        "resilience=4",
        "finds=coordinators",
        "finds=coordinators:rho=1",
        "finds=coordinators:rho=3",
        "finds=coordinators:builder=greedy",
    ),
    "ring-per-topic": ("", "bridges=8"),
    "rappel": ("", "alpha=3", "alpha=10", "beta=3", "beta=10", "utility=interest"),
    "gossipsub": (
        "",
        "d=3:d_low=2:d_high=5:d_out=1",
        "d=4:d_low=3:d_high=8:d_out=1",
        "d=8:d_low=6:d_high=12:d_out=3",
        "flood_publish=false",
        "d=3:d_low=2:d_high=5:d_out=1:flood_publish=false",
    ),
    "opt": ("", "coverage=1", "coverage=3", "coverage=4", "table_size=10", "table_size=15"),
    "vitis": ("", "table_size=10", "table_size=20", "table_size=25", "small_world=3", "gateway_hops=3"),
    "rvr": ("", "table_size=10", "table_size=20", "table_size=25"),
    "magnet": (
        "",
        "oscar.fingers=5",
        "oscar.fingers=12",
        "oscar.fingers=17",
        "samples.size=20",
        "improvements=0",
    ),
    "strawman": ("", "oscar.fingers=5", "oscar.fingers=12", "oscar.fingers=17"),
    "scribe": ("", "leaves=4", "leaves=16"),
    "broker": ("",),
    "similarity": ("", "similar=5", "similar=15", "similar=20", "similar=8:random=2"),
    "random": ("", "random=5", "random=15", "random=20"),
}
"""A ring per topic and the broker have no dial: what their nodes link to is given."""
HEADINGS = ("workload", "system", "setting", *MEASURES)


def keep(new: Iterable[Row]) -> None:
    """Rows of settings that are not in `SETTINGS` go."""
    kept.keep(
        *(TABLE, HEADINGS, new),
        run_of=lambda row: (row["workload"], row["system"], row["setting"]),
        order=lambda row: (row["workload"], row["system"], float(row["degree_mean"])),
        stays=lambda row: row["system"] == SKETCH or row["setting"] in SETTINGS[row["system"]],
    )


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
    about = {"workload": name, "system": system, "setting": setting}
    return about | kept.figures(found.entries[0], MEASURES)


def run(names: Sequence[str], systems: Sequence[str], seconds: float) -> None:
    began = time.monotonic()
    for name in names:
        subscriptions = kept.workload(name, NODES)
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
    rows = kept.read(TABLE)
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
                    clean = row["system"] == SKETCH or (row["hit_ratio"], row["noise"]) == ("1", "0")
                    at = Point(float(row["degree_mean"]), float(row[measure]), row["setting"] == "", clean)
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
