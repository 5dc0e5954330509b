"""Compare systems: the same workload and the same events for each."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from topicweave.choose.budget import Budget
from topicweave.choose.channel import Channel, Note
from topicweave.choose.facts import facts, in_short, told_sample
from topicweave.choose.large import read_on_executors
from topicweave.choose.places import RUNS, own_folder
from topicweave.choose.question import Options, Question, ask
from topicweave.choose.running import Engine, carry_out, run_for, store
from topicweave.choose.sources import Named, SubscriptionSource, named_workload
from topicweave.choose.surroundings import own_churn, own_latency, stored_latency
from topicweave.data.sampling import neighbourhood
from topicweave.data.tables import refuse_pointless
from topicweave.errors import BadInput
from topicweave.model.workload import Workload
from topicweave.report.comparison import Comparison, Entry, Setting
from topicweave.report.files import make_folder
from topicweave.runs.runner import Progress
from topicweave.runs.store import ResultStore, beside
from topicweave.runs.trial import planned_churn
from topicweave.sim.latency import Constant
from topicweave.sim.latency_choice import parse_latency
from topicweave.systems.registry import SYSTEMS

ENOUGH_DELIVERIES = 300
"""With fewer deliveries than this, a share of 1 cannot be told from one of 0.99."""


def compare(
    subscriptions: SubscriptionSource,
    *,
    systems: Iterable[str] | None = None,
    out: str | Path | None = None,
    runs: str | Path | None = None,
    workers: int | None = None,
    spark: Any = None,
    telemetry: str | Path | None = None,
    progress: Progress | None = None,
    note: Note | None = None,
    **options: Unpack[Options],
) -> Comparison:
    """Compare systems on your subscriptions, in the simulator.

    subscriptions   a file or folder, a `Workload`, a pandas or Arrow table of (node, topic), or {node: [topics]}
    systems         names, with parameters as in 'spidercast:k_greedy=2', in a list or between commas; all systems if
                    not given
    out             where the workload is kept: a folder in `out/compare` named after the subscriptions if not given
    runs            where finished runs are kept, so that they are not run again; `out/runs` if not given, or `runs`
                    beside `out`
    workers         processes at a time; as many as cores if not given
    spark           a Spark session to run on instead
    telemetry       a folder where the runs also leave what happened in them, for `topicweave measure` and `stream`
    progress        called with (finished, of how many, what was finished last)
    note            called with each sentence that you should know; `Comparison.notes` keeps them
    options         see `topicweave.choose.question.Options`

    Ctrl-C (in a notebook: stop) ends the call. The same call continues where it stopped.

    >>> lists = {"ann": ["news", "go"], "bob": ["news"], "eve": ["go", "news"]}
    >>> result = compare(lists, systems=["spidercast"], seeds=1, events=10, out=folder, workers=1)
    >>> result["spidercast"].measure("hit_ratio")
    1.0
    """
    began = time.perf_counter()
    channel = Channel(progress, note)
    question = ask(systems or [], options)
    if not systems:
        for reason in SYSTEMS.broken.values():
            channel.note(reason)
    place = None if out is None else Path(out)
    kept = Path(runs) if runs is not None else RUNS if place is None else beside(place)
    recorded = None if telemetry is None else Path(telemetry)
    with Engine(workers, spark, recorded) as engine:
        if isinstance(subscriptions, str | Path) and spark is not None:
            place = own_folder("compare", subscriptions) if place is None else place
            subscriptions = read_on_executors(Path(subscriptions), place, engine, question.seed, channel.note)
        subject = named_workload(subscriptions, place, channel.note, question.reading)
        found = answer(question, subject, kept, engine, channel, began)
        if recorded is not None:
            from topicweave.pipeline.sweep import write_about_recorded

            source = {subject.source: found.workload["fingerprint"]}
            write_about_recorded(recorded, "compare --telemetry", source)
    return found


def answer(
    question: Question, subject: Named, kept: Path, engine: Engine, channel: Channel, began: float
) -> Comparison:
    """Run what was not run before; `kept` is the folder of results, `began` when the budget's clock started."""
    out = subject.out
    refuse_pointless(subject.source, subject.workload)
    asked = question
    question, whole = _surrounded(question, subject.workload, out, channel.note)
    make_folder(out)
    make_folder(kept)
    budget = Budget(question, whole, out, ResultStore(kept), engine, channel, began)
    workload = neighbourhood(whole, budget.nodes, question.seed)
    if workload is not whole:
        channel.note(told_sample(whole, workload))
    if workload.churn.size and not question.churn:
        channel.note("this workload has joins and leaves; they are left out without --churn trace")
    stored = store(workload, out)
    runs = {
        (place, seed): run_for(question, variant, stored, seed)
        for seed in question.all_seeds[: budget.seeds]
        for place, variant in enumerate(question.variants)
    }
    results = carry_out(runs, kept, engine, channel)
    places = budget.close(results)
    question = replace(
        question,
        variants=[question.variants[place] for place in places],
        nodes=budget.nodes if workload is not whole else None,
        seeds=budget.seeds,
    )
    measured = [tuple(results[place, seed] for seed in question.all_seeds) for place in places]
    _warn_of_few(measured, question, channel)
    about = {"name": subject.name, "source": subject.source} | facts(workload)
    if workload is not whole:
        about["sampled_from"] = in_short(whole)
    return Comparison(
        workload=about | {"fingerprint": stored.fingerprint},
        setting=Setting(
            seeds=question.all_seeds,
            events=question.events,
            preset=question.preset,
            membership=question.membership,
            settle=question.settle,
            latency=asked.latency,
            loss=question.loss,
            churn=asked.churn,
            crash=question.crash,
        ),
        entries=tuple(
            Entry(variant.system, variant.parameters, variant.settings, by_seed)
            for variant, by_seed in zip(question.variants, measured, strict=True)
        ),
        command=replace(question, latency=asked.latency, churn=asked.churn).command(subject.source),
        cuts=tuple(budget.cuts),
        constraints=tuple(question.constraints),
        notes=tuple(channel.notes),
    )


