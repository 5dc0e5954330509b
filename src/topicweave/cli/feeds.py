"""`topicweave feeds`: read feeds, and share the polling with others who read them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def feeds(
    opml: Annotated[
        Path, typer.Argument(help="The feeds, as a feed reader exports them.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="Folder for the page (index.html) and the Atom file.")] = Path(
        "feeds"
    ),
    every: Annotated[
        float, typer.Option(help="Minutes between two polls of a feed, by all readers together.", min=0.01)
    ] = 30.0,
    samples: Annotated[
        float, typer.Option(help="Share of others' polls to compare with the source.", min=0, max=1)
    ] = 0.02,
    gap: Annotated[float, typer.Option(help="Seconds between two requests to one host.", min=0)] = 1.0,
    listen: Annotated[str | None, typer.Option(help="IP address and port; port 0 takes a free one.")] = None,
    join: Annotated[
        list[str] | None,
        typer.Option(help="Host and port of another reader's node; may be given several times."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="The node's name; with keys, the certificate's.")] = None,
    keys: Annotated[str | None, typer.Option(help="Folder made by `topicweave keys issue`.")] = None,
    insecure: Annotated[
        bool | None, typer.Option("--insecure", help="No keys: no TLS, no signatures; loopback only.")
    ] = None,
    data: Annotated[str | None, typer.Option(help="Folder for items that survive a restart.")] = None,
    http: Annotated[str | None, typer.Option(help="Serve the node's HTTP port at this address.")] = None,
    config: Annotated[Path | None, typer.Option(help="TOML file with any of a node's settings.")] = None,
    log_level: Annotated[
        str, typer.Option(help="Least serious messages on stderr: debug, info, warning or error.")
    ] = "warning",
) -> None:
    """Read RSS and Atom feeds together with others. One reader polls each feed, and the swarm carries new items to all.

    The command prints the node's addresses as a line of JSON, and at the end (Ctrl-C) what it did. Open index.html in a
    browser; other feed readers can read feeds.atom.

    \b
    Examples:
      topicweave feeds my.opml --insecure --listen 127.0.0.1:7000 --data reader
      topicweave feeds my.opml --keys keys/alice --join 192.0.2.1:7000 --every 60
    """
    from topicweave.feeds.command import run_feeds
    from topicweave.feeds.reading import FeedSettings
    from topicweave.live.logs import set_up_logs
    from topicweave.live.settings import load_settings

    set_up_logs(log_level, as_json=False)
    given: dict[str, Any] = {
        "listen": listen,
        "join": join or None,
        "name": name,
        "keys": keys,
        "insecure": insecure,
        "data": data,
        "http": http,
    }
    flags = {field: value for field, value in given.items() if value is not None}
    settings = FeedSettings(period=60 * every, samples=samples, gap=gap)
    run_feeds(load_settings(config, flags=flags), opml, settings, out)
