"""A reader run from the command line."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path

import msgspec

from topicweave.data.opml import opml_block
from topicweave.errors import BadInput
from topicweave.feeds.reading import FeedReader, FeedSettings
from topicweave.live.node import LiveNode, run
from topicweave.live.running import stop_on_signals
from topicweave.live.settings import Settings


def feeds_of(opml: Path) -> list[str]:
    """The addresses in an OPML file."""
    if not opml.is_file():
        raise BadInput(f"{opml}: no such file; export your feeds as OPML")
    block = opml_block(str(opml), "")
    if block.wrong:
        raise BadInput(f"{opml}: {block.wrong[0].reason}")
    urls = [url for url in block.rows.column("topic").to_pylist() if url]
    if not urls:
        raise BadInput(f"{opml}: no outline in it has an xmlUrl")
    return urls


def run_feeds(settings: Settings, opml: Path, reading: FeedSettings, out: Path) -> None:
    """Until a signal."""
    urls = feeds_of(opml)

    async def main() -> None:
        stop = stop_on_signals()
        node = LiveNode(settings)
        await node.start()
        try:
            folder = Path(settings.data) if settings.data else None
            reader = FeedReader(node, urls, reading, folder, out)
            where = {"name": node.name, "listen": str(node.address), "page": str(out / "index.html")}
            if node.http is not None:
                where["http"] = str(node.http.address)
            print(json.dumps(where), flush=True)
            running = asyncio.create_task(reader.run())
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait({running, stopping}, return_when="FIRST_COMPLETED")
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
            print(json.dumps({"requests": reader.fetcher.requests, **msgspec.to_builtins(reader.counts)}))
        finally:
            await node.stop()

    run(main)
