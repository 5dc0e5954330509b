"""`topicweave node`: one node of a swarm, until it is told to stop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def node(
    system: Annotated[
        str | None, typer.Option(help="How the overlay is woven: see `topicweave systems`.")
    ] = None,
    listen: Annotated[str | None, typer.Option(help="IP address and port; port 0 takes a free one.")] = None,
    join: Annotated[
        list[str] | None,
        typer.Option(help="Host and port of a node to join, tried for ever; may be given again."),
    ] = None,
    subscribe: Annotated[
        list[str] | None, typer.Option(help="A topic or a pattern; may be given again.")
    ] = None,
    patterns: Annotated[
        str | None,
        typer.Option(help="Patterns of topics: auto, off, or on, for all nodes of a swarm of any system."),
    ] = None,
    private_names: Annotated[
        bool | None, typer.Option("--private-names", help="Announce names hashed; for all nodes of a swarm.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The node's name; with keys, the certificate's.")] = None,
    keys: Annotated[str | None, typer.Option(help="Folder made by `topicweave keys issue`.")] = None,
    insecure: Annotated[
        bool | None, typer.Option("--insecure", help="No keys: no TLS, no signatures; loopback only.")
    ] = None,
    data: Annotated[str | None, typer.Option(help="Folder that keeps what outlives the process.")] = None,
    http: Annotated[str | None, typer.Option(help="Where to serve HTTP; port 0 takes a free one.")] = None,
    token: Annotated[str | None, typer.Option(help="Asked of HTTP clients; a must off loopback.")] = None,
    mqtt: Annotated[
        str | None, typer.Option(help="Where to serve MQTT 3.1.1 and 5 clients; port 0 takes a free one.")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="Timers: local, lan or wan.")] = None,
    telemetry: Annotated[str | None, typer.Option(help="Folder for the telemetry tables.")] = None,
    log_level: Annotated[
        str, typer.Option(help="What goes to stderr: debug, info, warning or error.")
    ] = "warning",
    log_json: Annotated[bool, typer.Option("--log-json", help="Log in JSON, one line each.")] = False,
    config: Annotated[Path | None, typer.Option(help="TOML file with any of the settings.")] = None,
    show_events: Annotated[
        bool, typer.Option("--show-events", help="Print the events the node gets, one JSON line each.")
    ] = False,
) -> None:
    """Run one node until Ctrl-C.

    SIGHUP makes it read its keys again. What keeps it from joining stands on stderr and in /health.

    Settings come from --config, then from TOPICWEAVE_… variables, then from flags; later ones win.

    \b
    Examples:
      topicweave node --insecure --listen 127.0.0.1:7000 --subscribe news --http 127.0.0.1:8000
      topicweave node --insecure --join 127.0.0.1:7000 --subscribe news --show-events
      topicweave node --keys keys/alice --data data/alice --config node.toml
    """
    from topicweave.live.logs import set_up_logs
    from topicweave.live.running import run_node
    from topicweave.live.settings import load_settings

    set_up_logs(log_level, log_json)
    given: dict[str, Any] = {
        "system": system,
        "listen": listen,
        "join": join or None,
        "subscribe": subscribe or None,
        "patterns": patterns,
        "private_names": private_names,
        "name": name,
        "keys": keys,
        "insecure": insecure,
        "data": data,
        "http": http,
        "token": token,
        "mqtt": mqtt,
        "preset": preset,
        "telemetry": telemetry,
    }
    flags = {field: value for field, value in given.items() if value is not None}
    run_node(load_settings(config, flags=flags), show_events)
