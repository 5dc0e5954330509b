"""Weave and its rivals on every workload: calm, under churn, with measured latency. docs/systems/weave-measured.md.

    python -m benchmarks.rivals [--workloads rss,twitter] [--systems weave,omen] [--nodes 300] [--minutes 60]
    python -m benchmarks.rivals --page

One seed each. Finished runs are kept in `out/rivals`, so that the same command goes on where it was. The figures go to
`docs/systems/rivals.csv`, and from there to the page. Samples of public data and measured latency need the files of
`TOPICWEAVE_DATASETS` (docs/workloads.md); what needs a file that is not there is left out.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import kept
from benchmarks.kept import SYSTEMS_FOLDER, Row
from topicweave.choose import compare
from topicweave.model.workload import Workload

ROOT = Path(__file__).parents[1]
TABLE = SYSTEMS_FOLDER / "rivals.csv"
PAGE = SYSTEMS_FOLDER / "weave-measured.md"
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
APART = "partitioned_topics"
MEASURES = (*kept.MEASURES, "latency_p50", APART)
GOALS: Mapping[str, str] = {
    "links: mean": "degree_mean",
    "p95": "degree_p95",
    "hops": "hops_mean",
    "latency: p95": "latency_p95",
    "duplicates": "duplicates",
    "bytes": "control_bytes",
    "repair": "repair_time",
}
"""What is compared, by the measure that says it: less is better."""
SUMMARY = """## In short

So often is Weave at least as good as SpiderCast, OMen and a ring per topic, each of them:"""
OTHERS = """What Weave has in proportion to GossipSub and Rappel (0.21: 21 % of theirs), calm, with 300 nodes; in what it has
more than Rappel; and who has fewer links, of those that reach everybody without noise:"""
TIMES = ("repair_time", "settled_after")
COLUMNS = (
    "| | system | links: mean, p95, most | hops | duplicates | latency: median, p95, ms "
    "| control, msg/s, B/s | repair, s | settled, s | hit ratio | noise | apart |",
    "|---|---|---|---|---|---|---|---|---|---|---|---|",
)
ABOUT: Mapping[str, str] = {
    "rss": "10 of 100 topics each, popular as feeds are: the demo's workload.",
    "zipf1": "10 of 100 topics each, Zipf's law with exponent 1.",
    "uniform": "10 of 100 topics each, all as popular.",
    "correlated": "Vitis' model `vitis-high` with ten buckets, 10 of 100 topics each.",
    "multi-modal": "Magnet's model `magnet-multi-modal`, 10 of 100 topics each.",
    "rare": "Three of 20 popular topics each, and two that three nodes want.",
    "epinions": "A sample of soc-Epinions1.txt.xz.",
    "twitter": "A sample of ego-twitter_undirected.csv.xz, whose links go both ways.",
    "facebook": "A sample of facebook_combined.txt.gz, whose links go both ways.",
    "github": "A sample of github_watch_2009.txt.xz.",
    "livejournal": "A sample of soc-LiveJournal1Adj.txt.xz.",
    "wikipedia": "A sample of wikipedia_edits_jodie.txt.xz.",
}
HEAD = """# Weave and its rivals on every workload

`python -m benchmarks.rivals` measures this page and writes it; the figures are in [`rivals.csv`](rivals.csv). Each
row is one run: 300 nodes if nothing else is said, seed 0, each system with its defaults, 50 ms between nodes,
membership as live nodes have it, preset `lan`, 200 events, a tenth crashes in the end. [Weave](weave.md) says what
the figures come to.

- *calm*: all nodes stay until that crash.
- *churn*: while events go out, nodes stay for 600 s and are away for 60 s, on average (`--churn 600/60`).
- *distance*: latency as measured between 490 places of PlanetLab (`--latency planetlab490_rtt_18slices.tar.xz`).

