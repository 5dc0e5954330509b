"""`topicweave keys`: a swarm's own certificate authority."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True,
    help="Make a swarm's keys.",
    short_help="Make a swarm's keys.",
    rich_markup_mode=None,
)


@app.command("new-swarm")
def new_swarm(
    folder: Annotated[Path, typer.Option(help="Where the swarm's keys go.")] = Path("keys"),
    swarm: Annotated[str, typer.Option(help="The swarm's name.")] = "topicweave",
    days: Annotated[float, typer.Option(help="How long the authority is in force.")] = 3650,
) -> None:
    """Make the certificate authority of a new swarm.

    \b
    Example:
      topicweave keys new-swarm --folder keys
    """
    from topicweave.live import authority

    made = authority.new_swarm(folder, swarm, days)
    typer.echo(
        f"{made}: keep {authority.CA_KEY_FILE} safe; issue nodes' keys with `topicweave keys issue NAME`"
    )


@app.command("issue")
def issue(
    name: Annotated[str, typer.Argument(help="The node's name.")],
    swarm_folder: Annotated[Path, typer.Option("--swarm", help="The swarm's folder.")] = Path("keys"),
    folder: Annotated[Path | None, typer.Option(help="Where the node's keys go.")] = None,
    days: Annotated[float, typer.Option(help="How long they are in force.")] = 365,
) -> None:
    """Make a node's key and certificate.

    \b
    Example:
      topicweave keys issue alice --swarm keys
    """
    from topicweave.live import authority

    made = authority.issue(swarm_folder, name, folder, days)
    typer.echo(f"{made}: start the node with `topicweave node --keys {made}`")
