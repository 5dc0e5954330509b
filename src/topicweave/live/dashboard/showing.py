"""A picture on its way to browsers: each gets the whole at first and then what changes; who reads too slowly
gets the whole again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from topicweave.client.words import Reply
from topicweave.errors import TopicweaveError
from topicweave.live.dashboard.picture import Picture
from topicweave.live.dashboard.watch import TICK, Watch
from topicweave.live.dashboard.words import Frame, Order
from topicweave.live.http_server import json_response

if TYPE_CHECKING:
    from topicweave.live.node import LiveNode

MOST_PAGES = 32
MOST_WAITING = 50
"""Frames that wait for one page."""

Obey = Callable[[Order], Awaitable[str]]
"""Does what a page orders, and says what was done."""

_encode = msgspec.json.Encoder().encode
_order = msgspec.json.Decoder(Order).decode


class Show:
    """Hands one picture to many pages. Somebody calls `tell` with each frame."""

    def __init__(self, whole: Callable[[], Frame], obey: Obey | None = None) -> None:
        self._whole = whole
        self._obey = obey
        self._pages: dict[asyncio.Queue[bytes], asyncio.Task[object]] = {}

    @property
    def pages(self) -> int:
        return len(self._pages)

    def tell(self, frame: Frame) -> None:
        text = _encode(frame)
        for queue in self._pages:
            try:
                queue.put_nowait(text)
            except asyncio.QueueFull:
                while not queue.empty():
                    queue.get_nowait()
                queue.put_nowait(_encode(self._whole()))

    def stop(self) -> None:
        for task in list(self._pages.values()):
            task.cancel()

    async def attend(self, connection: WebSocket) -> None:
        """One page, until it goes."""
        if len(self._pages) >= MOST_PAGES:
            answer = json_response(Reply(error=f"{MOST_PAGES} pages are looking"), 503)
            await connection.send_denial_response(answer)
            return
        await connection.accept()
        queue: asyncio.Queue[bytes] = asyncio.Queue(MOST_WAITING)
        task = asyncio.current_task()
        assert task is not None
        self._pages[queue] = task
        queue.put_nowait(_encode(self._whole()))
        sending = asyncio.create_task(_send(connection, queue))
        try:
            while True:
                text = await connection.receive_text()
                answer_frame = _encode(await self._answer(text))
                with contextlib.suppress(asyncio.QueueFull):
                    queue.put_nowait(answer_frame)
        except (WebSocketDisconnect, KeyError, RuntimeError):
            pass  # The page went, or sent bytes instead of text.
        except asyncio.CancelledError:
            with contextlib.suppress(Exception):
                await connection.close(1001)
        finally:
            del self._pages[queue]
            sending.cancel()

    async def _answer(self, text: str) -> Frame:
        time = self._whole().time
        if self._obey is None:
            return Frame(time, answer="nothing can be ordered here")
        try:
            return Frame(time, answer=await self._obey(_order(text)))
        except (TopicweaveError, msgspec.DecodeError) as error:
            return Frame(time, answer=str(error))


async def _send(connection: WebSocket, queue: asyncio.Queue[bytes]) -> None:
    while True:
        await connection.send_text((await queue.get()).decode())


class NodeShow:
    """What one node sees of the overlay. It is looked at only while a page looks."""

    def __init__(self, node: LiveNode) -> None:
        self._node = node
        self._picture = Picture("")
        self._show = Show(self._whole)
        self._ticking: asyncio.Task[None] | None = None

    def _whole(self) -> Frame:
        return self._picture.whole(self._node.clock.now)

    async def attend(self, connection: WebSocket) -> None:
        if self._ticking is None:
            self._picture = Picture(f"{self._node.name} and the nodes it is linked to")
            self._ticking = asyncio.create_task(self._keep_looking())
        await self._show.attend(connection)
        if not self._show.pages:
            self.stop()

    async def _keep_looking(self) -> None:
        watch = Watch(self._node)
        try:
            while True:
                if (tick := watch.tick()) is not None:
                    self._picture.take(tick)
                self._show.tell(self._picture.frame(self._node.clock.now))
                await asyncio.sleep(TICK)
        finally:
            watch.stop()

    def stop(self) -> None:
        self._show.stop()
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None
