"""A node that runs elsewhere, as an application holds it in its hands: typed, and connected again whenever
the connection is lost.

After a loss its topics are subscribed to again, with what came since the last word of the node; what had come
already is left out. What was published and not answered is not published again: nobody knows whether it went
out.
"""

from __future__ import annotations

import asyncio
import base64
import random
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, WebSocketException

from topicweave.client.through import opened, unreachable, url_of
from topicweave.client.words import (
    MOST_TOPICS,
    EventJson,
    Gap,
    Incomplete,
    Payload,
    PublishRequest,
    ReceiptJson,
    Reply,
    Request,
    as_payload,
)
from topicweave.errors import TopicweaveError

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
"""Seconds between two attempts to reconnect."""
PING_EVERY = 10.0
"""A node that does not answer a ping within the same time again counts as lost."""
OVERLAP = 10.0
"""After a lost connection, ask for events from this many seconds before the node's last word on: some may
have been on their way.
"""
REMEMBERED = 65_536
"""How many events the client remembers, to leave out those that come again."""
MOST_UNREAD = 10_000
REFUSED = (401, 403)
"""HTTP answers after which a client does not try again."""

_to_json = msgspec.json.Encoder().encode
_reply = msgspec.json.Decoder(Reply).decode


class _Lost(TopicweaveError):
    """The connection ended before the answer came."""


class _Refused(TopicweaveError):
    """The node refuses this client."""


