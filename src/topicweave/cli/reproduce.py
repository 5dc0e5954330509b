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

Papers = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PAPER]...", help="spidercast, vitis, omen, …, or single studies; all if not given."
    ),
]
AtScale = Annotated[
    Literal["smoke", "paper"] | None,
    typer.Option(
        help="Small runs to see that all works, or the papers' own sizes, at which claims are judged.",
        show_default="smoke; paper with --finished and --check",
    ),
]
Results = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Results as data, continued by this run.",
        show_default="docs/results at paper scale if it is here; else results in --out",
    ),
]
Small = Annotated[
    bool,
    typer.Option(
        "--check",
        help="As --finished; and run, small, what other code has finished: does this code give the same?",
    ),
]

Again = Annotated[
    bool,
    typer.Option(
        "--again",
        help="Also run what is known already: for a study that asks for other rows, or other runs, than it did.",
    ),
]


def reproduce(
    papers: Papers = None,
    scale: AtScale = None,
    seeds: Annotated[
        int, typer.Option(min=1, metavar="N", help="Replications, each with a seed of its own.")
    ] = 1,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="The first of the seeds.")] = 0,
    format: Format = "table",  # noqa: A002
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the scoreboard goes.", callback=on_disk)
    ] = Path("out/studies"),
    results: Results = None,
    finished: Annotated[
        bool, typer.Option("--finished", help="Run nothing: judge what earlier runs have finished.")
    ] = False,
    check: Small = False,
    again: Again = False,
    runs: Runs = None,
    workers: Workers = None,
    master: Elsewhere = None,
    conf: Conf = None,
    verbose: Verbose = False,
) -> None:
    """Rerun all studies as one resumable sweep, keep every number as data, and judge every claim of every paper on it.

    A scoreboard is continued: a study whose numbers are among the results already, from code that is still
    the same, does not run again. Finished runs are kept too (see --runs) and shared with `topicweave study
    run`. The same command continues one that was stopped; a run that fails costs its own study and no other.
    Writes the numbers to --results, and scoreboard.json and scoreboard.md to --out. A claim that does not
    hold is a finding, not a failure.

    At paper scale each study's smoke scale runs too, and its numbers are kept beside the results. So --check
    can tell later, in minutes, whether results of other code may be out of date.

    \b
    Examples:
      topicweave reproduce                                        # small: does all work?
      topicweave reproduce spidercast omen --scale paper --seeds 3
      topicweave reproduce --scale paper --master spark://cluster:7077
      topicweave reproduce --finished                             # the headline
      topicweave reproduce --check                                # do results of other code still stand?

    \b
    JSON: {"scale": "paper", "failures": {"omen/fig9": "…"},
           "headline": {"spidercast": {"claims": 53, "holds": 25, "seems to hold": 10, …}},
           "claims": [{"id": "sc-12-ours", "at": "…", "says": "…", "state": "holds", "seeds": [1],
                       "levels": ["messages"],
                       "cases": [{"name": "", "paper": "10.8, …", "ours": "10.8, …", "holds": true, "miss": "",
                                  "points": ["1000", …], "axis": "nodes", "values": [10.812, …]}]}],
           "checks": […], "of other code": {"same at smoke scale": ["omen/fig9"], "not checked": […]}}
    """
    from topicweave.errors import BadInput
    from topicweave.papers.catalogue import choose_papers
    from topicweave.papers.reproducing import Reproduction, results_folder
    from topicweave.papers.results import read_results
    from topicweave.papers.smoke import folder_of
    from topicweave.report.files import make_folder
    from topicweave.runs.store import beside

    finished = finished or check
    if again and finished:
        raise BadInput("--again runs studies, --finished and --check run none: leave one out")
    at = scale or ("paper" if finished else "smoke")
    if check and at != "paper":
        raise BadInput("--check is of results at paper scale; leave out --scale")
    chosen = choose_papers(papers or [])
    make_folder(out)
    folder, store, how = (
        results or results_folder(at, out),
        runs or beside(out),
        (workers, master, conf, verbose),
    )
    studies = Reproduction.of(chosen, at, range(seed, seed + seeds), [] if again else read_results(folder))
    numbers, lost = _numbers(studies, finished, folder, store, how)
    if at == "paper" and not finished:
        earlier = [] if again else read_results(folder_of(folder))
        lost |= _beside(studies, lost, earlier, folder, store, how)
    if check:
        _check(studies, numbers, folder, store, how)
    _judge(studies, numbers, lost, folder, out, as_json=format == "json")


