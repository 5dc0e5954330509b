"""Options that several commands have in common, said once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, Literal

import typer

Format = Annotated[Literal["table", "json"], typer.Option(help="What to print.")]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Another seed, other chances.")]
Workers = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Processes at a time; as many as cores if not given."),
]


def sharing(
    options: Callable[..., Any], name: str, **defaults: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes the parameters of a function options of a command, which gets what the function returns in the place of parameter `name`.

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
