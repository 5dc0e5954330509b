"""`topicweave publish`, `subscribe` and `backup`: from the shell, through a running node's HTTP port."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

Node = Annotated[
    str,
    typer.Option("--node", envvar="TOPICWEAVE_NODE", help="HTTP address of a running node, as it prints it."),
]
Token = Annotated[str, typer.Option(envvar="TOPICWEAVE_TOKEN", help="The node's token, if it has one.")]


def publish(
    topic: Annotated[str, typer.Argument(help="The topic.")],
    text: Annotated[str, typer.Argument(help="The event's payload; '-' reads standard input.")],
    node: Node = "127.0.0.1:8000",
    token: Token = "",
    wait_for: Annotated[
        int, typer.Option(min=0, help="Wait until so many neighbours accepted the event.")
    ] = 0,
    timeout: Annotated[float, typer.Option(min=0, help="Wait at most so many seconds.")] = 5.0,
) -> None:
    """Publish an event and print its receipt: how many neighbours took it, and with --wait-for how many accepted it.

    \b
    Examples:
      topicweave publish news "hello" --node 127.0.0.1:8000
      topicweave publish news "hello" --node 127.0.0.1:8000 --wait-for 1
    """
    from topicweave.client.through import publish_through

    payload = sys.stdin.buffer.read() if text == "-" else text.encode()
    receipt = publish_through(node, token, topic, payload, wait_for, timeout)
    taken = receipt["neighbours"]
    # Nobody is asked for a verdict without --wait-for: a 0 would look like a failure.
    accepted = f", accepted by {receipt['accepted']}" if wait_for else ""
    typer.echo(f"taken by {taken} {'neighbour' if taken == 1 else 'neighbours'}{accepted}")
    if receipt["reason"]:
        typer.echo(receipt["reason"], err=True)
    if receipt["accepted"] < wait_for:
        raise typer.Exit(1)


def subscribe(
    topics: Annotated[list[str], typer.Argument(help="The topics, and patterns such as 'zone/+/door'.")],
    node: Node = "127.0.0.1:8000",
    token: Token = "",
    count: Annotated[int, typer.Option(min=0, help="Stop after so many events; 0 runs until Ctrl-C.")] = 0,
    last: Annotated[int, typer.Option(min=0, help="Begin with the last so many events of each topic.")] = 0,
    since: Annotated[
        float | None, typer.Option(help="Begin with the events since then, in Unix time.")
    ] = None,
) -> None:
    """Print events as they come, each as a line of JSON. Missed events and incomplete patterns are reported on stderr.

    The exit code is 0 after --count events, and 2 if the node goes away.

    \b
    Examples:
      topicweave subscribe news sport --node 127.0.0.1:8000
      topicweave subscribe news --last 10 --count 10
      topicweave subscribe 'zone/7/#' 'sensors/+/temperature'
    """
    from topicweave.client.through import events_through

    def missed(gap: str) -> None:
        typer.echo(f"missed: {gap}", err=True)

    def incomplete(lack: str) -> None:
        word = "incomplete" if json.loads(lack)["reason"] else "complete"
        typer.echo(f"{word}: {lack}", err=True)

    events = events_through(node, token, topics, last, since, missed, incomplete)
    for number, event in enumerate(events, start=1):
        typer.echo(event)
        if number == count:
            break


def backup(
    file: Annotated[Path, typer.Argument(help="Where the copy goes; a file of that name is replaced.")],
    node: Node = "127.0.0.1:8000",
    token: Token = "",
) -> None:
    """Copy the data of a running node into a file, while the node runs on.

    To restore the copy, put it as node.sqlite into an empty folder. Start one node with that folder as
    --data, in place of the first node.

    \b
    Example:
      topicweave backup alice.sqlite --node 127.0.0.1:8000
    """
    from topicweave.live.backup import backup_through

    events = backup_through(node, token, file)
    typer.echo(f"{file}: {file.stat().st_size:,} bytes, {events:,} events")
