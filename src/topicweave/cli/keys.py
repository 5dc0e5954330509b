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
    days: Annotated[float, typer.Option(help="How many days the authority is valid.")] = 3650,
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
    days: Annotated[float, typer.Option(help="How many days they are valid.")] = 365,
    publish: Annotated[
        list[str] | None,
        typer.Option(help="Topics it may publish on: prefixes of names; by default all."),
    ] = None,
    subscribe: Annotated[
        list[str] | None, typer.Option(help="Topics it may subscribe to: prefixes of names; by default all.")
    ] = None,
) -> None:
    """Make a node's key and certificate.

    To renew a certificate, issue the name again into another --folder before the old one expires. Both are
    valid. Copy the new files over the old ones and send the node a SIGHUP. It loses no link.

    \b
    Examples:
      topicweave keys issue alice --swarm keys
      topicweave keys issue sensor-7 --publish sensors/7/ --subscribe commands/7/
    """
    from topicweave.live import authority
    from topicweave.live.keyring import Permissions

    allowed = Permissions(
        None if publish is None else tuple(publish), None if subscribe is None else tuple(subscribe)
    )
    made = authority.issue(swarm_folder, name, folder, days, None if allowed == Permissions() else allowed)
    typer.echo(f"{made}: start the node with `topicweave node --keys {made}`")


@app.command("revoke")
def revoke(
    which: Annotated[str, typer.Argument(help="A node's name, or the file of one certificate.")],
    swarm_folder: Annotated[Path, typer.Option("--swarm", help="The swarm's folder.")] = Path("keys"),
) -> None:
    """Revoke a node's certificates.

    The command writes a list signed by the authority. Copy the list into the key folder of at least one node
    and send that node a SIGHUP. The list spreads from there.

    \b
    Example:
      topicweave keys revoke mallory --swarm keys
    """
    from topicweave.live import authority

    count, path = authority.revoke_certificates(swarm_folder, which)
    typer.echo(f"{path}: {count} certificates revoked; copy it into a node's keys and send the node a SIGHUP")
