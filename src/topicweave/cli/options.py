"""Options that several commands have in common, said once."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from topicweave.errors import BadInput


def on_disk(path: Path | None) -> Path | None:
    """For options whose files are not written through PyArrow: an object store is refused, before anything is done."""
    if path is not None and re.match(r"(?!file:)[a-zA-Z][\w+.-]+:/", str(path)):
        raise BadInput(
            f"{path}: an object store; here a folder on a disk is needed. Give one, and copy what is in it afterwards"
        )
    return path


Telemetry = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Also keep what happened in each run, for `measure` and `stream`.",
        callback=on_disk,
    ),
]
Format = Annotated[Literal["table", "json"], typer.Option(help="What to print.")]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Another seed gives other random choices.")]
Workers = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Processes at a time; as many as cores if not given."),
]


def sharing(
    options: Callable[..., Any], name: str, **defaults: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes the parameters of a function options of a command, which gets what the function returns in the
    place of parameter `name`.

    Some may have other defaults in that command.
    """
    shared = [
        option.replace(kind=Parameter.KEYWORD_ONLY, default=defaults.get(option.name, option.default))
        for option in signature(options, eval_str=True).parameters.values()
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**given: Any) -> None:
            made = options(**{option.name: given.pop(option.name) for option in shared})
            command(**given, **{name: made})

        found: list[Parameter] = []
        for one in signature(command, eval_str=True).parameters.values():
            found += shared if one.name == name else [one.replace(kind=Parameter.KEYWORD_ONLY)]
        run.__signature__ = Signature(found)  # type: ignore[attr-defined]  # Typer reads it; mypy knows of none
        return run

    return decorate
