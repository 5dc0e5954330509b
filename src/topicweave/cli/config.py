"""`topicweave config`: a node's settings, looked at without a node."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Check, show and list a node's settings.", rich_markup_mode=None)

File = Annotated[Path | None, typer.Argument(help="TOML file, as for `topicweave node --config`.")]


@app.command()
def check(file: File = None) -> None:
    """Check settings without starting a node.

    The command reads the file and TOPICWEAVE_… variables. If something is wrong, it prints a line for each
    mistake on stderr and exits with 2.

    \b
    Example:
      topicweave config check node.toml
    """
    from topicweave.cli.failures import BAD_INPUT, complain
    from topicweave.live.checking import problems
    from topicweave.live.settings import load_settings

    found = problems(load_settings(file))
    for one in found:
        complain(f"error: {one}")
    if found:
        raise typer.Exit(BAD_INPUT)
    typer.echo("a node can start with these settings")


@app.command()
def show(file: File = None) -> None:
    """Print the settings that result from file, variables and defaults, as JSON without the token.

    \b
    Example:
      topicweave config show node.toml
    """
    import msgspec

    from topicweave.cli.output import print_json
    from topicweave.live.settings import load_settings

    settings = load_settings(file)
    if settings.token:
        settings = msgspec.structs.replace(settings, token="(set)")
    print_json(msgspec.to_builtins(settings))


@app.command()
def reference() -> None:
    """Print every setting with its type, its default and its meaning, as Markdown.

    \b
    Example:
      topicweave config reference > settings.md
    """
    from topicweave.live.reference import page

    typer.echo(page(), nl=False)