*Links* carry events. *Duplicates* are per delivery. *Control* is what one node sends per second, membership included.
*Repair* is the time from the crash until all are served at once, *settled* when the overlay had come to rest after the
start. *Apart* counts the topics whose subscribers do not all hang together before the events. Rows with – there are of
other code than those with a number: of nodes that speak wire format 8, and of a Weave whose publishers send more
copies. Samples of public data are of nodes that have topics in common, with all their topics
([choosing](../compare.md#what-is-run))."""
HEADINGS = ("workload", "condition", "nodes", "system", *MEASURES)


def data_file(name: str) -> Path | None:
    """A public file, if the user has it."""
    folder = os.environ.get("TOPICWEAVE_DATASETS")
    file = Path(folder) / name if folder else None
    return file if file is not None and file.exists() else None


def subscriptions(name: str, nodes: int) -> Workload | Path | None:
    """A generated workload of so many nodes, or a file of which `compare` takes a sample; None without the file."""
    if name not in FILES:
        return kept.workload(name, nodes)
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
    about = {"workload": name, "condition": condition, "nodes": str(nodes), "system": system}
    return about | kept.figures(found.entries[0], MEASURES)


def run_of(row: Mapping[str, str]) -> tuple[str, ...]:
    return row["workload"], row["condition"], row["nodes"], row["system"]


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
                kept.keep(TABLE, HEADINGS, [row], run_of, order=run_of)
                print(name, condition, system, row["degree_mean"], row["hops_mean"], flush=True)


def others(rows: Sequence[Row]) -> list[str]:
    """Weave beside the others that reach everybody without noise, calm, by workload."""
    places: dict[str, dict[str, Row]] = {}
    for row in rows:
        if (row["condition"], row["nodes"]) == ("calm", "300"):
            places.setdefault(row["workload"], {})[row["system"]] = row
    told = [
        "| | GossipSub: links | duplicates | hops | Rappel: bytes | more than Rappel in | fewer links |",
        "|---" * 7 + "|",
    ]
    for name in ABOUT:
        found = places.get(name, {})
        if not found.keys() >= {"weave", "gossipsub", "rappel"}:
            continue
        weave = found["weave"]

        def share(system: str, measure: str, own: Row = weave, found: Mapping[str, Row] = found) -> float:
            return float(own[measure]) / float(found[system][measure])

        clean = {one: row for one, row in found.items() if (row["hit_ratio"], row["noise"]) == ("1", "0")}
        fewer = [one for one, row in clean.items() if float(row["degree_mean"]) < float(weave["degree_mean"])]
        worse = [
            goal.removeprefix("links: ")
            for goal, measure in GOALS.items()
            if float(weave[measure]) > float(found["rappel"][measure])
        ]
        shares = (share("gossipsub", one) for one in ("degree_mean", "duplicates", "hops_mean"))
        cells = [*(f"{one:.2g}" for one in shares), f"{share('rappel', 'control_bytes'):.2g}"]
        told.append(f"| {' | '.join([name, *cells, ', '.join(worse) or '–', ', '.join(fewer) or '–'])} |")
    return told


def page() -> str:
    """One table for each workload; docs/systems/weave-measured.md."""
    rows = kept.read(TABLE)
    parts = [HEAD, "\n".join([SUMMARY, "", *summary(rows)]), "\n".join([OTHERS, "", *others(rows)])]
    for name in ABOUT:
        some = sorted((row for row in rows if row["workload"] == name), key=_place)
        if some:
            parts.append("\n".join([f"## {name}", "", f"{ABOUT[name]}", "", *COLUMNS, *map(cells, some)]))
    return "\n\n".join(parts) + "\n"


def summary(rows: Sequence[Row]) -> list[str]:
    """In how many places Weave is at least as good as each of its rivals, by condition and measure."""
    places: dict[tuple[str, str, str], dict[str, Row]] = {}
    for row in rows:
        places.setdefault((row["workload"], row["condition"], row["nodes"]), {})[row["system"]] = row
    whole = {place: found for place, found in places.items() if found.keys() >= {*SYSTEMS}}
    told = ["| of rows | " + " | ".join(GOALS) + " |", "|---" * (1 + len(GOALS)) + "|"]
    for condition in CONDITIONS:
        some = [found for (_, one, _), found in whole.items() if one == condition]
        best = [
            sum(
                all(float(found["weave"][measure]) <= float(found[rival][measure]) for rival in SYSTEMS)
                for found in some
            )
            for measure in GOALS.values()
        ]
        told.append(f"| {condition}, {len(some)} | " + " | ".join(map(str, best)) + " |")
    return told


def _place(row: Row) -> tuple[int, int, int]:
    others = sorted({row["system"]} - {*SYSTEMS})
    return int(row["nodes"]), [*CONDITIONS].index(row["condition"]), [*SYSTEMS, *others].index(row["system"])


def cells(row: Row) -> str:
    number = {measure: float(row[measure]) for measure in MEASURES if row[measure]}
    where = row["condition"] if row["nodes"] == "300" else f"{row['condition']}, {int(row['nodes']):,d} nodes"
    repair, settled = ("never" if math.isinf(number[one]) else f"{number[one]:.0f}" for one in TIMES)
    cells = (
        *(where, row["system"]),
        f"{number['degree_mean']:.1f}, {number['degree_p95']:.0f}, {number['degree_max']:.0f}",
        f"{number['hops_mean']:.1f}",
        f"{number['duplicates']:.2f}",
        f"{1000 * number['latency_p50']:.0f}, {1000 * number['latency_p95']:.0f}",
        f"{number['control_messages']:.1f}, {number['control_bytes']:,.0f}",
        *(repair, settled, row["hit_ratio"], row["noise"], row[APART] or "–"),
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rivals", description=__doc__)
    parser.add_argument("--workloads", default=",".join((*GENERATED, *FILES)))
    parser.add_argument("--conditions", default=",".join(CONDITIONS))
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--nodes", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no run after so many")
    parser.add_argument(
        "--page", action="store_true", help="no runs: write the page from what is in the table"
    )
    options = parser.parse_args()
    if not options.page:
        ends = time.monotonic() + 60.0 * options.minutes
        run(
            options.workloads.split(","),
            options.conditions.split(","),
            options.systems.split(","),
            options.nodes,
            ends,
        )
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
