"""`topicweave reproduce`: all studies of all papers, their results as data, and the scoreboard of claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from topicweave.cli.options import Format, Workers
from topicweave.cli.spark import Conf, Elsewhere, Runs, Verbose

if TYPE_CHECKING:
    from topicweave.papers.results import Number
    from topicweave.papers.scoreboard import PaperBoard
    from topicweave.papers.study import Plan, Study
    from topicweave.runs.run import Run

KEPT = Path("docs/results")
"""Where this project keeps what came out at the papers' sizes."""


def reproduce(
    papers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PAPER]...", help="spidercast, vitis, omen, …, or single studies; all if not given."
        ),
    ] = None,
    scale: Annotated[
        Literal["smoke", "paper"] | None,
        typer.Option(
            help="Small runs to see that all works, or the papers' own sizes, at which claims are judged.",
            show_default="smoke; paper with --finished",
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, metavar="N", help="Replications, each with a seed of its own.")
    ] = 1,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="The first of the seeds.")] = 0,
    format: Format = "table",  # noqa: A002
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the scoreboard goes.")] = Path(
        "out/studies"
    ),
    results: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Results as data, continued by this run.",
            show_default="docs/results at paper scale if it is here; else results in --out",
        ),
    ] = None,
    finished: Annotated[
        bool, typer.Option("--finished", help="Run nothing: judge what earlier runs have finished.")
    ] = False,
    runs: Runs = None,
    workers: Workers = None,
    master: Elsewhere = None,
    conf: Conf = None,
    verbose: Verbose = False,
) -> None:
    """Rerun all studies as one resumable sweep, keep every number as data, and judge every claim of every paper on it.

    A scoreboard is continued: a study whose numbers are among the results already, from code that is still the same, does not run again.
    Finished runs are kept too (see --runs) and shared with `topicweave study run`. Stopped, the same command goes on where it was; a run that
    fails costs its own study and no other. Writes the numbers to --results, and scoreboard.json and scoreboard.md to --out. That a claim does not
    hold is a finding and no failure.

    \b
    Examples:
      topicweave reproduce                                        # small: does all work?
      topicweave reproduce spidercast omen --scale paper --seeds 3
      topicweave reproduce --scale paper --master spark://cluster:7077
      topicweave reproduce --finished                             # the headline

    \b
    JSON: {"scale": "paper", "failures": {"omen/fig9": "…"}, "headline": {"spidercast": {"claims": 49, "holds": 24, …}},
           "claims": [{"id": "sc-12-ours", "at": "…", "says": "…", "state": "holds", "seeds": [1], "levels": ["messages"],
                       "cases": [{"name": "", "paper": "10.8, …", "ours": "10.8, …", "holds": true, "miss": ""}]}],
           "checks": […]}
    """
    from topicweave.cli.output import print_json
    from topicweave.papers.results import merged, read_results, write_results
    from topicweave.papers.scoreboard import scoreboard, to_json
    from topicweave.papers.scoreboard_page import markdown
    from topicweave.report.files import json_text, make_folder, write_whole
    from topicweave.runs.store import beside

    chosen = choose_papers(papers or [])
    at = scale or ("paper" if finished else "smoke")
    make_folder(out)
    folder = results or (KEPT if at == "paper" and KEPT.is_dir() else out / "results")
    earlier = read_results(folder)
    plans = {
        (study, number): study.plan(at, number) for study in chosen for number in range(seed, seed + seeds)
    }
    codes = _codes(plans)
    known = {(number.batch, number.code) for number in earlier}
    there = {
        (study, number)
        for study, number in plans
        if ((study.name, at, number), codes[study.name, number]) in known
    }
    failures: dict[Any, str] = {}
    store = runs or beside(out)
    # What is known needs no run; where its runs are still kept its rows are made again, since a study may keep more by now.
    found = _finished(_labelled(plans, lambda point: finished or point in there), store)
    if not finished:
        todo = _labelled(plans, lambda point: point not in there)
        found |= _run(todo, store, failures, (workers, master, conf, verbose))
    plans = {
        (study, number): plan
        for (study, number), plan in plans.items()
        if (study, number) not in there or all((study.name, number, label) in found for label in plan.runs)
    }
    later, lost = _numbers(plans, at, found, failures, codes)
    numbers = merged(earlier, later)
    if later:
        write_results(folder, numbers)
    boards = scoreboard(
        numbers, dict.fromkeys(study.name.split("/")[0] for study in chosen if "/" in study.name), at
    )
    lost = {name: why for name, why in lost.items() if not finished or not _has(numbers, name, at)}
    told = {"scale": at, "failures": lost, **to_json(boards)}
    write_whole(out / "scoreboard.json", json_text(told))
    write_whole(out / "scoreboard.md", markdown(boards))
    if format == "json":
        print_json(told)
    else:
        _show(boards, at, lost)
        _tell_others(numbers, at, codes)
        typer.echo(f"results: {folder}; scoreboard: {out / 'scoreboard.md'}")


