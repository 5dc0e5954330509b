"""Rappel at scale: hours of virtual time with thousands of nodes (the static run of figures 8a and 8b), and what a message costs."""

from __future__ import annotations

from rich.table import Table

from benchmarks.measuring import measured
from topicweave.data.feed_workloads import SingleFeed
from topicweave.data.latency_networks import NetworkSpec
from topicweave.papers.rappel.settings import feeds_experiment, model, static_run
from topicweave.runs import run_experiment
from topicweave.runs.feeds import FeedsRun

MINUTES, GIB = 10.0, 6.0
"""What the full size should stay below."""


def run(quick: bool) -> Table:
    if quick:
        subscribers, spec = 200, FeedsRun(NetworkSpec("generated", 0, False), 1800.0, 60.0)
    else:
        subscribers, spec = 5000, static_run("paper", model("paper", 0))
    hours = spec.duration / 3600.0
    table = Table(
        title=f"Rappel, one feed, {subscribers:,} subscribers, {hours:g} h of virtual time, one core"
    )
    for column in ("seconds", "peak MiB", "events", "events/s", "µs per event", "latency p50 s", "noise"):
        table.add_column(column, justify="right")
    done = measured(run_experiment, feeds_experiment(SingleFeed(subscribers), spec, 0))
    events = done.value["kernel_events"]
    table.add_row(
        f"{done.seconds:.0f}",
        f"{done.peak_mib:,.0f}",
        f"{events:,}",
        f"{events / done.seconds:,.0f}",
        f"{1e6 * done.seconds / events:.1f}",
        f"{done.value['updates'][-1]['latency_p50']:.3f}",
        f"{done.value['noise']}",
    )
    table.caption = f"target: below {MINUTES:g} minutes and {GIB:g} GiB at full size"
    return table
