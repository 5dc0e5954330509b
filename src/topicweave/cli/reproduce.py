"""`topicweave reproduce`: all studies of all papers, their results as data, and the scoreboard of claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from topicweave.cli.options import Format, Workers, on_disk
from topicweave.cli.spark import Conf, Elsewhere, Runs, Verbose

if TYPE_CHECKING:
    from topicweave.papers.reproducing import Reproduction
    from topicweave.papers.results import Number
    from topicweave.papers.scoreboard import PaperBoard


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
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the scoreboard goes.", callback=on_disk)
    ] = Path("out/studies"),
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
    from topicweave.papers.catalogue import choose_papers
    from topicweave.papers.reproducing import Reproduction, results_folder
    from topicweave.papers.results import read_results
    from topicweave.papers.scoreboard import scoreboard
    from topicweave.report.files import make_folder
    from topicweave.runs.store import beside

    at = scale or ("paper" if finished else "smoke")
    chosen = choose_papers(papers or [])
    make_folder(out)
    folder, store = results or results_folder(at, out), runs or beside(out)
    again = Reproduction.of(chosen, at, range(seed, seed + seeds), read_results(folder))
    numbers, lost = _numbers(again, finished, folder, store, (workers, master, conf, verbose))
    boards = scoreboard(numbers, again.papers(), at)
    told = _keep(boards, at, lost, out)
    if format == "json":
        print_json(told)
        return
    _show(boards, at, lost, again.of_other_code(numbers))
    typer.echo(f"results: {folder}; scoreboard: {out / 'scoreboard.md'}")


def _numbers(
    again: Reproduction, finished: bool, folder: Path, store: Path, how: tuple[Any, ...]
) -> tuple[list[Number], Mapping[str, str]]:
    """All results, continued by what is run here, and why some are missing."""
    from topicweave.papers.results import add_results

    failures: dict[Any, str] = {}
    found = again.finished(store, of_all=finished)
    if not finished:
        found |= _run(again.todo(), store, failures, how)
    today = datetime.now(UTC).date().isoformat()  # noqa: TID251 -- for people; no run depends on it
    later, lost = again.numbers(found, failures, today)
    numbers = add_results(folder, later)
    if finished:  # then what has numbers is judged on these, whatever code they are of
        there = {number.study for number in numbers if number.scale == again.scale}
        lost = {name: why for name, why in lost.items() if name not in there}
    return numbers, lost


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


def _keep(boards: Sequence[PaperBoard], scale: str, lost: Mapping[str, str], out: Path) -> dict[str, Any]:
    """The scoreboard in `out`, for programs and for people; returns the first."""
    from topicweave.papers.scoreboard import to_json
    from topicweave.papers.scoreboard_page import markdown
    from topicweave.report.files import json_text, write_whole

    told = {"scale": scale, "failures": lost, **to_json(boards)}
    write_whole(out / "scoreboard.json", json_text(told))
    write_whole(out / "scoreboard.md", markdown(boards))
    return told


def _show(
    boards: Sequence[PaperBoard], scale: str, lost: Mapping[str, str], other: Mapping[str, Sequence[str]]
) -> None:
    """other: studies whose numbers are of other code, by day"""
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
    for day, studies in other.items():
        typer.echo(f"of other code than this one, made on {day}: {', '.join(studies)}")
