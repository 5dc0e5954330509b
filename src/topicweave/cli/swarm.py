"""`topicweave swarm`: many nodes on this machine, to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def swarm(
    nodes: Annotated[int, typer.Option(min=1, max=1000, help="How many nodes.")] = 50,
    system: Annotated[
        str, typer.Option(help="Which system; `topicweave systems` lists them.")
    ] = "spidercast",
    topics: Annotated[int, typer.Option(min=1, help="How many topics there are.")] = 100,
    topics_per_node: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many each node wants; by default 10, or all if there are fewer.",
            show_default=False,
        ),
    ] = None,
    rate: Annotated[float, typer.Option(min=0, help="Events published per second, by all together.")] = 10.0,
    seconds: Annotated[
        float, typer.Option(min=0, help="Stop after so many seconds; 0 runs until Ctrl-C.")
    ] = 0.0,
    preset: Annotated[
        str | None,
        typer.Option(
            help="Timers: local, lan or wan. By default local, and wan for more than 100 nodes.",
            show_default=False,
        ),
    ] = None,
    membership: Annotated[
        str, typer.Option(help="directory; or gossip alone, by which rare topics may not be found.")
    ] = "directory",
    http: Annotated[bool, typer.Option("--http", help="Give the first node an HTTP port.")] = False,
    seed: Annotated[int, typer.Option(help="Decides who wants what.")] = 0,
    dashboard: Annotated[
        bool,
        typer.Option(
            "--dashboard", help="One process per node, and a page that shows them and can kill them."
        ),
    ] = False,
    at: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="Serve the page at this address on loopback; port 0 takes a free one."
        ),
    ] = "127.0.0.1:0",
    record: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --dashboard or --simulate: record what the page shows."),
    ] = None,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Record a simulated swarm: no processes, no sockets.")
    ] = False,
    play: Annotated[Path | None, typer.Option(metavar="FILE", help="Play a recording instead.")] = None,
) -> None:
    """Run a whole swarm on this machine, over loopback.

    \b
    Examples:
      topicweave swarm --nodes 50 --system spidercast
      topicweave swarm --nodes 50 --dashboard --record swarm.jsonl
      topicweave swarm --nodes 500 --simulate --seconds 60 --record many.jsonl
      topicweave swarm --play swarm.jsonl
    """
    from topicweave.live.running import run_shown_swarm
    from topicweave.live.settings import load_settings
    from topicweave.live.swarm import draw_interests, preset_for

    _refuse_contradictions(dashboard, simulate, play, record, http, at, seconds)
    if play:
        from topicweave.live.dashboard.running import run_recording

        run_recording(play, seconds, at)
        return
    each = _topics_each(topics, topics_per_node)
    flags = {"insecure": True, "system": system, "membership": membership}
    settings = load_settings(flags={**flags, "preset": preset or preset_for(nodes)}, environment={})
    if simulate:
        from topicweave.runs.simulated_show import record_simulation

        assert record is not None
        interests = draw_interests(nodes, topics, each, seed)
        frames = record_simulation(system, interests, rate, seconds, seed, record, settings.membership)
        typer.echo(f"{record}: {frames} frames; look at them with `topicweave swarm --play {record}`")
        return
    if dashboard:
        from topicweave.live.dashboard.running import run_dashboard_swarm

        interests = draw_interests(nodes, topics, each, seed)
        run_dashboard_swarm(settings, interests, rate, seconds, seed, at, record)
        return
    run_shown_swarm(settings, nodes, topics, each, rate, seconds, http, seed)


def _topics_each(topics: int, asked: int | None) -> int:
    """How many topics each node wants."""
    from topicweave.errors import BadInput

    if asked is not None and asked > topics:
        raise BadInput(
            f"--topics-per-node {asked}: more than --topics {topics}; ask for fewer, or for more topics"
        )
    return asked or min(topics, 10)


def _refuse_contradictions(
    dashboard: bool,
    simulate: bool,
    play: Path | None,
    record: Path | None,
    http: bool,
    at: str,
    seconds: float,
) -> None:
    from topicweave.errors import BadInput
    from topicweave.live.settings import Address

    if (dashboard or play) and not Address.parse(at, "at").loopback:
        raise BadInput(f"--at {at}: the page is for this machine only; give an address on loopback")
    if dashboard and http:
        raise BadInput(
            "--dashboard and --http: choose one; the dashboard is a page of the swarm, not of a node"
        )
    if record and not (dashboard or simulate):
        raise BadInput("--record needs --dashboard: it keeps what that shows; or --simulate")
    if simulate and (dashboard or play or not record or not seconds):
        raise BadInput("--simulate needs --record FILE and --seconds, and neither --dashboard nor --play")
