"""In which world a study's numbers were made: how far apart nodes are, what gets lost, how they know of each other."""

from __future__ import annotations

from typing import Any

from topicweave.papers.study import Plan, Study
from topicweave.runs.run import Run
from topicweave.systems.registry import find_system

LATENCY = "50 ms one way"
"""What the simulator takes if a run says nothing."""
MEMBERSHIP = {
    "full": "every node knows all others",
    "gossip": "views by gossip",
    "directory": "views as live",
}


def physics(run: Run) -> str:
    """Latency, loss and membership of one run, in a few words; what it knows beyond that, if anything.

    >>> from topicweave.runs.overlay import SettledOverlay
    >>> from topicweave.runs.sources import GeneratedWorkload
    >>> physics(SettledOverlay(system="spidercast", workload=GeneratedWorkload(10), membership="5%"))
    '50 ms one way, no loss, views of 5% by decree'
    """
    if getattr(run, "by_arrays", False):
        return "no messages, so neither latency nor loss"
    if not hasattr(run, "system"):
        return "no network"
    return f"{_latency(run)}, {_loss(run)}, {_known(run)}"


def world_of(study: Study, plan: Plan) -> str:
    """Of all runs of a study; and what its nodes know that the paper's do not."""
    told = " / ".join(sorted({physics(run) for run in plan.runs.values()}))
    return f"{told}; an oracle: {study.oracle}" if study.oracle else told


def _latency(run: Any) -> str:
    network = getattr(run, "network", None)
    if network is None:
        given = getattr(run, "latency", "")
        return f"{given} one way" if given else LATENCY
    changing = "changing" if network.fluctuates and network.kind != "generated" else "constant"
    return f"{changing} delays of the {network.kind} network"


def _loss(run: Any) -> str:
    loss = float(getattr(run, "loss", 0.0))
    return f"{loss:.3g} of all messages lost" if loss else "no loss"


def _known(run: Any) -> str:
    """What nodes know of each other. A system with a membership of its own asks for none."""
    if said := getattr(run, "knows", ""):
        return str(said)
    if find_system(run.system).needs == "nothing":
        return "nodes find each other as the system does"
    return _membership(str(getattr(run, "membership", "full")))


def _membership(told: str) -> str:
    kind, _, size = told.partition(":")
    if kind in MEMBERSHIP:
        return MEMBERSHIP[kind] + (f" of {size}" if size else "")
    return f"views of {kind} by decree"
