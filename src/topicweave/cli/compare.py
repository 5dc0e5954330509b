"""`topicweave compare`: all systems on your own workload."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topicweave.cli.options import Format, Seed, Workers

if TYPE_CHECKING:
    from topicweave.report import Comparison


def compare(
    workload_dir: Annotated[
        Path,
        typer.Argument(metavar="WORKLOAD_DIR", help="A workload's folder: at least subscriptions.parquet."),
    ],
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
    seed: Seed = 0,
    events: Annotated[
        int, typer.Option(min=0, metavar="N", help="How many events to publish; 0 looks at links only.")
    ] = 200,
    membership: Annotated[
        str,
        typer.Option(
            metavar="full|5%|gossip", help="Whom a node knows of: everybody, a random share, or by gossip."
        ),
    ] = "full",
    settle: Annotated[
        float | None,
        typer.Option(
            min=0.0, metavar="SECONDS", help="Virtual time before events start; by default 20, by gossip 40."
        ),
    ] = None,
    workers: Workers = None,
) -> None:
    """Compare systems on a workload: links, reach, noise, hops, latency, control traffic.

    Every system gets the same workload and the same events in the simulator. Finished results are kept in DIR/runs:
    a comparison that was stopped goes on where it was, and one that was run before is there at once. Writes
    DIR/compare.json and DIR/report.html.

    \b
    Examples:
      topicweave compare workloads/stocks
      topicweave compare workloads/stocks --systems spidercast:k_greedy=2,spidercast:k_greedy=4,random
      topicweave compare workloads/stocks --format json | jq '.systems[].measures.hit_ratio'

    \b
    JSON (on stdout with --format json, and in DIR/compare.json):
      {"version": "…", "workload": {"name", "folder", "nodes", "topics", "subscriptions", …},
       "seed": 0, "events": 200, "membership": "full", "settle": 20.0,
       "systems": [{"system": "spidercast", "parameters": {"k_greedy": 2},
                    "measures": {"degree_mean": 12.1, "hit_ratio": 1.0, …}}]}
    Shares are 0 to 1, times are seconds; a measure without a value is null.
    """
    from topicweave.cli.comparing import Request, carry_out, write_results
    from topicweave.cli.output import print_json
    from topicweave.cli.variants import parse_variants

    request = Request(workload_dir, parse_variants(systems or []), seed, events, membership, settle)
    comparison = carry_out(request, out, workers)
    report = write_results(comparison, out)
    if format == "json":
        print_json(comparison.to_json())
    else:
        print_comparison(comparison)
    say_where(report, err=format == "json")


def print_comparison(comparison: Comparison) -> None:
    """The table, in as few pieces as the terminal's width allows."""
    from topicweave.cli.output import console, show
    from topicweave.cli.tables import LEGEND, comparison_tables

    out = console()
    for table in comparison_tables(comparison, out.width if out.is_terminal else None):
        show(table)
    out.print(LEGEND, style="dim", soft_wrap=True)


def say_where(report: Path | None, err: bool = False) -> None:
    """Where the page is, or what is missing for it; on stderr where stdout holds JSON."""
    from topicweave.report.page import EXTRA

    if report is None:
        typer.echo(f"no report: it needs plotly; install it with: pip install '{EXTRA}'", err=err)
    else:
        typer.echo(f"report: {report}", err=err)
