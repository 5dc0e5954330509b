"""`topicweave swarm`: many nodes on this machine, to look at."""

from __future__ import annotations

from typing import Annotated

import typer


def swarm(
    nodes: Annotated[int, typer.Option(min=1, max=1000, help="How many nodes.")] = 50,
    system: Annotated[str, typer.Option(help="How the overlay is woven.")] = "spidercast",
    topics: Annotated[int, typer.Option(min=1, help="How many topics there are.")] = 100,
    topics_per_node: Annotated[int, typer.Option(min=1, help="How many each node wants.")] = 10,
    rate: Annotated[float, typer.Option(min=0, help="Events published per second, by all together.")] = 10.0,
    seconds: Annotated[float, typer.Option(min=0, help="Stop after so long; 0 goes on until Ctrl-C.")] = 0.0,
    preset: Annotated[str, typer.Option(help="Timers: local, lan or wan.")] = "local",
    http: Annotated[bool, typer.Option("--http", help="Give the first node an HTTP port.")] = False,
    seed: Annotated[int, typer.Option(help="Decides who wants what.")] = 0,
) -> None:
    """Start a swarm on loopback and watch it.

    \b
    Example:
      topicweave swarm --nodes 50 --system spidercast
    """
    from topicweave.live.running import run_shown_swarm
    from topicweave.live.settings import load_settings

    settings = load_settings(flags={"insecure": True, "system": system, "preset": preset}, environment={})
    run_shown_swarm(settings, nodes, topics, min(topics, topics_per_node), rate, seconds, http, seed)