def choose_papers(names: Sequence[str]) -> list[Study]:
    """Studies of the papers named, or single ones; all but those that need live nodes, if none is named."""
    from topicweave.cli.study import choose
    from topicweave.papers import STUDIES

    papers = dict.fromkeys(name.split("/")[0] for name in STUDIES)
    if not names:
        return [study for name, study in STUDIES.items() if "/" in name]
    return choose([f"{name}/*" if name in papers and name not in STUDIES else name for name in names])


def _codes(plans: Mapping[tuple[Study, int], Plan]) -> dict[tuple[str, int], str]:
    from topicweave.runs.fingerprint import fingerprint_of_all

    return {
        (study.name, seed): fingerprint_of_all(plan.runs.values())[:12]
        for (study, seed), plan in plans.items()
    }


def _labelled(
    plans: Mapping[tuple[Study, int], Plan], wanted: Callable[[tuple[Study, int]], bool]
) -> dict[Any, Run]:
    return {
        (point[0].name, point[1], label): run
        for point, plan in plans.items()
        if wanted(point)
        for label, run in plan.runs.items()
    }


def _finished(todo: Mapping[Any, Run], store: Path) -> dict[Any, Any]:
    from topicweave.runs.runner import finished_runs

    return dict(finished_runs(todo, store))


def _run(
    todo: Mapping[Any, Any], store: Path, failures: dict[Any, str], how: tuple[Any, ...]
) -> Mapping[Any, Any]:
    from functools import partial

    from topicweave.cli.progress import progress
    from topicweave.cli.spark import executor_for
    from topicweave.runs.background import interruptible
    from topicweave.runs.runner import run_all

    workers, master, conf, verbose = how
    with (
        progress("reproducing") as report,
        executor_for("reproduce", workers, master, conf, verbose) as executor,
    ):
        work = partial(run_all, todo, store, executor, report, failures)
        return interruptible(work) if master is None else work()


def _numbers(
    plans: Mapping[tuple[Study, int], Plan],
    scale: Literal["smoke", "paper"],
    found: Mapping[Any, Any],
    failures: Mapping[Any, str],
    codes: Mapping[tuple[str, int], str],
) -> tuple[list[Number], dict[str, str]]:
    """The numbers of all studies that were run to their end, and why others were not."""
    from topicweave.papers.physics import world_of
    from topicweave.papers.results import Batch, as_numbers

    today = datetime.now(UTC).date().isoformat()  # noqa: TID251 -- for people; no run depends on it
    numbers, lost = [], {}
    for (study, seed), plan in plans.items():
        name = study.name
        missing = [label for label in plan.runs if (name, seed, label) not in found]
        if missing:
            why = failures.get((name, seed, missing[0]), "not run yet")
            lost[name] = f"{len(missing)} of {len(plan.runs)} runs with seed {seed} are missing: {why}"
        else:
            batch = Batch(
                *(name, scale, seed, study.level, study.seeds.get(scale, 1), codes[name, seed], today),
                physics=world_of(study, plan),
            )
            numbers += as_numbers(batch, plan.judge({label: found[name, seed, label] for label in plan.runs}))
    return numbers, lost


def _tell_others(numbers: Sequence[Number], scale: str, codes: Mapping[tuple[str, int], str]) -> None:
    """Which results were made by other code than would run here."""
    now: dict[str, set[str]] = {}
    for (study, _), code in codes.items():
        now.setdefault(study, set()).add(code)
    made = {(number.study, number.code, number.made) for number in numbers if number.scale == scale}
    others = sorted((day, study) for study, code, day in made if study in now and code not in now[study])
    for day in dict.fromkeys(day for day, _ in others):
        studies = [study for one, study in others if one == day]
        typer.echo(f"of other code than this one, made on {day}: {', '.join(studies)}")


def _has(numbers: Sequence[Number], study: str, scale: str) -> bool:
    return any((number.study, number.scale) == (study, scale) for number in numbers)


def _show(boards: Sequence[PaperBoard], scale: str, lost: Mapping[str, str]) -> None:
    from rich.table import Table

    from topicweave.cli.output import show
    from topicweave.papers.judging import STATES

    table = Table(box=None, pad_edge=False)
    smoke = scale != "paper"
    headings = ("paper", "studies", "numbers") if smoke else ("paper", "claims", *STATES)
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "paper" else "right")
    for board in boards:
        counts = (len({number.study for number in board.numbers}), len(board.numbers))
        table.add_row(board.paper.name, *map(str, counts if smoke else board.headline().values()))
    show(table)
    if smoke:
        typer.echo("Claims are judged at --scale paper.")
    for name, why in lost.items():
        typer.echo(f"not judged: {name}: {why}", err=True)
