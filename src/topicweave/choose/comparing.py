"""Compare systems: the same workload and the same events for each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from topicweave.choose.channel import Channel, Note
from topicweave.choose.facts import facts
from topicweave.choose.planning import PILOT_NODES, WORTH_A_PILOT, plan, time_pilots
from topicweave.choose.question import Options, Question, ask
from topicweave.choose.running import Engine, carry_out, run_for, store
from topicweave.choose.sources import Named, Source, named_workload
from topicweave.choose.variants import parse_variants
from topicweave.data.sampling import random_nodes
from topicweave.data.tables import refuse_pointless
from topicweave.model.workload import Workload
from topicweave.report.comparison import Comparison, Entry, Setting
from topicweave.report.files import make_folder
from topicweave.runs.background import interruptible
from topicweave.runs.runner import Progress
from topicweave.runs.store import beside
from topicweave.runs.trial import planned_churn
from topicweave.sim.latency_choice import parse_latency
from topicweave.systems.registry import SYSTEMS

OUT = Path("out/compare")


def compare(
    subscriptions: Source,
    *,
    systems: Iterable[str] | None = None,
    out: str | Path = OUT,
    runs: str | Path | None = None,
    workers: int | None = None,
    spark: Any = None,
    progress: Progress | None = None,
    note: Note | None = None,
    **options: Unpack[Options],
) -> Comparison:
    """Compare systems on your subscriptions, in the simulator.

    subscriptions   a file or folder, a `Workload`, a pandas or Arrow table of (node, topic), or {node: [topics]}
    systems         names, with parameters as in 'spidercast:k_greedy=2'; all systems if not given
    out             where the workload is kept
    runs            where finished runs are kept: what was run there before is not run again; `runs` beside `out` if not given
    workers         processes at a time; as many as cores if not given
    spark           a Spark session to run on instead
    progress        called with (finished, of how many, what was finished last)
    note            called with each sentence that you should know; `Comparison.notes` keeps them
    options         see `topicweave.choose.question.Options`

    A Ctrl-C (in a notebook: stop) ends it; the same call goes on where it was.

    >>> lists = {"ann": ["news", "go"], "bob": ["news"], "eve": ["go", "news"]}
    >>> result = compare(lists, systems=["spidercast"], seeds=1, events=10, out=folder, workers=1)
    >>> result["spidercast"].measure("hit_ratio")
    1.0
    """
    channel = Channel(progress, note)
    question = ask(parse_variants(systems or []), options)
    if not systems:
        for reason in SYSTEMS.broken.values():
            channel.note(reason)
    subject = named_workload(subscriptions, Path(out), channel.note, question.reading)
    kept = Path(runs) if runs is not None else beside(Path(out))
    return answer(question, subject, Path(out), kept, Engine.of(workers, spark), channel)


def answer(
    question: Question, subject: Named, out: Path, kept: Path, engine: Engine, channel: Channel
) -> Comparison:
    """Run what was not run before; `kept` is the folder of results."""
    whole = subject.workload
    refuse_pointless(subject.source, whole)
    _refuse_early(question, whole)
    make_folder(out)
    make_folder(kept)
    question, cuts = _within_budget(question, whole, out, engine, channel)
    workload = random_nodes(whole, question.nodes or whole.nodes, question.seed)
    stored = store(workload, out)
    if workload.churn.size and not question.churn:
        channel.note("this workload has joins and leaves; they are left out without --churn trace")
    runs = {
        (place, seed): run_for(question, variant, stored, seed)
        for place, variant in enumerate(question.variants)
        for seed in question.all_seeds
    }
    results = carry_out(runs, kept, engine, channel)
    return Comparison(
        workload={"name": subject.name, "source": subject.source}
        | facts(workload)
        | {"fingerprint": stored.fingerprint},
        setting=Setting(
            seeds=question.all_seeds,
            events=question.events,
            membership=question.membership,
            settle=question.settle,
            latency=question.latency,
            churn=question.churn,
            crash=question.crash,
        ),
        entries=tuple(
            Entry(
                variant.system,
                variant.parameters,
                variant.settings,
                tuple(results[place, seed] for seed in question.all_seeds),
            )
            for place, variant in enumerate(question.variants)
        ),
        command=question.command(subject.source),
        cuts=cuts,
        constraints=tuple(question.constraints),
        notes=tuple(channel.notes),
    )


def _refuse_early(question: Question, workload: Workload) -> None:
    """A mistake should not wait for the first run."""
    parse_latency(question.latency, workload, question.seed)
    planned_churn(question.churn, workload, 0.0, question.seed)


def _within_budget(
    question: Question, workload: Workload, out: Path, engine: Engine, channel: Channel
) -> tuple[Question, tuple[str, ...]]:
    """The question with as many nodes and seeds as the budget allows, and what that leaves out."""
    wanted = min(question.nodes or workload.nodes, workload.nodes)
    if question.budget is None or wanted <= WORTH_A_PILOT:
        return question, ()
    stored = store(random_nodes(workload, PILOT_NODES, question.seed), out)
    pilots = [run_for(question, variant, stored, question.seed) for variant in question.variants]
    channel.note(f"a pilot with {PILOT_NODES} nodes, to see what fits into the budget …")
    seconds = interruptible(partial(time_pilots, pilots, engine.workers))
    chosen = plan(seconds, wanted, question.seeds, question.budget, engine.at_once)
    cuts = []
    if chosen.nodes < wanted:
        cuts.append(f"a random sample of {chosen.nodes:,} of the {wanted:,} nodes, with all their topics")
    if chosen.seeds < question.seeds:
        cuts.append(f"{chosen.seeds} of {question.seeds} seeds")
    for cut in cuts:
        channel.note(f"to keep within the budget: {cut} (see --budget, --nodes, --seeds)")
    return replace(question, nodes=chosen.nodes, seeds=chosen.seeds, budget=None), tuple(cuts)
