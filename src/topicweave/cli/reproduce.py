"""`topicweave reproduce`: all studies of all papers, and the scoreboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from topicweave.cli.options import Format, Workers
from topicweave.cli.spark import Conf, Elsewhere, Runs, Verbose

if TYPE_CHECKING:
    from topicweave.papers.scoreboard import Origin, Scoreboard
    from topicweave.papers.study import Plan, Row, Study


def reproduce(
    papers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PAPER]...", help="spidercast, vitis, omen, …, or single studies; all if not given."
        ),
    ] = None,
    scale: Annotated[
        Literal["smoke", "paper"],
        typer.Option(help="Small runs to see that all works, or the papers' own sizes."),
    ] = "smoke",
    seeds: Annotated[
        int, typer.Option(min=1, metavar="N", help="Replications, each with a seed of its own.")
    ] = 1,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="The first of the seeds.")] = 0,
    format: Format = "table",  # noqa: A002
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where results and the scoreboard go.")] = Path(
        "out/studies"
    ),
    finished: Annotated[
        bool, typer.Option("--finished", help="Run nothing: judge what earlier runs have finished.")
    ] = False,
    runs: Runs = None,
    workers: Workers = None,
    master: Elsewhere = None,
    conf: Conf = None,
    verbose: Verbose = False,
) -> None:
    """Rerun all studies as one resumable sweep; write every claim of every paper beside what came out.

    Finished runs are kept (see --runs) and shared with `topicweave study run`. Stopped, the same command goes on where it was; a run that
    fails costs its own study and no other. Writes DIR/scoreboard.json and DIR/scoreboard.md. That a claim does not hold is
    a finding and no failure. `topicweave scoreboard`
    makes one page of what was run in several places or on several days.

    \b
    Examples:
      topicweave reproduce
      topicweave reproduce spidercast omen --scale paper --seeds 3
      topicweave reproduce --scale paper --master spark://cluster:7077
      topicweave reproduce --scale paper --finished

    \b
    JSON: {"scale": "smoke", "seeds": [0], "failures": {"omen/fig9": "…"},
           "origin": {"date": "…", "machine": "…", "code": "…", "version": "…"},
           "scores": [{"study": "spidercast/fig12", "where": {"nodes": 1000}, "measure": "degree_mean", "paper": 10.81,
                       "measured": 10.82, "interval": 0.03, "held": 3, "judged": 3, "holds": true, "tolerance": "…"}]}
    """
    from functools import partial

    from topicweave.cli.output import print_json
    from topicweave.cli.progress import progress
    from topicweave.cli.spark import executor_for
    from topicweave.papers import STUDIES
    from topicweave.papers.scoreboard_page import markdown
    from topicweave.report.files import json_text, make_folder, write_whole
    from topicweave.runs.background import interruptible
    from topicweave.runs.fingerprint import fingerprint_of_all
    from topicweave.runs.runner import finished_runs, run_all
    from topicweave.runs.store import beside

    chosen = choose_papers(papers or [])
    make_folder(out)
    plans = {
        (study.name, number): study.plan(scale, number)
        for study in chosen
        for number in range(seed, seed + seeds)
    }
    todo = {(*point, label): run for point, plan in plans.items() for label, run in plan.runs.items()}
    store = runs or beside(out)
    failures: dict[Any, str] = {}
    if finished:
        results = finished_runs(todo, store)
        failures = {label: "not run yet" for label in todo if label not in results}
    else:
        with (
            progress("reproducing") as report,
            executor_for("reproduce", workers, master, conf, verbose) as executor,
        ):
            work = partial(run_all, todo, store, executor, report, failures)
            results = interruptible(work) if master is None else work()
    board = _judge(plans, scale, results, failures, fingerprint_of_all(todo.values()))
    write_whole(out / "scoreboard.json", json_text(board.to_json()))
    write_whole(out / "scoreboard.md", markdown([board], STUDIES))
    if format == "json":
        print_json(board.to_json())
    else:
        _show(board)
        typer.echo(f"scoreboard: {out / 'scoreboard.md'}")


def choose_papers(names: Sequence[str]) -> list[Study]:
    """Studies of the papers named, or single ones; all but those that need live nodes, if none is named."""
    from topicweave.cli.study import choose
    from topicweave.papers import STUDIES

    papers = dict.fromkeys(name.split("/")[0] for name in STUDIES)
    if not names:
        return [study for name, study in STUDIES.items() if "/" in name]
    return choose([f"{name}/*" if name in papers and name not in STUDIES else name for name in names])


def _judge(
    plans: Mapping[tuple[str, int], Plan],
    scale: Any,
    results: Mapping[Any, Any],
    failures: Mapping[Any, str],
    code: str,
) -> Scoreboard:
    from topicweave.papers.scoreboard import Scoreboard, combine

    rows: dict[str, list[list[Row]]] = {name: [] for name, _ in plans}
    lost = {}
    for (name, seed), plan in plans.items():
        missing = [label for label in plan.runs if (name, seed, label) not in results]
        if missing:
            why = failures.get((name, seed, missing[0]), "no result")
            lost[name] = f"{len(missing)} of {len(plan.runs)} runs with seed {seed} are missing: {why}"
        else:
            rows[name].append(plan.judge({label: results[name, seed, label] for label in plan.runs}))
    scores = [score for name, by_seed in rows.items() for score in combine(name, by_seed)]
    seeds = tuple(dict.fromkeys(seed for _, seed in plans))
    return Scoreboard(scale, seeds, tuple(scores), lost, _origin(code))


def _origin(code: str) -> Origin:
    import os
    import platform

    from topicweave.papers.scoreboard import Origin

    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    today = datetime.now(UTC).date().isoformat()  # noqa: TID251 -- for people; no run depends on it
    return Origin(today, machine, code)


def _show(board: Scoreboard) -> None:
    from rich.table import Table

    from topicweave.cli.output import show
    from topicweave.papers.scoreboard_page import ours

    table = Table(box=None, pad_edge=False)
    for heading in ("paper", "hold", "do not", "reported only"):
        table.add_column(heading, justify="left" if heading == "paper" else "right")
    for paper in board.papers():
        table.add_row(paper, *map(str, board.tally(paper)))
    show(table)
    for score in board.scores:
        if score.holds is False:
            where = ", ".join(f"{name}={value}" for name, value in score.where.items())
            typer.echo(f"✗ {score.study}, {where}: {score.measure}: paper {score.paper}, ours {ours(score)}")
    for name, why in board.failures.items():
        typer.echo(f"not judged: {name}: {why}", err=True)
