"""Connections to the HTTP port without a permitted request: bounded, and never in the way of permitted ones.

If there is one more, the oldest one of the address with most of them is closed (`admission`). A connection
with a whole and permitted request is out of the crowd until its answer is complete. Wrong tokens are counted by
address: after a few, further attempts wait.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from topicweave.live.admission import HalfOpen

log = logging.getLogger("topicweave.live")

MOST_IDLE = 256
IDLE_SECONDS = 15.0
FREE_GUESSES = 10
GUESS_EVERY = 1.0
"""Seconds between two guesses, once the free ones are used up."""
MOST_ADDRESSES = 4096


class Crowd:
    """All connections of one HTTP port that nobody answers for."""

    def __init__(self, most: int = MOST_IDLE) -> None:
        self._waiting: HalfOpen[tuple[str, int]] = HalfOpen(most)
        self._protocols: dict[tuple[str, int], Any] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def came(self, protocol: Any) -> None:
        """A connection is new, or its request is answered."""
        client = protocol.client
        if client is None:
            return
        self._protocols[client] = protocol
        self._waiting.remove(client)
        goes = self._waiting.add(client, client[0])
        if goes is not None and (gone := self._protocols.pop(goes, None)) is not None:
            gone.transport.abort()

    def let_in(self, client: tuple[str, int] | None) -> None:
        if client is not None:
            self._waiting.remove((client[0], client[1]))

    def left(self, protocol: Any) -> None:
        client = protocol.client
        if self._protocols.get(client) is protocol:
            del self._protocols[client]
            self._waiting.remove(client)

    def waits(self, protocol: Any) -> bool:
        return protocol.client in self._waiting and self._protocols.get(protocol.client) is protocol


def crowded_protocol(crowd: Crowd) -> type[asyncio.Protocol]:
    """uvicorn's protocol, with its connections in a crowd."""

    class CrowdedProtocol(H11Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            crowd.came(self)
            self.loop.call_later(IDLE_SECONDS, self._too_long)

        def connection_lost(self, exc: Exception | None) -> None:
            crowd.left(self)
            super().connection_lost(exc)

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if not self.transport.is_closing():
                crowd.came(self)

        def handle_websocket_upgrade(self, event: Any) -> None:
            crowd.left(self)
            super().handle_websocket_upgrade(event)

        def _too_long(self) -> None:
            if crowd.waits(self) and self.cycle is None:
                self.transport.abort()

    return CrowdedProtocol


class Guesses:
    """Wrong tokens by address. No I/O, no clock."""

    def __init__(self) -> None:
        self._wrong: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def may_try(self, address: str, now: float) -> bool:
        wrong, at = self._wrong.get(address, (0.0, now))
        return wrong - (now - at) / GUESS_EVERY < FREE_GUESSES

    def wrong(self, address: str, now: float) -> None:
        wrong, at = self._wrong.pop(address, (0.0, now))
        wrong = max(0.0, wrong - (now - at) / GUESS_EVERY) + 1.0
        self._wrong[address] = (wrong, now)
        if len(self._wrong) > MOST_ADDRESSES:
            self._wrong.popitem(last=False)
        if wrong in (1.0, float(FREE_GUESSES)):
            log.warning("a wrong token from %s (%d so far)", address, int(wrong))