class RemoteNode:
    """A client of one node, for the length of an `async with` block. The first connection must succeed. Later
    ones are retried without end.

    address         the node's HTTP address, as the node prints it; `https://…` if a proxy adds TLS
    on_gap          called with events that will not come; the reason `unread` means events beyond `most_unread`
                    that the program did not read
    on_incomplete   called with patterns some of whose topics are unknown
    on_state        called when the connection comes (True) and goes (False), with the reason
    """

    def __init__(
        self,
        address: str,
        *,
        token: str = "",
        on_gap: Callable[[Gap], None] | None = None,
        on_state: Callable[[bool, str], None] | None = None,
        on_incomplete: Callable[[Incomplete], None] | None = None,
        most_unread: int = MOST_UNREAD,
    ) -> None:
        self.address = address
        self._token = token
        self._on_gap = on_gap or (lambda gap: None)
        self._on_state = on_state or (lambda connected, why: None)
        self._on_incomplete = on_incomplete or (lambda incomplete: None)
        self._most_unread = most_unread
        self._topics: set[str] = set()
        self._events: deque[EventJson] = deque()
        self._some = asyncio.Event()
        self._seen: OrderedDict[tuple[str, str, int, int], None] = OrderedDict()
        self._socket: ClientConnection | None = None
        self._up = asyncio.Event()
        self._end: TopicweaveError | None = None
        self._asking = asyncio.Lock()
        self._waiting: deque[asyncio.Future[Reply]] = deque()
        self._heard = 0.0  # the last word of the node, on the monotonic clock
        self._ahead: float | None = None  # the node's clock, less the monotonic one
        self._pause = FIRST_PAUSE
        self._keeping: asyncio.Task[None] | None = None

    async def __aenter__(self) -> RemoteNode:
        try:
            socket = await self._connect()
        except (OSError, WebSocketException) as error:
            raise self._why_not(error) from None
        self._keeping = asyncio.create_task(self._keep_connected(socket))
        await self._up.wait()
        if self._end is not None:
            raise self._end
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Go, for good. Readers get what is there, and end."""
        self._finish(TopicweaveError(f"the client of node {self.address} is closed"))
        if self._keeping is not None:
            self._keeping.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeping

    # What applications do.

    @property
    def connected(self) -> bool:
        return self._socket is not None

    @property
    def subscriptions(self) -> list[str]:
        """What is asked for, and asked for again after a loss."""
        return sorted(self._topics)

    async def subscribe(self, *topics: str, last: int = 0, since: float | None = None) -> None:
        """Want topics, or patterns such as `zone/+/door` or `zone/7/#`, and first the `last` events of each,
        or those `since` a moment (Unix time).
        """
        for some in _portions(topics):
            await self._tell(Request(subscribe=some, last=last, since=since))
            self._topics.update(some)

    async def unsubscribe(self, *topics: str) -> None:
        """Want topics no more; of those that are on their way some may still come."""
        self._topics.difference_update(topics)
        for some in _portions(topics):
            await self._tell(Request(unsubscribe=some))

    async def publish(
        self, topic: str, payload: Payload, *, wait_for: int = 0, timeout: float = 5.0, retain: bool = False
    ) -> ReceiptJson:
        """Let the node publish. Waits while there is no connection; if it is lost before the receipt came,
        that is an error, and the event may have gone out.
        """
        encoded = base64.b64encode(as_payload(payload)).decode()
        reply = await self._ask(
            Request(publish=PublishRequest(topic, "", encoded, wait_for, timeout, retain))
        )
        if reply.receipt is None:
            raise TopicweaveError(f"node {self.address} gave no receipt")
        return reply.receipt

    async def events(self) -> AsyncIterator[EventJson]:
        """Events as they come, across losses of the connection; ends when the client is closed."""
        while True:
            while self._events:
                yield self._events.popleft()
            if self._end is not None:
                if isinstance(self._end, _Refused):
                    raise self._end
                return
            self._some.clear()
            await self._some.wait()

    async def health(self) -> dict[str, Any]:
        """How the node is; an error with its reasons if it is not well."""
        return await asyncio.to_thread(self._get, "/health")

    async def view(self) -> dict[str, Any]:
        """What the node knows: links, topics, counters."""
        return await asyncio.to_thread(self._get, "/view")

    def _get(self, path: str) -> dict[str, Any]:
        with opened(self.address, self._token, path) as answer:
            return msgspec.json.decode(answer.read(), type=dict[str, Any])

    # Requests.

    async def _tell(self, request: Request) -> None:
        """Something that may be said twice: said again if the connection is lost meanwhile."""
        while True:
            try:
                await self._ask(request)
            except _Lost:
                continue
            return

    async def _ask(self, request: Request) -> Reply:
        while self._socket is None or not self._up.is_set():
            if self._end is not None:
                raise self._end
            await self._up.wait()
        return await self._say(self._socket, request)

    async def _say(self, socket: ClientConnection, request: Request) -> Reply:
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        async with self._asking:  # Answers come in the order of the questions.
            if socket is not self._socket:
                raise self._lost()
            self._waiting.append(answer)
            with suppress(WebSocketException):  # Whoever reads notices the loss, and tells.
                await socket.send(_to_json(request).decode())
        reply = await answer
        if reply.error is not None:
            raise TopicweaveError(f"node {self.address}: {reply.error}")
        return reply

    def _lost(self) -> TopicweaveError:
        return _Lost(
            f"node {self.address} went away before it answered: nobody knows whether it did what it was asked"
        )

    # The connection.

    async def _connect(self) -> ClientConnection:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        return await connect(
            url_of(self.address, "ws", "/events"),
            additional_headers=headers,
            proxy=None,
            max_size=None,
            ping_interval=PING_EVERY,
            ping_timeout=PING_EVERY,
        )

    def _why_not(self, error: Exception) -> TopicweaveError:
        if isinstance(error, InvalidStatus):
            try:
                reason = msgspec.json.decode(error.response.body or b"", type=Reply).error
            except msgspec.DecodeError:
                reason = None
            why = f"node {self.address}: {reason or error}"
            return (_Refused if error.response.status_code in REFUSED else TopicweaveError)(why)
        return unreachable(self.address, error)

    async def _keep_connected(self, socket: ClientConnection) -> None:
        rng = random.Random()
        while True:
            await self._converse(socket)
            while True:
                # Drawn, so that a crowd of clients does not come back all at once.
                await asyncio.sleep(self._pause * rng.uniform(0.5, 1.0))
                self._pause = min(2 * self._pause, LONGEST_PAUSE)
                try:
                    socket = await self._connect()
                    break
                except (OSError, WebSocketException) as error:
                    why = self._why_not(error)
                    if isinstance(why, _Refused):
                        self._finish(why)
                        return

    async def _converse(self, socket: ClientConnection) -> None:
        self._socket = socket
        # The topics come first: others wait until they are subscribed to.
        again = asyncio.create_task(self._come_back(socket))
        why = "the node closed the connection"
        try:
            async for text in socket:
                self._heard = time.monotonic()
                self._take(_reply(text))
        except (OSError, WebSocketException, msgspec.DecodeError) as error:
            why = str(error)
        finally:
            self._socket = None
            if self._end is None:
                self._up.clear()
            again.cancel()
            lost = self._lost()
            while self._waiting:
                answer = self._waiting.popleft()
                if not answer.done():
                    answer.set_exception(lost)
            await socket.close()
            if self._end is None:
                self._on_state(False, why)

    async def _come_back(self, socket: ClientConnection) -> None:
        since = None if self._ahead is None else self._heard + self._ahead - OVERLAP
        why = ""
        try:
            for some in _portions(sorted(self._topics)):
                await self._say(socket, Request(subscribe=some, since=since))
        except _Lost:
            return
        except TopicweaveError as error:
            why = str(error)
        self._up.set()
        self._pause = FIRST_PAUSE
        self._on_state(True, why)

    def _take(self, reply: Reply) -> None:
        if reply.event is not None:
            self._take_event(reply.event)
        elif reply.gap is not None:
            self._on_gap(reply.gap)
        elif reply.incomplete is not None:
            self._on_incomplete(reply.incomplete)
        elif self._waiting:
            if reply.time is not None:
                self._ahead = reply.time - self._heard
            answer = self._waiting.popleft()
            if not answer.done():
                answer.set_result(reply)

    def _take_event(self, event: EventJson) -> None:
        key = (event.topic, event.publisher, event.epoch, event.sequence)
        if key in self._seen:
            return
        self._seen[key] = None
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        self._events.append(event)
        if len(self._events) > self._most_unread:
            old = self._events.popleft()
            self._on_gap(Gap(old.topic, old.publisher, old.epoch, old.sequence, old.sequence, "unread"))
        self._some.set()

    def _finish(self, end: TopicweaveError) -> None:
        if self._end is None:
            self._end = end
            self._up.set()
            self._some.set()
            if isinstance(end, _Refused):
                self._on_state(False, str(end))


def _portions(topics: Sequence[str]) -> list[list[str]]:
    """As many in each as a request may hold."""
    return [list(topics[start : start + MOST_TOPICS]) for start in range(0, len(topics), MOST_TOPICS)]
