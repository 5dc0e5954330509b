"""The rows of SpiderCast's Table 12 through the simulator: time, memory, cost per node."""

from __future__ import annotations

from benchmarks.measuring import measured
from benchmarks.sheet import Column, Sheet
from topicweave.papers.spidercast.rivals import TABLE_12
from topicweave.papers.spidercast.settings import PAPER_SIZES, settled
from topicweave.runs import carry_out


def run(quick: bool) -> list[Sheet]:
    sizes = PAPER_SIZES[:1] if quick else (1000, 2000, 4000, 10_000)
    in_paper = dict(zip(PAPER_SIZES, TABLE_12["spidercast(3,0)"], strict=True))
    sheet = Sheet(
        "scale",
        "SpiderCast (3,0), Table 12: one row through the message-level simulator, one core",
        1,
        Column("nodes", ",d"),
        Column("CPU s", ".1f", "less"),
        Column("peak MiB", ",.0f", "less"),
        Column("events", ",d"),
        Column("events per s", ",.0f", "more"),
        Column("ms per node", ".2f", "less"),
        Column("against the first", ".2f"),
        Column("degree", ".2f"),
        Column("paper", ".2f"),
    )
    first = None
    for nodes in sizes:
        run = measured(carry_out, settled(nodes, seed=0))
        cost = 1000 * run.cpu / nodes
        first = first or cost
        events = run.value["kernel_events"]
        sheet.add(
            nodes,
            run.cpu,
            run.peak_mib,
            events,
            events / run.cpu,
            cost,
            cost / first,
            run.value["degree_mean"],
            in_paper[nodes],
        )
    return [sheet]