def _warn_of_few(
    measured: Sequence[Sequence[Mapping[str, Any]]], question: Question, channel: Channel
) -> None:
    """A share of a few deliveries tells nothing: with 24, 86 % and 100 % are not told apart."""
    if not question.events:
        return
    counts = [sum(result.get("deliveries_expected", 0) for result in by_seed) for by_seed in measured]
    if min(counts) == 0:
        channel.note("no event had anybody to reach: no topic with an event has two subscribers that are up")
    elif min(counts) < ENOUGH_DELIVERIES:
        channel.note(
            f"each hit ratio rests on {min(counts):,.0f} deliveries only: too few to tell systems apart; "
            "publish more (--events), or take more nodes"
        )


def _surrounded(question: Question, workload: Workload, out: Path, note: Note) -> tuple[Question, Workload]:
    """With latency and churn of the user's own in the form that runs take. A mistake should not wait for the
    first run.
    """
    churn, workload = own_churn(question.churn, question.churn_speed, workload, question.seed, note)
    network = own_latency(question.latency, question.latency_unit, workload, note)
    latency = question.latency if network is None else stored_latency(network, out / "latency")
    question = replace(question, latency=latency, churn=churn)
    _refuse_early(question, workload)
    return question, workload


def _refuse_early(question: Question, workload: Workload) -> None:
    """A mistake should not wait for the first run."""
    latency = parse_latency(question.latency, workload, question.seed)
    least = latency.seconds if isinstance(latency, Constant) else getattr(latency, "low", 0.0)
    for constraint in question.constraints:
        if constraint.measure == "latency_p95" and constraint.bound < least:
            raise BadInput(
                f"{constraint.option}: impossible; this network takes {1000 * least:g} ms or more one way "
                f"(--latency {question.latency})"
            )
    planned_churn(question.churn, workload, question.seed)
