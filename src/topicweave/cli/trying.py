"""Options of the commands that try systems on a user's workload, and what they have in common."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topicweave.cli.spark import LOCAL

if TYPE_CHECKING:
    from topicweave.cli.comparing import Engine
    from topicweave.report.constraints import Constraint

Subject = Annotated[
    Path,
    typer.Argument(
        metavar="SUBSCRIPTIONS",
        help="A CSV, TSV or Parquet file of (node, topic), a SNAP edge list (.txt[.gz|.xz]), a folder of OPML files, or a workload's folder.",
    ),
]
Seeds = Annotated[int, typer.Option(min=1, metavar="N", help="Replications, each with a seed of its own.")]
FirstSeed = Annotated[int, typer.Option(min=0, metavar="N", help="The first of the seeds.")]
Events = Annotated[
    int, typer.Option(min=0, metavar="N", help="How many events to publish; 0 looks at links only.")
]
MembershipOption = Annotated[
    str,
    typer.Option(
        metavar="full|5%|gossip", help="Whom a node knows of: everybody, a random share, or by gossip."
    ),
]
Settle = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        metavar="SECONDS",
        help="Virtual time before events start; by default as long as each system takes.",
    ),
]
LatencyOption = Annotated[
    str,
    typer.Option(
        metavar="LATENCY",
        help="One way: '50ms', '10-100ms', 'hosts' (by the workload's places), or a file with a matrix of RTTs in ms.",
    ),
]
ChurnOption = Annotated[
    str,
    typer.Option(
        metavar="CHURN",
        help="While events are published, nodes come and go: '600/60' (seconds up and away, on average), or 'trace' (the workload's).",
    ),
]
Crash = Annotated[
    float,
    typer.Option(
        min=0.0,
        max=0.9,
        metavar="SHARE",
        help="In the end so many nodes crash, the best connected among them; 0: none.",
    ),
]
Nodes = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Of a larger workload, a random sample of so many nodes."),
]
Budget = Annotated[
    str,
    typer.Option(
        metavar="TIME",
        help="About how long it may take: '90s', '5m', '1h', or 'none'. Says what it leaves out for that.",
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Run in so many processes of this machine instead of on Spark."),
]
MasterOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="Where Spark runs: 'local[*]' here if not given, spark://…, yarn, k8s://…"
    ),
]


def engine_for(workers: int | None, master: str | None, conf: list[str] | None, verbose: bool) -> Engine:
    """Spark, unless processes are asked for or there is no Spark here."""
    from topicweave.cli.comparing import Engine
    from topicweave.errors import BadInput

    if workers is not None and master is not None:
        raise BadInput("--workers and --master: processes of this machine, or Spark; choose one")
    if master is None and workers is None and not _spark_here():
        typer.echo("note: no Spark or no Java here; running in processes of this machine", err=True)
        return Engine(workers)
    if workers is not None:
        return Engine(workers)
    return Engine(None, master or LOCAL, tuple(conf or ()), verbose)


def _spark_here() -> bool:
    from importlib.util import find_spec

    from topicweave.pipeline.java import JavaNotFound, find_java

    try:
        return find_spec("pyspark") is not None and bool(find_java())
    except JavaNotFound:
        return False


def seconds_of(budget: str) -> float | None:
    from topicweave.cli.planning import parse_budget

    return None if budget == "none" else parse_budget(budget)


def constraints_from(
    *,
    max_degree: float | None = None,
    max_noise: float | None = None,
    no_relays: bool = False,
    min_hit: float | None = None,
    max_latency: float | None = None,
    max_hops: float | None = None,
    max_control: float | None = None,
    max_repair: float | None = None,
) -> list[Constraint]:
    """As the options say it; latency is given in milliseconds."""
    from topicweave.report.constraints import Constraint

    at_most = [
        ("degree_max", max_degree, "--max-degree", 1.0),
        ("noise", max_noise, "--max-noise", 1.0),
        ("latency_p95", max_latency, "--max-latency", 1000.0),
        ("hops_max", max_hops, "--max-hops", 1.0),
        ("control_bytes", max_control, "--max-control", 1.0),
        ("repair_time", max_repair, "--max-repair", 1.0),
    ]
    found = [
        Constraint(measure, "at most", bound / unit, f"{option} {bound:g}")
        for measure, bound, option, unit in at_most
        if bound is not None
    ]
    if no_relays:
        found.append(Constraint("relays_per_topic", "at most", 0.0, "--no-relays"))
    if min_hit is not None:
        found.append(Constraint("hit_ratio", "at least", min_hit, f"--min-hit {min_hit:g}"))
    return found
