"""`topicweave node`: one node of a swarm, until it is told to stop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def node(
    system: Annotated[str | None, typer.Option(help="Which system; `topicweave systems` lists them.")] = None,
    listen: Annotated[str | None, typer.Option(help="IP address and port; port 0 takes a free one.")] = None,
    join: Annotated[
        list[str] | None, typer.Option(help="Host and port of a node that is up; may be given several times.")
    ] = None,
    subscribe: Annotated[
        list[str] | None, typer.Option(help="A topic or a pattern; may be given several times.")
    ] = None,
    patterns: Annotated[
        str | None, typer.Option(help="Patterns: auto, on (the same for the whole swarm), or off.")
    ] = None,
    private_names: Annotated[
        bool | None,
        typer.Option("--private-names", help="Announce names as hashes (the same for the whole swarm)."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="The node's name; with keys, the certificate's.")] = None,
    keys: Annotated[str | None, typer.Option(help="Folder made by `topicweave keys issue`.")] = None,
    insecure: Annotated[
        bool | None, typer.Option("--insecure", help="No keys: no TLS, no signatures; loopback only.")
    ] = None,
    data: Annotated[str | None, typer.Option(help="Folder for data that survives a restart.")] = None,
    http: Annotated[
        str | None, typer.Option(help="Serve HTTP at this address; port 0 takes a free one.")
    ] = None,
    token: Annotated[
        str | None, typer.Option(help="Token that HTTP clients must send; needed unless on loopback.")
    ] = None,
    mqtt: Annotated[
        str | None, typer.Option(help="Serve MQTT 3.1.1 and 5.0 at this address; port 0 takes a free one.")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="Timers: local, lan or wan.")] = None,
    membership: Annotated[
        str | None,
        typer.Option(help="directory; or gossip alone, by which rare topics may not be found."),
    ] = None,
    telemetry: Annotated[str | None, typer.Option(help="Folder for the telemetry tables.")] = None,
    log_level: Annotated[
        str, typer.Option(help="Least serious messages on stderr: debug, info, warning or error.")
    ] = "warning",
    log_json: Annotated[bool, typer.Option("--log-json", help="Write the log as lines of JSON.")] = False,
    config: Annotated[Path | None, typer.Option(help="TOML file with any of the settings.")] = None,
    show_events: Annotated[
        bool, typer.Option("--show-events", help="Print each event that the node gets, as a line of JSON.")
    ] = False,
) -> None:
    """Run one node until Ctrl-C.

    SIGHUP makes the node read its keys again. If it cannot join, stderr and /health say why.

    Settings come from --config, then from TOPICWEAVE_… variables, then from flags. The later source wins.

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
        "membership": membership,
        "telemetry": telemetry,
    }
    flags = {field: value for field, value in given.items() if value is not None}
    run_node(load_settings(config, flags=flags), show_events)
