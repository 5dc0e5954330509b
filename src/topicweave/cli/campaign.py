"""`topicweave campaign`: random faults from many seeds, and what must hold afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topicweave.cli.options import Format, Workers

if TYPE_CHECKING:
    from topicweave.testing import Verdict

FAILED = 1
VIOLATIONS_SHOWN = 3
RANDOM_SEEDS = 20


def campaign(
    system: Annotated[
        str, typer.Argument(metavar="SYSTEM", help="Which system; NAME:PARAMETER=VALUE sets a parameter.")
    ],
    seeds: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="How many runs; 20 if not given, 1 of a scenario from a file."),
    ] = None,
    first: Annotated[int, typer.Option(min=0, metavar="SEED", help="The first one's seed.")] = 0,
    nodes: Annotated[
        int | None,
        typer.Option(
            min=2,
            metavar="N",
            help="Nodes of each run; if not given, 30 to 100 by the seed, or what the scenario says.",
        ),
    ] = None,
    scenario: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The faults of a TOML file instead of random ones; or one of ours: partition, crash-a-tenth, "
            "slow-node, lossy-link, restart-without-memory.",
        ),
    ] = None,
    membership: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="How nodes find each other, as in compare; if not given, directory or gossip by the seed, or what the "
            "scenario says.",
        ),
    ] = None,
    format: Format = "table",  # noqa: A002
    workers: Workers = None,
) -> None:
    """Test a system under random faults. Every failure comes with the command that replays it.

    A scenario is drawn from its seed: a small workload with loss, duplication, reordering, partitions, crashes,
    restarts, churn and changes of interest; then quiet, and an event on every topic. A scenario from a file has the
    faults written there; the seed decides the workload and who is hit. The exit code is 1 if any seed failed.

    \b
    Examples:
      topicweave campaign spidercast --seeds 100
      topicweave campaign spidercast --first 17 --seeds 1
      topicweave campaign vitis --scenario partition.toml --seeds 5
      topicweave campaign omen --membership directory:20 --seeds 50

    \b
    JSON: {"system": "spidercast", "parameters": {}, "first": 0, "seeds": 100, "nodes": null,
           "scenario": null, "membership": null, "done": 100, "passed": 99, "deliveries": 51000,
           "failures": [{"seed": 17, "violations": ["…"], "replay": "topicweave campaign …"}]}
    """
    from topicweave.choose.variants import parse_variant
    from topicweave.cli.failures import debugging
    from topicweave.systems.registry import find_system
    from topicweave.testing import campaign_summary, run_campaign

    variant = parse_variant(system)
    found = find_system(variant.system)
    seeds = seeds or (RANDOM_SEEDS if scenario is None else 1)
    settings, wanted = found.settings(**variant.changes), range(first, first + seeds)
    coming = run_campaign(
        found, wanted, nodes, settings, membership, scenario=scenario, workers=workers, raising=debugging()
    )
    verdicts, stopped = _collected(variant.system, coming, seeds)
    conditions = {"nodes": nodes, "scenario": scenario, "membership": membership}
    outcome = {
        "system": variant.system,
        "parameters": variant.parameters,
        "first": first,
        "seeds": seeds,
        **conditions,
        **campaign_summary(verdicts, system, conditions),
    }
    _tell(system, outcome, stopped, format)


def _tell(system: str, outcome: dict[str, Any], stopped: bool, format: str) -> None:  # noqa: A002
    """Print it, and exit with what it means."""
    from topicweave.cli.failures import INTERRUPTED, complain
    from topicweave.cli.output import print_json

    if format == "json":
        print_json(outcome)
    else:
        print_summary(system, outcome)
    if stopped:
        complain(f"stopped after {outcome['done']} of {outcome['seeds']} seeds")
        raise typer.Exit(INTERRUPTED)
    if outcome["failures"]:
        raise typer.Exit(FAILED)


def _collected(system: str, coming: Iterator[Verdict], seeds: int) -> tuple[list[Verdict], bool]:
    """Of all seeds, or of those that were done when somebody pressed Ctrl-C."""
    from topicweave.cli.progress import progress
    from topicweave.runs.background import interruptible

    verdicts: list[Verdict] = []
    with progress(system) as report:

        def work() -> None:
            report(0, seeds, "")
            for verdict in coming:
                verdicts.append(verdict)
                failed = sum(not one.passed for one in verdicts)
                what = f"seed {verdict.seed}" + (f", {failed} failed" if failed else "")
                report(len(verdicts), seeds, what)

        try:
            interruptible(work)
        except KeyboardInterrupt:
            return verdicts, True
    return verdicts, False


def print_summary(system: str, outcome: dict[str, Any]) -> None:
    for failure in outcome["failures"]:
        violations = failure["violations"]
        more = len(violations) - VIOLATIONS_SHOWN
        shown = "; ".join(violations[:VIOLATIONS_SHOWN]) + (f"; and {more} more" if more > 0 else "")
        typer.echo(f"seed {failure['seed']} failed: {shown}; replay: {failure['replay']}")
    what = "" if outcome["scenario"] is None else f" under {outcome['scenario']}"
    passed = f"{outcome['passed']} of {outcome['done']} seeds passed"
    typer.echo(f"{system}{what}: {passed}, {outcome['deliveries']:,} deliveries")
