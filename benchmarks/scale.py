"""The rows of SpiderCast's Table 12 through the simulator: time, memory, cost per node."""

from __future__ import annotations

from rich.table import Table

from benchmarks.measuring import measured
from topicweave.papers.spidercast.rivals import TABLE_12
from topicweave.papers.spidercast.settings import PAPER_SIZES, experiment
from topicweave.runs import run_experiment


def run(quick: bool) -> Table:
    sizes = (1000, 2000) if quick else (1000, 2000, 4000, 10_000)
    in_paper = dict(zip(PAPER_SIZES, TABLE_12["spidercast(3,0)"], strict=True))
    table = Table(title="SpiderCast (3,0), Table 12: one row through the message-level simulator, one core")
    columns = (
        "nodes",
        "seconds",
        "peak MiB",
        "events",
        "events/s",
        "ms per node",
        "against 1,000",
        "degree",
        "paper",
    )
    for column in columns:
        table.add_column(column, justify="right")
    first = None
    for nodes in sizes:
        run = measured(run_experiment, experiment(nodes, seed=0))
        cost = 1000 * run.seconds / nodes
        first = first or cost
        table.add_row(
            f"{nodes:,}",
            f"{run.seconds:.1f}",
            f"{run.peak_mib:,.0f}",
            f"{run.value['kernel_events']:,}",
            f"{run.value['kernel_events'] / run.seconds:,.0f}",
            f"{cost:.2f}",
            f"{cost / first:.2f}x",
            f"{run.value['degree_mean']:.2f}",
            f"{in_paper[nodes]:.2f}",
        )
    return table
