"""Carry out a comparison: the same workload and the same events for every system."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import typer

from topicweave.blocks.membership import Membership
from topicweave.cli.background import interruptible
from topicweave.cli.output import json_text, make_folder, write_whole
from topicweave.cli.planning import PILOT_NODES, WORTH_A_PILOT, plan, time_pilots
from topicweave.cli.progress import progress
from topicweave.cli.subject import load_subject
from topicweave.cli.variants import Variant
from topicweave.model.workload import Workload
from topicweave.report import Comparison, Entry, Setting
from topicweave.report.constraints import Constraint
from topicweave.runs import Experiment, run_all
from topicweave.runs.experiment import StoredWorkload
from topicweave.runs.trial import Trial, planned_churn
from topicweave.sim.latency_choice import parse_latency
from topicweave.systems.registry import find_system
from topicweave.systems.system import System
from topicweave.workloads.sampling import random_nodes

BY_GOSSIP = 2.0
"""So much longer it takes to settle where nodes must first hear of each other."""
LEAST_REPAIR = 20
"""Seconds that a system is watched after the crash; a slow one, that takes its time to settle, for longer."""


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    subject: Path
    variants: Sequence[Variant]
    seed: int = 0
    seeds: int = 3
    events: int = 200
    membership: str = "full"
    settle: float | None = None
    latency: str = "50ms"
    churn: str = ""
    crash: float = 0.1
    nodes: int | None = None
    """Of a larger workload, a random sample of so many."""
    budget: float | None = None
    """Seconds; None runs everything that was asked for."""
    constraints: Sequence[Constraint] = ()
    """What systems are held to; they are run all the same."""

    def settled_after(self, system: System) -> float:
        """Virtual seconds: what the user says, else the system's own time."""
        if self.settle is not None:
            return self.settle
        by_gossip = Membership.parse(self.membership).share is None
        return system.settles_within * (BY_GOSSIP if by_gossip else 1.0)


@dataclass(frozen=True)
class Engine:
    """What carries the runs out: Spark where a master is named, else processes of this machine."""

    workers: int | None = None
    master: str | None = None
    conf: Sequence[str] = ()
    verbose: bool = False

    @property
    def at_once(self) -> int:
        return self.workers or os.cpu_count() or 1


def carry_out(request: Request, out: Path, engine: Engine) -> Comparison:
    """Run what was not run before; results are kept in `out`/runs."""
    whole = load_subject(request.subject, out)
    # A mistake should not wait for the first run.
    parse_latency(request.latency, whole, request.seed)
    planned_churn(Trial(churn=request.churn), whole, 0.0, request.seed)
    make_folder(out / "runs")
    request, cuts = _within_budget(request, whole, out, engine)
    workload = random_nodes(whole, request.nodes or whole.nodes, request.seed)
    stored = _store(workload, out)
    _note_late_churn(request, workload)
    experiments = {
        (place, seed): _experiment(request, variant, stored, seed)
        for place, variant in enumerate(request.variants)
        for seed in _seeds(request)
    }
    results = _run(experiments, out, engine)
    return Comparison(
        workload={"name": request.subject.name or str(request.subject), "source": str(request.subject)}
        | facts(workload)
        | {"fingerprint": stored.fingerprint},
        setting=Setting(
            seeds=_seeds(request),
            events=request.events,
            membership=request.membership,
            settle=request.settle,
            latency=request.latency,
            churn=request.churn,
            crash=request.crash,
        ),
        entries=tuple(
            Entry(
                variant.system,
                variant.parameters,
                variant.settings,
                tuple(results[place, seed] for seed in _seeds(request)),
            )
            for place, variant in enumerate(request.variants)
        ),
        command=command(request),
        cuts=cuts,
    )


def _seeds(request: Request) -> tuple[int, ...]:
    return tuple(range(request.seed, request.seed + request.seeds))


def _experiment(request: Request, variant: Variant, stored: StoredWorkload, seed: int) -> Experiment:
    settle = request.settled_after(find_system(variant.system))
    repair = max(LEAST_REPAIR, round(settle / 2))
    return Experiment(
        system=variant.system,
        parameters=variant.changes,
        workload=stored,
        membership=request.membership,
        seed=seed,
        settle=settle,
        events=request.events,
        trial=Trial(latency=request.latency, churn=request.churn, crash=request.crash, repair_seconds=repair),
    )


def _store(workload: Workload, out: Path) -> StoredWorkload:
    """Where runs find the workload, on whatever machine: under a name that says what is in it."""
    name = fingerprint(workload)
    folder = out / "workloads" / name[:16]
    if not (folder / "subscriptions.parquet").exists():
        workload.save(folder, overwrite=True)
    return StoredWorkload(str(folder.absolute()), name)


