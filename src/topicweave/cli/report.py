"""`topicweave report`: the table and the page of a comparison that has run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="What `compare`, `advise` or `demo` wrote: their --out.")
    ],
) -> None:
    """Make the table, compare.json and report.html of a finished comparison again. Nothing is run.

    \b
    Example:
      topicweave report out/compare/my
    """
    from topicweave.cli import trying
    from topicweave.report.kept import kept_comparison

    comparison = kept_comparison(folder)
    trying.print_comparison(comparison)
    trying.say_where(trying.write_results(comparison, folder))
