"""Advise: which system to take, for your subscriptions and within your bounds."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, Unpack

from topicweave.choose.channel import Note
from topicweave.choose.comparing import compare
from topicweave.choose.question import Options, Question, checked, refuse_unmeasured
from topicweave.choose.sources import SubscriptionSource
from topicweave.errors import UnknownName
from topicweave.report.advice import PREFERENCES, Advice, weigh
from topicweave.runs.runner import Progress
from topicweave.systems.registry import SYSTEMS

Preference = Literal["links", "latency", "control", "noise", "hops", "repair", "memory"]


def advise(
    subscriptions: SubscriptionSource,
    *,
    prefer: Preference = "links",
    systems: Iterable[str] | None = None,
    out: str | Path | None = None,
    runs: str | Path | None = None,
    workers: int | None = None,
    spark: Any = None,
    progress: Progress | None = None,
    note: Note | None = None,
    **options: Unpack[Options],
) -> Advice:
    """Name the system, and its parameters, that fits your subscriptions and bounds; with the evidence.

    Runs every system, each with the settings that matter, as `compare` does (the arguments are the same), and takes the
    one that is best in what you prefer among those that keep to every bound with every seed. Unless told
    otherwise, every expected delivery has to be made (`min_hit` is 1), and there are two seeds.

    >>> lists = {"ann": ["news", "go"], "bob": ["news"], "eve": ["go", "news"]}
    >>> advice = advise(lists, systems=["spidercast", "broker"], max_degree=20, events=10, out=folder, workers=1)
    >>> advice.chosen.system in ("spidercast", "broker")
    True
    >>> print(advice.node_toml.splitlines()[0])
    system = "broker"
    """
    if prefer not in PREFERENCES:
        raise UnknownName("preference", str(prefer), [*PREFERENCES])
    asked = checked({"seeds": 2, "min_hit": 1.0, **options})
    measure = PREFERENCES[prefer]
    refuse_unmeasured(
        f"--prefer {prefer}",
        measure,
        asked.get("events", Question.events),
        asked.get("crash", Question.crash),
    )
    comparison = compare(
        subscriptions,
        systems=worth_trying(asked.get("max_degree")) if systems is None else systems,
        out=out,
        runs=runs,
        workers=workers,
        spark=spark,
        progress=progress,
        note=note,
        **asked,
    )
    return weigh(comparison, measure, prefer)


def worth_trying(max_degree: float | None = None) -> list[str]:
    """Every system as it comes, with the settings that its makers say matter, and held to a bound on links,
    if it can be.
    """
    tried = []
    for name, system in SYSTEMS.items():
        variants = [{}, *system.tuning]
        if max_degree is not None and system.hard_bound is not None:
            parameter, least = system.hard_bound
            variants += [{parameter: int(max_degree)}] if max_degree >= least else []
        tried += [
            ":".join([name, *(f"{parameter}={value}" for parameter, value in variant.items())])
            for variant in variants
        ]
    return tried
