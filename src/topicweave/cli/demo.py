"""`topicweave demo`: a first look."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topicweave.cli.options import Workers

NODES, TOPICS, TOPICS_PER_NODE, EVENTS = 300, 100, 10, 200


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the workload and results go.")] = Path(
        "out/demo"
    ),
    workers: Workers = None,
) -> None:
    """Compare all systems on a small made-up workload. It takes a few minutes, and seconds the next time.

    \b
    Example:
      topicweave demo
    """
    import os

    import topicweave
    from topicweave.cli import trying

    typer.echo(
        f"{NODES} nodes want {TOPICS_PER_NODE} of {TOPICS} topics each, some topics far more popular than others.\n"
        f"Every system builds an overlay for them in the simulator and delivers the same {EVENTS} events.\n"
    )
    folder = out / "workload"
    _provide_workload(folder)
    with trying.machinery(workers or os.cpu_count() or 1) as machinery:
        comparison = topicweave.compare(folder, out=out, **machinery, seeds=1, events=EVENTS, budget=None)
    trying.print_comparison(comparison)
    typer.echo()
    trying.say_where(trying.write_results(comparison, out))
    typer.echo(
        "\nTry next:\n"
        "  topicweave systems                     what these systems are, and their parameters\n"
        f"  topicweave compare {folder} --systems spidercast:k_greedy=2,spidercast:k_greedy=4\n"
        "  topicweave study run 'spidercast/*'    the paper's own experiments, beside its figures"
    )


def _provide_workload(folder: Path) -> None:
    """The same workload each time: one that is there already is left alone."""
    from topicweave.errors import BadInput
    from topicweave.model.workload import Workload
    from topicweave.workloads import generate

    wanted = generate(NODES, TOPICS, "rss", TOPICS_PER_NODE, TOPICS_PER_NODE)
    try:
        if Workload.load(folder) == wanted:
            return
    except BadInput:
        pass  # Not there, or not a workload: saving says which.
    wanted.save(folder, overwrite=True)