def _judge(
    studies: Reproduction,
    numbers: Sequence[Number],
    lost: Mapping[str, str],
    folder: Path,
    out: Path,
    as_json: bool,
) -> None:
    """Judge all claims; write and print the scoreboard."""
    from topicweave.cli.output import print_json
    from topicweave.papers.scoreboard import scoreboard, to_json
    from topicweave.papers.scoreboard_page import markdown
    from topicweave.papers.smoke import of_other_code, read_checks
    from topicweave.report.files import json_text, write_whole

    checks = read_checks(folder)
    boards = scoreboard(numbers, studies.papers(), studies.scale)
    other = of_other_code(studies, numbers, checks)
    told = {"scale": studies.scale, "failures": lost, **to_json(boards), "of other code": other}
    write_whole(out / "scoreboard.json", json_text(told))
    write_whole(out / "scoreboard.md", markdown(boards, checks))
    if as_json:
        print_json(told)
        return
    _show(boards, studies.scale, lost, other)
    typer.echo(f"results: {folder}; scoreboard: {out / 'scoreboard.md'}")


def _numbers(
    studies: Reproduction, finished: bool, folder: Path, store: Path, how: tuple[Any, ...]
) -> tuple[list[Number], dict[str, str]]:
    """All results, continued by what is run here, and why some are missing."""
    from topicweave.papers.results import add_results

    failures: dict[Any, str] = {}
    found = studies.finished(store, of_all=finished)
    if not finished:
        found |= _run(studies.todo(), store, failures, how)
    later, lost = studies.numbers(found, failures, _today())
    numbers = add_results(folder, later)
    if finished:  # then what has numbers is judged on these, whatever code they are of
        there = {number.study for number in numbers if number.scale == studies.scale}
        lost = {name: why for name, why in lost.items() if name not in there}
    return numbers, lost


def _beside(
    studies: Reproduction,
    lost: Mapping[str, str],
    earlier: Sequence[Number],
    folder: Path,
    store: Path,
    how: tuple[Any, ...],
) -> dict[str, str]:
    """Keep what the same code gives at smoke scale; returns why it is missing for some."""
    from topicweave.papers.smoke import folder_of

    done = {part.study.name for part in studies.parts} - lost.keys()
    small = studies.small(done, earlier)
    _, missing = _numbers(small, False, folder_of(folder), store, how)
    return {f"{name} at smoke scale": why for name, why in missing.items()}


def _check(
    studies: Reproduction, numbers: Sequence[Number], folder: Path, store: Path, how: tuple[Any, ...]
) -> None:
    """Run, small, what other code has finished, and keep how it compares."""
    from topicweave.papers.results import read_results
    from topicweave.papers.smoke import add_checks, check, folder_of, of_other_code

    kept = read_results(folder_of(folder))
    there = {number.study for number in kept}
    other = {
        name for names in of_other_code(studies, numbers, {}).values() for name in names if name in there
    }
    small = studies.small(other, [])
    failures: dict[Any, str] = {}
    here, lost = small.numbers(_run(small.todo(), store, failures, how), failures, _today())
    add_checks(folder, check(studies, numbers, kept, here, lost, _today()))


def _today() -> str:
    return datetime.now(UTC).date().isoformat()  # noqa: TID251 -- for people; no run depends on it


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


def _show(
    boards: Sequence[PaperBoard], scale: str, lost: Mapping[str, str], other: Mapping[str, Sequence[str]]
) -> None:
    """other: studies whose numbers are of other code, by what a check has found"""
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
    for verdict, studies in other.items():
        typer.echo(f"of other code than this one, {verdict}: {', '.join(studies)}")
