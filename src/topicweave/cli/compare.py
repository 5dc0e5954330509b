"""`topicweave compare`: all systems on your own subscriptions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topicweave.cli import trying
from topicweave.cli.options import Format
from topicweave.cli.spark import Conf, Verbose

if TYPE_CHECKING:
    from topicweave.report import Comparison
    from topicweave.report.constraints import Constraint


def compare(
    subscriptions: trying.Subject,
    systems: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LIST",
            help="Which systems, separated by commas; all if not given. NAME:PARAMETER=VALUE sets a parameter, and "
            "one system may be named several times with different ones.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where results and the report go.")] = Path(
        "out/compare"
    ),
    format: Format = "table",  # noqa: A002
    seeds: trying.Seeds = 3,
    seed: trying.FirstSeed = 0,
    events: trying.Events = 200,
    membership: trying.MembershipOption = "full",
    settle: trying.Settle = None,
    latency: trying.LatencyOption = "50ms",
    churn: trying.ChurnOption = "",
    crash: trying.Crash = 0.1,
    max_degree: Annotated[
        float | None,
        typer.Option(min=0, metavar="N", help="Mark the systems in which some node has more links."),
    ] = None,
    no_relays: Annotated[
        bool,
        typer.Option(
            "--no-relays", help="Mark the systems that pass events through those who do not want them."
        ),
    ] = False,
    nodes: trying.Nodes = None,
    budget: trying.Budget = "10m",
    workers: trying.WorkersOption = None,
    master: trying.MasterOption = None,
    conf: Conf = None,
    verbose: Verbose = False,
) -> None:
    """Compare systems on your subscriptions: links, reach, noise, hops, latency, control traffic, repair, memory.

    Every system gets the same workload, events, latency and crash in the simulator, with several seeds: the table shows
    means, and ± half of the 95 % confidence interval where it can be seen. Nothing but the file is needed. Finished results are kept
    in DIR/runs: a comparison that was stopped goes on where it was, and one that was run before is there at once. Writes
    DIR/compare.json and DIR/report.html.

    \b
    Examples:
      topicweave compare my.csv
      topicweave compare my.csv --budget 5m --churn 600/60 --latency 10-100ms
      topicweave compare my.csv --max-degree 20 --no-relays
      topicweave compare workloads/stocks --systems spidercast:k_greedy=2,spidercast:k_greedy=4,gossipsub
      topicweave compare workloads/stocks --format json | jq '.systems[].measures.hit_ratio'

    \b
    JSON (on stdout with --format json, and in DIR/compare.json; docs/compare.md has its schema):
      {"version": "…", "workload": {"name", "source", "nodes", "topics", "subscriptions", …},
       "seeds": [0, 1, 2], "events": 200, "membership": "full", "settle": 30.0, "latency": "50ms",
       "churn": "", "crash": 0.1, "cuts": [],
       "systems": [{"system": "spidercast", "parameters": {"k_greedy": 2},
                    "measures": {"degree_mean": 12.1, "hit_ratio": 1.0, …},
                    "intervals": {"degree_mean": 0.2, …}, "replications": {"degree_mean": [12.0, …], …}}]}
    Shares are 0 to 1, times are seconds; a measure without a value is null.
    """
    from topicweave.cli.comparing import Request, carry_out, write_results
    from topicweave.cli.output import print_json
    from topicweave.cli.variants import parse_variants

    constraints = trying.constraints_from(max_degree=max_degree, no_relays=no_relays)
    request = Request(
        subscriptions,
        parse_variants(systems or []),
        seed=seed,
        seeds=seeds,
        events=events,
        membership=membership,
        settle=settle,
        latency=latency,
        churn=churn,
        crash=crash,
        nodes=nodes,
        budget=trying.seconds_of(budget),
        constraints=constraints,
    )
    comparison = carry_out(request, out, trying.engine_for(workers, master, conf, verbose))
    report = write_results(comparison, out, constraints)
    if format == "json":
        print_json(comparison.to_json())
    else:
        print_comparison(comparison, constraints)
    say_where(report, err=format == "json")


def print_comparison(comparison: Comparison, constraints: Sequence[Constraint] = ()) -> None:
    """The table, in as few pieces as the terminal's width allows, and who does not keep to what was asked for."""
    from topicweave.cli.output import console, show
    from topicweave.cli.tables import LEGEND, comparison_tables
    from topicweave.report.constraints import complaints

    out = console()
    for table in comparison_tables(comparison, out.width if out.is_terminal else None):
        show(table)
    out.print(LEGEND, style="dim", soft_wrap=True)
    for entry in comparison.entries:
        if broken := complaints(entry, constraints):
            out.print(f"✗ {entry.label}: {'; '.join(broken)}", style="red", soft_wrap=True)


def say_where(report: Path | None, err: bool = False) -> None:
    """Where the page is, or what is missing for it; on stderr where stdout holds JSON."""
    from topicweave.report.page import EXTRA

    if report is None:
        typer.echo(f"no report: it needs plotly; install it with: pip install '{EXTRA}'", err=err)
    else:
        typer.echo(f"report: {report}", err=err)
