"""`topicweave advise`: which system to take, for your subscriptions and under your constraints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from topicweave.cli import trying
from topicweave.cli.options import Format
from topicweave.cli.spark import Conf, Runs, Verbose

if TYPE_CHECKING:
    from topicweave.report.advice import Advice


@trying.asking(seeds=2, min_hit=1.0)
def advise(
    subscriptions: trying.Subject,
    prefer: Annotated[
        Literal["links", "latency", "control", "noise", "hops", "repair", "memory"],
        typer.Option(help="Of the systems that fit, the one that is best in this."),
    ] = "links",
    systems: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LIST",
            help="Which to consider, as in `topicweave compare`; all, with several settings each, if not given.",
        ),
    ] = None,
    out: trying.Out = None,
    format: Format = "table",  # noqa: A002
    *,
    question: Any,
    runs: Runs = None,
    workers: trying.WorkersOption = None,
    master: trying.MasterOption = None,
    conf: Conf = None,
    verbose: Verbose = False,
) -> None:
    """Find the system and parameters that fit your subscriptions and constraints, and show the evidence.

    The command runs all systems as `topicweave compare` does, each with several settings. Of those that keep
    every constraint with every seed it takes the best. Writes DIR/node.toml, ready for `topicweave node
    --config`. If no system fits, it says which constraint binds and by how much, and exits with 1.

    \b
    Examples:
      topicweave advise my.csv --max-degree 20 --max-noise 0.05
      topicweave advise my.csv --no-relays --max-latency 400 --prefer control

    \b
    JSON: {"system": "spidercast", "parameters": {"k_greedy": 2}, "prefer": "links", "decided": true, "fitting": ["…"],
           "given_up": ["…"], "nearest": null, "binding": [], "constraints": ["--max-degree 20"], "comparison": {…}}
    """
    import topicweave
    from topicweave.cli.output import print_json

    out, runs = trying.places("advise", subscriptions, out, runs)
    with trying.machinery(workers, master, conf, verbose, question["budget"]) as machinery:
        advice = topicweave.advise(
            subscriptions, prefer=prefer, systems=systems, out=out, runs=runs, **machinery, **question
        )
    # Printed first: a full disk does not take the answer away.
    if format == "json":
        print_json(advice.to_json())
    else:
        trying.print_comparison(advice.comparison)
        typer.echo()
        for line in advice.reasons:
            typer.echo(line)
    trying.say_where(trying.write_results(advice.comparison, out), err=format == "json")
    config = _write_config(advice, out)
    if config is None:
        raise typer.Exit(1)
    if format == "table":
        typer.echo(
            f"Run it: topicweave node --config {config} --listen 127.0.0.1:7000 --insecure --subscribe TOPIC"
        )


def _write_config(advice: Advice, out: Path) -> Path | None:
    from topicweave.report.files import write_whole

    path = out / "node.toml"
    if advice.node_toml is None:
        path.unlink(missing_ok=True)  # An earlier one would pass for this answer.
        return None
    write_whole(path, advice.node_toml)
    return path