def _run(
    experiments: Mapping[tuple[int, int], Experiment], out: Path, engine: Engine
) -> dict[tuple[int, int], dict[str, Any]]:
    with progress("comparing") as report:

        def finished(done: int, total: int, what: str) -> None:
            system, _, _ = what.partition(",")  # What follows is the workload: the same for all.
            report(done, total, system)

        if engine.master is None:
            return interruptible(lambda: run_all(experiments, out / "runs", engine.workers, finished))
        from topicweave.cli.spark import spark_for
        from topicweave.pipeline.sweep import run_all_on_spark

        with spark_for("compare", engine.master, engine.conf, engine.verbose) as spark:
            return run_all_on_spark(spark, dict(experiments), out / "runs", finished)


def _within_budget(
    request: Request, workload: Workload, out: Path, engine: Engine
) -> tuple[Request, tuple[str, ...]]:
    """The request with as many nodes and seeds as the budget allows, and what that leaves out."""
    wanted = min(request.nodes or workload.nodes, workload.nodes)
    if request.budget is None or wanted <= WORTH_A_PILOT:
        return request, ()
    stored = _store(random_nodes(workload, PILOT_NODES, request.seed), out)
    pilots = [_experiment(request, variant, stored, request.seed) for variant in request.variants]
    typer.echo(f"a pilot with {PILOT_NODES} nodes, to see what fits into the budget …", err=True)
    seconds = interruptible(partial(time_pilots, pilots, engine.workers))
    chosen = plan(seconds, wanted, request.seeds, request.budget, engine.at_once)
    cuts = []
    if chosen.nodes < wanted:
        cuts.append(f"a random sample of {chosen.nodes:,} of the {wanted:,} nodes, with all their topics")
    if chosen.seeds < request.seeds:
        cuts.append(f"{chosen.seeds} of {request.seeds} seeds")
    for cut in cuts:
        typer.echo(f"to keep within the budget: {cut} (see --budget, --nodes, --seeds)", err=True)
    return replace(request, nodes=chosen.nodes, seeds=chosen.seeds, budget=None), tuple(cuts)


def _note_late_churn(request: Request, workload: Workload) -> None:
    if workload.churn.size and not request.churn:
        typer.echo(
            "note: this workload has joins and leaves; they are left out without --churn trace", err=True
        )


def write_results(comparison: Comparison, out: Path, constraints: Sequence[Constraint] = ()) -> Path | None:
    """compare.json always, and the page if it can be drawn: its path, else None."""
    from topicweave.report.page import PlotlyMissing, comparison_page

    write_whole(out / "compare.json", json_text(comparison.to_json()))
    try:
        page = comparison_page(comparison, constraints)
    except PlotlyMissing:
        return None
    write_whole(out / "report.html", page)
    return out / "report.html"


def facts(workload: Workload) -> dict[str, Any]:
    """What a workload is like, in numbers."""
    sizes = np.diff(workload.offsets)
    audiences = np.bincount(workload.topic_index, minlength=workload.topics)
    return {
        "nodes": workload.nodes,
        "topics": workload.topics,
        "subscriptions": int(workload.topic_index.size),
        "topics_per_node": float(sizes.mean()) if workload.nodes else 0.0,
        "topics_per_node_min": int(sizes.min(initial=workload.topics)),
        "topics_per_node_max": int(sizes.max(initial=0)),
        "subscribers_per_topic": float(audiences.mean()) if workload.topics else 0.0,
        "subscribers_per_topic_max": int(audiences.max(initial=0)),
        "lonely_topics": int((audiences == 1).sum()),
        "changes": int(workload.churn.size),
        "list_sizes": _histogram(sizes),
        "audiences": _histogram(audiences[audiences > 0]),
    }


def _histogram(counts: Any) -> list[list[int]]:
    """(value, how often), by value."""
    values, times = np.unique(counts, return_counts=True)
    return [[int(value), int(time)] for value, time in zip(values, times, strict=True)]


def fingerprint(workload: Workload) -> str:
    """Names a workload's contents, however its tables are cut into files."""
    digest = hashlib.sha1(usedforsecurity=False)
    digest.update(msgspec.json.encode([workload.node_names, workload.topic_names]))
    for array in (workload.offsets, workload.topic_index, workload.rates, workload.churn, workload.hosts):
        digest.update(b"none" if array is None else array.tobytes())
    return digest.hexdigest()


def command(request: Request) -> str:
    """What to type to get the same results; where they go and how fast is not part of it."""
    systems = ",".join(
        ":".join([variant.system, *(f"{name}={value}" for name, value in variant.parameters.items())])
        for variant in request.variants
    )
    words = ["topicweave", "compare", str(request.subject), "--systems", systems]
    words += ["--seed", str(request.seed), "--seeds", str(request.seeds), "--events", str(request.events)]
    words += ["--membership", request.membership]
    if request.settle is not None:
        words += ["--settle", f"{request.settle:g}"]
    words += ["--latency", request.latency, "--crash", f"{request.crash:g}"]
    if request.churn:
        words += ["--churn", request.churn]
    if request.nodes is not None:
        words += ["--nodes", str(request.nodes)]
    for constraint in request.constraints:
        words += constraint.option.split()
    return shlex.join([*words, "--budget", "none"])
