"""`topicweave study …`: the papers' experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from topicweave.cli.options import Format, Seed, Workers, on_disk
from topicweave.cli.spark import Conf, Elsewhere, Runs, Verbose

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Rerun the papers' experiments.")


@app.command("list")
def list_studies() -> None:
    """List all studies.

    \b
    Example:
      topicweave study list
    """
    from rich.table import Table

    from topicweave.cli.output import show
    from topicweave.papers import STUDIES

    table = Table(box=None, pad_edge=False)
    for heading in ("study", "what it shows", "source"):
        table.add_column(heading)
    for study in STUDIES.values():
        table.add_row(study.name, study.title, study.source)
    show(table)


@app.command(short_help="Rerun studies: the paper's figures beside ours.")
def run(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME", help="Studies; 'spidercast/*' names several.")
    ],
    scale: Annotated[
        Literal["smoke", "tenth", "paper"],
        typer.Option(
            help="A small run to see that it works; a tenth of the paper's size (vitis, rappel); its own size."
        ),
    ] = "smoke",
    seed: Seed = 0,
    format: Format = "table",  # noqa: A002
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where results go.", callback=on_disk)] = Path(
        "out/studies"
    ),
    runs: Runs = None,
    workers: Workers = None,
    master: Elsewhere = None,
    conf: Conf = None,
    verbose: Verbose = False,
) -> None:
    """Rerun experiments of a paper: our numbers beside the paper's (– where it gives none); at --scale paper also its
    claims.

    Below the numbers of a study stand the claims that rest on it, and checks of our own. They are judged as the
    scoreboard judges them, on these numbers alone: `topicweave reproduce` judges those that need several studies.
    Finished runs are kept (see --runs), so the same command continues a study that was stopped. Writes
    DIR/STUDY.json. A claim that does not hold is a finding, not a failure: the exit code is 0.

    \b
    Examples:
      topicweave study run spidercast/fig7
      topicweave study run 'spidercast/*' --scale paper

    \b
    JSON: {"study": "…", "scale": "smoke", "seed": 0, "rows": [{"where": {"nodes": 200, …},
           "measure": "degree_mean", "paper": 12, "measured": 11.8}]}; at --scale paper also
           "claims" and "checks", as `topicweave reproduce` gives them.
    One name gives one such object; several names, or a pattern, give a list of them.
    """
    from functools import partial

    from topicweave.cli.output import print_json, show
    from topicweave.cli.progress import progress
    from topicweave.cli.spark import executor_for
    from topicweave.cli.tables import claims_table, study_table
    from topicweave.papers import run_study
    from topicweave.papers.catalogue import choose, is_pattern
    from topicweave.papers.physics import world_of
    from topicweave.report.files import json_text, make_folder, write_whole
    from topicweave.runs.background import interruptible
    from topicweave.runs.store import beside

    chosen = choose(names)
    store = runs or beside(out)
    make_folder(store)
    answers = []
    with executor_for("study", workers, master, conf, verbose) as executor:
        for study in chosen:
            with progress(study.name) as report:
                work = partial(run_study, study, scale, seed, store, executor, report)
                result = interruptible(work) if master is None else work()
            answers.append(result.to_json())
            path = out / f"{study.name}.json"
            make_folder(path.parent)
            write_whole(path, json_text(answers[-1]))
            if format == "table":
                typer.echo(f"{study.name}: {study.title} ({study.source})")
                typer.echo(f"{study.level}: {world_of(study, study.plan(scale, seed))}\n")
                show(study_table(result))
                typer.echo()
                if result.board and (told := (*result.board.verdicts, *result.board.checks)):
                    show(claims_table(told, study.name))
                    typer.echo()
    if format == "table" and scale != "paper":
        typer.echo("Claims are judged at --scale paper.")
    if format == "json":
        one = len(names) == 1 and not is_pattern(names[0])
        print_json(answers[0] if one else answers)
