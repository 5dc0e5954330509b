"""All commands under one name. A new command adds its line here, and imports what it needs inside itself."""

from __future__ import annotations

from typing import Annotated

import typer

import topicweave
from topicweave.cli import (
    advise,
    campaign,
    cluster,
    compare,
    config,
    demo,
    feeds,
    graph,
    keys,
    measure,
    messaging,
    node,
    report,
    reproduce,
    scoreboard,
    stream,
    study,
    swarm,
    sweep,
    systems,
    traces,
    workload,
)
from topicweave.cli.failures import Commands

# Plain help: it comes at once, and examples keep their lines.
app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"topicweave {topicweave.__version__}")
        raise typer.Exit


@app.callback()
def topicweave_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Publish/subscribe without a broker: choose a system, run nodes, study the papers.

    \b
    Start here:
      topicweave demo
    """


app.command("demo", short_help="Compare all systems on a small workload.")(demo.demo)
app.command("compare", short_help="Compare systems on your workload.")(compare.compare)
app.command("advise", short_help="Name the system that fits your workload and constraints.")(advise.advise)
app.command("report", short_help="Show a finished comparison again.")(report.report)
app.command("systems", short_help="List the systems and their parameters.")(systems.systems)
workload.app.command("formats")(traces.formats)
workload.app.command("import")(traces.import_)
workload.app.command("describe")(traces.describe)
workload.app.add_typer(traces.sampling, name="sample")
app.add_typer(workload.app, name="workload")
app.add_typer(study.app, name="study")
app.command("reproduce", short_help="Rerun all papers and judge their claims.")(reproduce.reproduce)
app.command("scoreboard", short_help="Write all claims of the papers on one page.")(scoreboard.scoreboard)
app.command("sweep", short_help="Run a grid of systems, workloads and seeds on Spark.")(sweep.sweep)
app.command("measure", short_help="Compute all measures of recorded runs.")(measure.measure)
app.command("stream", short_help="Compute measures while nodes run, on Spark.")(stream.stream)
app.add_typer(graph.app, name="graph")
app.add_typer(cluster.app, name="cluster")
app.command("campaign", short_help="Test a system under random faults.")(campaign.campaign)
app.command("node", short_help="Run one node.")(node.node)
app.command("publish", short_help="Publish an event through a running node.")(messaging.publish)
app.command("subscribe", short_help="Print events from a running node.")(messaging.subscribe)
app.command("feeds", short_help="Read RSS and Atom feeds, sharing the polling.")(feeds.feeds)
app.command("backup", short_help="Copy a running node's data folder.")(messaging.backup)
app.add_typer(config.app, name="config")
app.command("swarm", short_help="Run a whole swarm on this machine.")(swarm.swarm)
app.add_typer(keys.app, name="keys")
