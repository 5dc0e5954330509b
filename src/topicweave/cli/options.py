"""Options that several commands have in common, said once."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

Format = Annotated[Literal["table", "json"], typer.Option(help="What to print.")]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Another seed, other chances.")]
Workers = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Processes at a time; as many as cores if not given."),
]
