"""`topicweave scoreboard`: the page of all claims, from results as data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def scoreboard(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[DIR]...",
            help="Results as `topicweave reproduce` keeps them.",
            show_default="docs/results",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="PAGE", help="Where to write the page; printed if not given.")
    ] = None,
) -> None:
    """Judge every claim of the papers on results from one or several places; one page (Markdown) with the headline.

    A study that several of the folders have with the same seed is taken from the last of them.

    \b
    Examples:
      topicweave scoreboard --out docs/reproduction.md
      topicweave scoreboard docs/results out/studies/results
    """
    from topicweave.errors import BadInput
    from topicweave.papers.reproducing import KEPT
    from topicweave.papers.results import Number, merged, read_results
    from topicweave.papers.scoreboard import scoreboard as judged
    from topicweave.papers.scoreboard_page import markdown
    from topicweave.papers.smoke import Check, read_checks
    from topicweave.report.files import write_whole

    numbers: list[Number] = []
    checks: dict[str, Check] = {}
    for folder in folders or [KEPT]:
        found = read_results(folder)
        if not found:
            raise BadInput(f"{folder} holds no results; `topicweave reproduce --scale paper` makes some")
        numbers = merged(numbers, found)
        checks |= read_checks(folder)
    page = markdown(judged(numbers), checks)
    if out is None:
        typer.echo(page, nl=False)
    else:
        write_whole(out, page)
