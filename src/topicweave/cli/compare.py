"""`topicweave compare`: all systems on your own subscriptions."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from topicweave.cli import trying
from topicweave.cli.options import Format, Telemetry
from topicweave.cli.spark import Conf, Runs, Verbose


@trying.asking()
def compare(
    subscriptions: trying.Subject,
    systems: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LIST",
            help="Which systems, separated by commas; by default all. NAME:PARAMETER=VALUE sets a parameter, and "
            "one system may be named several times with different ones.",
        ),
    ] = None,
    out: trying.Out = None,
    format: Format = "table",  # noqa: A002
    *,
    question: Any,
    runs: Runs = None,
    telemetry: Telemetry = None,
    workers: trying.WorkersOption = None,
    master: trying.MasterOption = None,
    conf: Conf = None,
    verbose: Verbose = False,
) -> None:
    """Compare systems on your subscriptions: links, reach, noise, hops, latency, control traffic, repair, memory.

    The command needs nothing but your file. Every system gets the same workload, events, latency and crash in
    the simulator, with several seeds. The table shows means, and ± half of the 95 % confidence interval if it
    is large enough to see. Finished runs are kept in `runs` beside DIR, so a stopped comparison continues,
    and a finished one is shown again at once. Writes DIR/compare.json and DIR/report.html.

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
       "seeds": [0, 1, 2], "events": 200, "preset": "lan", "membership": "directory", "settle": 30.0,
       "latency": "50ms", "loss": 0.0, "churn": "", "crash": 0.1, "constraints": [], "cuts": [],
       "notes": ["…"],
       "systems": [{"system": "spidercast", "parameters": {"k_greedy": 2},
                    "measures": {"degree_mean": 12.1, "hit_ratio": 1.0, …},
                    "intervals": {"degree_mean": 0.2, …}, "replications": {"degree_mean": [12.0, …], …},
                    "breaks": []}]}
    Shares are 0 to 1, times are seconds; a measure without a value is null.
    """
    import topicweave
    from topicweave.cli.output import print_json

    out, runs = trying.places("compare", subscriptions, out, runs)
    with trying.machinery(workers, master, conf, verbose, question["budget"]) as machinery:
        comparison = topicweave.compare(
            subscriptions, systems=systems, out=out, runs=runs, telemetry=telemetry, **machinery, **question
        )
    # Printed first: a full disk does not take the answer away.
    if format == "json":
        print_json(comparison.to_json())
    else:
        trying.print_comparison(comparison)
    trying.say_where(trying.write_results(comparison, out), err=format == "json")
