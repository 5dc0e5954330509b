"""`topicweave advise`: which system to take, for your subscriptions and under your constraints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from topicweave.cli import trying
from topicweave.cli.options import Format
from topicweave.cli.spark import Conf, Verbose

if TYPE_CHECKING:
    from topicweave.report.advice import Advice
    from topicweave.report.comparison import Comparison, Entry

PREFERENCES = {
    "links": "degree_mean",
    "latency": "latency_p95",
    "control": "control_bytes",
    "noise": "noise",
    "hops": "hops_mean",
    "repair": "repair_time",
    "memory": "memory_bytes",
}


def advise(
    subscriptions: trying.Subject,
    max_degree: Annotated[
        float | None, typer.Option(min=0, metavar="N", help="No node may have more links.")
    ] = None,
    max_noise: Annotated[
        float | None,
        typer.Option(min=0, max=1, metavar="SHARE", help="At most this share of received events unwanted."),
    ] = None,
    no_relays: Annotated[
        bool, typer.Option("--no-relays", help="No event may pass through a node that does not want it.")
    ] = False,
    min_hit: Annotated[
        float, typer.Option(min=0, max=1, metavar="SHARE", help="At least this share of deliveries made.")
    ] = 1.0,
    max_latency: Annotated[
        float | None, typer.Option(min=0, metavar="MS", help="95 % of the deliveries within so many ms.")
    ] = None,
    max_hops: Annotated[
        float | None, typer.Option(min=0, metavar="N", help="No event over more links.")
    ] = None,
    max_control: Annotated[
        float | None, typer.Option(min=0, metavar="B/S", help="Bytes of control per node and second.")
    ] = None,
    max_repair: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="All served again so soon after the crash.")
    ] = None,
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
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where results and node.toml go.")] = Path(
        "out/advise"
    ),
    format: Format = "table",  # noqa: A002
    seeds: trying.Seeds = 2,
    seed: trying.FirstSeed = 0,
    events: trying.Events = 200,
    membership: trying.MembershipOption = "full",
    settle: trying.Settle = None,
    latency: trying.LatencyOption = "50ms",
    churn: trying.ChurnOption = "",
    crash: trying.Crash = 0.1,
    nodes: trying.Nodes = None,
    budget: trying.Budget = "10m",
    workers: trying.WorkersOption = None,
    master: trying.MasterOption = None,
    conf: Conf = None,
    verbose: Verbose = False,
) -> None:
    """Name the system, and its parameters, that fits your subscriptions and constraints; with the evidence.

    Runs all systems, each with the settings that matter, as `topicweave compare` does, and takes the best of those that keep to every
    constraint with every seed. Writes DIR/node.toml, ready for `topicweave node --config`. If none fits, says which
    constraint binds, and by how much; the exit code is then 1.

    \b
    Examples:
      topicweave advise my.csv --max-degree 20 --max-noise 0.05
      topicweave advise my.csv --no-relays --max-latency 400 --prefer control

    \b
    JSON: {"system": "spidercast", "parameters": {"k_greedy": 2}, "fitting": ["…"], "given_up": ["…"],
           "nearest": null, "binding": [], "constraints": ["--max-degree 20"], "comparison": {…}}
    """
    from topicweave.cli.compare import print_comparison
    from topicweave.cli.comparing import Request, carry_out, write_results
    from topicweave.cli.output import print_json
    from topicweave.cli.variants import parse_variants
    from topicweave.report.advice import advise as weigh

    constraints = trying.constraints_from(
        max_degree=max_degree,
        max_noise=max_noise,
        no_relays=no_relays,
        min_hit=min_hit,
        max_latency=max_latency,
        max_hops=max_hops,
        max_control=max_control,
        max_repair=max_repair,
    )
    request = Request(
        subscriptions,
        parse_variants(systems or worth_trying()),
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
    )
    comparison = carry_out(request, out, trying.engine_for(workers, master, conf, verbose))
    write_results(comparison, out, constraints)
    advice = weigh(comparison, constraints, PREFERENCES[prefer])
    config = _write_config(advice.chosen, out) if advice.chosen else None
    if format == "json":
        asked = [constraint.option for constraint in constraints]
        print_json({**advice.to_json(), "constraints": asked, "comparison": comparison.to_json()})
    else:
        print_comparison(comparison, constraints)
        _tell(advice, comparison, prefer, config)
    if advice.chosen is None:
        raise typer.Exit(1)


def worth_trying() -> list[str]:
    """Every system as it comes, and with the settings that its makers say matter."""
    from topicweave.systems.registry import SYSTEMS

    tried = []
    for name, system in SYSTEMS.items():
        tried.append(name)
        tried += [
            ":".join([name, *(f"{parameter}={value}" for parameter, value in variant.items())])
            for variant in system.tuning
        ]
    return tried


def _tell(advice: Advice, comparison: Comparison, prefer: str, config: Path | None) -> None:
    typer.echo()
    if advice.chosen is None:
        typer.echo("No system keeps to all of that on these subscriptions.")
        for line in advice.binding:
            typer.echo(f"  {line}")
        return
    of = len(comparison.entries)
    typer.echo(
        f"Take {advice.chosen.label}: of the {len(advice.fitting)} (of {of}) that keep to all constraints with every seed, "
        f"it is best in {prefer}."
    )
    if advice.given_up:
        typer.echo("What that gives up, against others that fit:")
        for line in advice.given_up:
            typer.echo(f"  {line}")
    typer.echo(
        f"Run it: topicweave node --config {config} --listen 127.0.0.1:7000 --insecure --subscribe TOPIC"
    )


def _write_config(chosen: Entry, out: Path) -> Path:
    from topicweave.cli.output import write_whole

    lines = [f'system = "{chosen.system}"']
    groups: dict[str, list[str]] = {"": []}
    for name, value in chosen.parameters.items():
        *group, last = name.split(".")
        text = f'"{value}"' if isinstance(value, str) else str(value).lower()
        groups.setdefault(".".join(group), []).append(f"{last} = {text}")
    for name, settings in groups.items():
        if settings:
            lines += ["", f"[parameters.{name}]" if name else "[parameters]", *settings]
    path = out / "node.toml"
    write_whole(path, "\n".join(lines) + "\n")
    return path
