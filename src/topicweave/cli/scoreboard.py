"""`topicweave scoreboard`: one page of several reproductions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def scoreboard(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="A scoreboard.json that `topicweave reproduce` wrote."),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="PAGE", help="Where to write the page; printed if not given.")
    ] = None,
) -> None:
    """Put scoreboards of several papers, machines or days on one page (Markdown), each with when and by what it was made.

    A study that several of the files have is taken from the last of them.

    \b
    Examples:
      topicweave scoreboard out/studies/scoreboard.json
      topicweave scoreboard magnet/scoreboard.json vitis/scoreboard.json --out reproduction.md
    """
    from topicweave.papers import STUDIES
    from topicweave.papers.scoreboard import latest, read_scoreboard
    from topicweave.papers.scoreboard_page import markdown
    from topicweave.report.files import write_whole

    page = markdown(latest([read_scoreboard(file) for file in files]), STUDIES)
    if out is None:
        typer.echo(page, nl=False)
    else:
        write_whole(out, page)
