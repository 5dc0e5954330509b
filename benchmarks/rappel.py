"""Rappel at scale: hours of virtual time with thousands of nodes (the static run of figures 8a and 8b), and
what a message costs.
"""

from __future__ import annotations

from benchmarks.measuring import measured
from benchmarks.sheet import Column, Sheet
from topicweave.data.networks import NetworkSpec
from topicweave.papers.rappel.feeds import Feeds
from topicweave.papers.rappel.settings import model, static_run
from topicweave.papers.rappel.workloads import SingleFeed
from topicweave.runs import carry_out

MINUTES, GIB = 10.0, 6.0
"""What the full size should stay below."""


def run(quick: bool) -> list[Sheet]:
    if quick:
        network = NetworkSpec("generated", 0, False)
        feeds = Feeds(workload=SingleFeed(100), network=network, duration=600.0, window=60.0)
    else:
        feeds = static_run("paper", model("paper", 0), 0)
    assert isinstance(feeds.workload, SingleFeed)
    subscribers, hours = feeds.workload.subscribers, feeds.duration / 3600.0
    sheet = Sheet(
        "rappel",
        f"Rappel, one feed, {subscribers:,} subscribers, {hours:.3g} h of virtual time, one core",
        1,
        Column("subscribers", ",d"),
        Column("CPU s", ".1f", "less"),
        Column("peak MiB", ",.0f", "less"),
        Column("events", ",d"),
        Column("events per s", ",.0f", "more"),
        Column("µs per event", ".1f", "less"),
        Column("latency p50 s", ".3f"),
        Column("noise", "g"),
        note=f"target: below {MINUTES:g} minutes and {GIB:g} GiB at full size",
    )
    done = measured(carry_out, feeds)
    events = done.value["kernel_events"]
    sheet.add(
        subscribers,
        done.cpu,
        done.peak_mib,
        events,
        events / done.cpu,
        1e6 * done.cpu / events,
        done.value["updates"][-1]["latency_p50"],
        done.value["noise"],
    )
    return [sheet]
