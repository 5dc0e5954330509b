"""`topicweave swarm --dashboard` and `--play`: a swarm, or a recording of one, with a page to look at it,
until a signal or for a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path

from starlette.routing import WebSocketRoute

from topicweave.live import web
from topicweave.live.clock import Clock
from topicweave.live.dashboard.picture import Picture
from topicweave.live.dashboard.recording import FrameFile, Replayed, play, recorded_frames
from topicweave.live.dashboard.showing import Show
from topicweave.live.dashboard.supervisor import ORDERS, Supervisor
from topicweave.live.dashboard.watch import TICK
from topicweave.live.http_server import HttpServer
from topicweave.live.node import run
from topicweave.live.running import stop_on_signals
from topicweave.live.settings import Address, Settings


class Stage:
    """Where a show is served: a page and its WebSocket on loopback."""

    def __init__(self, show: Show, http: str) -> None:
        routes = [*web.routes({"/": "dashboard.html"}), WebSocketRoute("/watch", show.attend)]
        self._show = show
        self._server = HttpServer(Address.parse(http, "http"), "", routes)

    async def __aenter__(self) -> Stage:
        await self._server.start()
        print(f"dashboard: http://{self._server.address}/", flush=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._show.stop()
        await self._server.stop()


def run_dashboard_swarm(
    settings: Settings,
    interests: list[list[str]],
    rate: float,
    seconds: float,
    seed: int,
    http: str,
    record: Path | None,
) -> None:
    """A swarm of processes, with a page to look at it and to do things to it."""

    async def main() -> None:
        stop = stop_on_signals()
        title = f"{len(interests)} nodes, {settings.system}"
        picture = Picture(title, ORDERS, whole_swarm=True)
        supervisor = Supervisor(settings, interests, rate, seed, picture)
        show = Show(lambda: picture.whole(supervisor.clock.now), supervisor.obey)
        with contextlib.ExitStack() as stack:
            first = picture.whole(supervisor.clock.now)
            recording = stack.enter_context(FrameFile(record, first)) if record else None
            try:
                async with Stage(show, http):
                    showing = asyncio.create_task(_keep_showing(picture, supervisor.clock, show, recording))
                    await supervisor.start()
                    await _until(stop, seconds, showing)
            finally:
                await supervisor.stop()
        print("stopped", flush=True)

    run(main)


async def _until(stop: asyncio.Event, seconds: float, work: asyncio.Task[None]) -> None:
    """A signal, or the time is over; if the work ends before that, it failed, and says so."""
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({stopping, work}, timeout=seconds or None, return_when="FIRST_COMPLETED")
    if work.done():
        work.result()
    for task in (stopping, work):
        task.cancel()


async def _keep_showing(picture: Picture, clock: Clock, show: Show, recording: FrameFile | None) -> None:
    while True:
        await asyncio.sleep(TICK)
        frame = picture.frame(clock.now)
        show.tell(frame)
        if recording is not None:
            try:
                recording.add(frame)
            except OSError as error:
                print(f"the recording ends here: {error}", file=sys.stderr)
                recording = None


def run_recording(file: Path, seconds: float, http: str) -> None:
    """What was recorded, shown again as it went, over and over."""

    async def main() -> None:
        stop = stop_on_signals()
        replayed = Replayed()
        for first in recorded_frames(file):
            replayed.take(first)  # A file that is none is refused before anything is served.
            break
        show = Show(replayed.whole)
        async with Stage(show, http):
            playing = asyncio.create_task(play(file, show, replayed))
            await _until(stop, seconds, playing)
        print("stopped", flush=True)

    run(main)
