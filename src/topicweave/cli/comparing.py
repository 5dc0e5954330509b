"""Carry out a comparison: the same workload and the same events for every system."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import typer

from topicweave.blocks.membership import Membership
from topicweave.cli.background import interruptible
from topicweave.cli.output import json_text, make_folder, write_whole
from topicweave.cli.progress import progress
from topicweave.cli.variants import Variant
from topicweave.experiments import Experiment, run_all
from topicweave.experiments.experiment import StoredWorkload
from topicweave.model.workload import Workload
from topicweave.report import Comparison, Entry

DEFAULT_EVENTS = 200
SETTLE, SETTLE_BY_GOSSIP = 20.0, 40.0
"""Virtual seconds until overlays have settled; where nodes must first hear of each other, it takes longer."""


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    folder: Path
    variants: Sequence[Variant]
    seed: int = 0
    events: int = DEFAULT_EVENTS
    membership: str = "full"
    settle: float | None = None

    @property
    def settled_after(self) -> float:
        if self.settle is not None:
            return self.settle
        return SETTLE_BY_GOSSIP if Membership.parse(self.membership).share is None else SETTLE


def carry_out(request: Request, out: Path, workers: int | None) -> Comparison:
    """Run what was not run before; results are kept in `out`/runs."""
    workload = Workload.load(request.folder)
    stored = StoredWorkload(str(request.folder), fingerprint(workload))
    experiments = {
        place: Experiment(
            system=variant.system,
            parameters=variant.changes,
            workload=stored,
            membership=request.membership,
            seed=request.seed,
            settle=request.settled_after,
            events=request.events,
            histogram=True,
        )
        for place, variant in enumerate(request.variants)
    }
    if workload.churn.size and workload.churn["time"][-1] > request.settled_after:
        typer.echo(
            f"note: nodes come and go until {workload.churn['time'][-1]:g} s, but the overlay is looked at after "
            f"{request.settled_after:g} s of virtual time; see --settle",
            err=True,
        )
    make_folder(out / "runs")
    with progress("comparing") as report:

        def finished(done: int, total: int, what: str) -> None:
            system, _, _ = what.partition(",")  # What follows is the folder: the same for all.
            report(done, total, system)

        results = interruptible(lambda: run_all(experiments, out / "runs", workers, finished))
    return Comparison(
        workload={
            "name": request.folder.name or str(request.folder),
            "folder": str(request.folder),
            **facts(workload),
            "fingerprint": stored.fingerprint,
        },
        seed=request.seed,
        events=request.events,
        membership=request.membership,
        settle=request.settled_after,
        entries=tuple(
            Entry(variant.system, variant.parameters, variant.settings, results[place])
            for place, variant in enumerate(request.variants)
        ),
        command=command(request),
    )


def write_results(comparison: Comparison, out: Path) -> Path | None:
    """compare.json always, and the page if it can be drawn: its path, else None."""
    from topicweave.report.page import PlotlyMissing, comparison_page

    write_whole(out / "compare.json", json_text(comparison.to_json()))
    try:
        page = comparison_page(comparison)
    except PlotlyMissing:
        return None
    write_whole(out / "report.html", page)
    return out / "report.html"


def facts(workload: Workload) -> dict[str, Any]:
    """What a workload is like, in numbers."""
    sizes = np.diff(workload.offsets)
    return {
        "nodes": workload.nodes,
        "topics": workload.topics,
        "subscriptions": int(workload.topic_index.size),
        "topics_per_node": float(sizes.mean()) if workload.nodes else 0.0,
        "topics_per_node_min": int(sizes.min(initial=workload.topics)),
        "topics_per_node_max": int(sizes.max(initial=0)),
        "changes": int(workload.churn.size),
    }


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
    words = ["topicweave", "compare", str(request.folder), "--systems", systems]
    words += ["--seed", str(request.seed), "--events", str(request.events)]
    words += ["--membership", request.membership, "--settle", f"{request.settled_after:g}"]
    return shlex.join(words)
