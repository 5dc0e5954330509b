"""WebSockets that tell when their client has read what it was sent: it has answered a ping that came behind it.

A message that was written may wait in buffers of both machines, whoever reads it or not. A WebSocket answers
a ping when it has read all that came before, whatever the application behind it does (RFC 6455, 5.5.2).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request

ASK_AGAIN = 5.0
"""Seconds after which a ping is repeated. Of several pings, a client need answer the last one only."""
MARK = b"read"
"""Begins pings of this kind; uvicorn sends others."""


class ReadSocket(WebSocketsSansIOProtocol):
    """uvicorn's protocol. A handler finds it in its scope, as the state's `socket`."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._asked = 0
        self._answered = 0
        self._news = asyncio.Event()

    async def read_by_client(self) -> bool:
        """Wait until the client has read all that it was sent so far. False: it is gone."""
        self._asked += 1
        number = self._asked
        while self._answered < number:
            if self.disconnected or self.close_sent or self.transport.is_closing():
                return False
            self._news.clear()
            self.conn.send_ping(MARK + number.to_bytes(8, "big"))
            self.transport.write(b"".join(self.conn.data_to_send()))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), ASK_AGAIN)
        return True

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if self.handshake_initiated and not self.close_sent:
            self.scope["state"]["socket"] = self

    def handle_pong(self, event: Frame) -> None:
        answer = bytes(event.data)
        if not answer.startswith(MARK) or len(answer) != len(MARK) + 8:
            super().handle_pong(event)
            return
        number = int.from_bytes(answer[len(MARK) :], "big")
        if self._answered < number <= self._asked:
            self._answered = number
            self._news.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._news.set()
        super().connection_lost(exc)
