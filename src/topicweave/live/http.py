"""A node's HTTP port: health, metrics, view, pages, and a WebSocket for applications in any language.

`/live` and `/ready` answer without a token, and however many connections sit and wait: see `http_crowd`. Who
may use the rest: see `http_server`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from topicweave.client.words import Incomplete, PublishRequest, ReceiptJson, Reply
from topicweave.client.words import Request as SocketRequest
from topicweave.errors import NotKept, TopicweaveError
from topicweave.live import health, metrics, web
from topicweave.live.application import Feed, GapQueue, Received
from topicweave.live.backup import Backups
from topicweave.live.dashboard.showing import NodeShow
from topicweave.live.http_crowd import Crowd
from topicweave.live.http_requests import event_json, openapi, receipt_json
from topicweave.live.http_server import HttpServer, body_of, json_response, to_json
from topicweave.live.http_socket import ReadSocket
from topicweave.live.names import refuse_reserved
from topicweave.live.patterns import split
from topicweave.live.settings import Address
from topicweave.model.pattern_tree import ReaderTopics

if TYPE_CHECKING:
    from topicweave.live.node import LiveNode

MOST_CLIENTS = 256
MOST_REPLAYED = 1_000_000
MOST_UNREAD = 1024
"""Events, to be acknowledged, that a client is sent before it has read those before them."""
MOST_LACKING = 1024
LINGER = 30.0
"""Seconds for which topics of a client that was lost, and did not close, are wanted on: it will come back,
and ask for what came meanwhile.
"""

_publish_request = msgspec.json.Decoder(PublishRequest).decode
_socket_request = msgspec.json.Decoder(SocketRequest).decode


class HttpPort:
    """Serves one node."""

    def __init__(self, node: LiveNode) -> None:
        self._node = node
        self._clients: set[asyncio.Task[Any]] = set()
        self._lingering: set[asyncio.Task[None]] = set()
        self._backups = Backups()
        self._stopping = False
        self._show = NodeShow(node)
        wanted = Address.parse(node.settings.http)
        self._server = HttpServer(wanted, node.settings.token, self._routes())

    @property
    def address(self) -> Address:
        return self._server.address

    @property
    def crowd(self) -> Crowd:
        return self._server.crowd

    @property
    def clients(self) -> int:
        """WebSocket clients at the moment."""
        return len(self._clients)

    async def start(self) -> None:
        await self._server.start()

    async def stop(self) -> None:
        self._stopping = True
        for task in [*self._clients, *self._lingering]:
            task.cancel()
        self._show.stop()
        await self._server.stop()

    def _routes(self) -> list[BaseRoute]:
        return [
            *web.routes(),
            Route("/openapi.json", self._openapi),
            Route("/live", self._alive),
            Route("/ready", self._ready),
            Route("/health", self._health),
            Route("/metrics", self._metrics),
            Route("/view", self._view),
            Route("/backup", self._backup),
            Route("/publish", self._publish, methods=["POST"]),
            Route("/subscriptions/{topic:path}", self._subscribe, methods=["PUT"]),
            Route("/subscriptions/{topic:path}", self._unsubscribe, methods=["DELETE"]),
            WebSocketRoute("/events", self._events),
            WebSocketRoute("/watch", self._show.attend),
        ]

    # Reading.

    async def _openapi(self, _request: Request) -> Response:
        return json_response(openapi())

    async def _alive(self, _request: Request) -> Response:
        """Whether the process serves at all."""
        return json_response({"live": True})

    async def _ready(self, _request: Request) -> Response:
        """Whether it serves events: 200 or 503, and one word why."""
        status = health.readiness(self._node)
        return json_response({"ready": status == "ok", "status": status}, 200 if status == "ok" else 503)

    async def _health(self, _request: Request) -> Response:
        state = health.health(self._node)
        return json_response(state, 200 if state["status"] == "ok" else 503)

    async def _metrics(self, _request: Request) -> Response:
        return Response(metrics.exposition(self._node), media_type="text/plain; version=0.0.4")

    async def _view(self, _request: Request) -> Response:
        return json_response(health.view(self._node))

    async def _backup(self, _request: Request) -> Response:
        """A copy of the data folder, made while the node goes on."""
        try:
            size, chunks = await self._backups.copy(self._node.disk, self._node.settings.data)
        except TopicweaveError as error:
            return json_response(Reply(error=str(error)), 400)
        headers = {"content-length": str(size)}
        return StreamingResponse(chunks, media_type="application/vnd.sqlite3", headers=headers)

    # Doing.

    async def _publish(self, request: Request) -> Response:
        body = await body_of(request)
        try:
            return json_response(await self._publish_for(_publish_request(body)))
        except (TopicweaveError, msgspec.DecodeError, UnicodeDecodeError) as error:
            return json_response(Reply(error=str(error)), 400)

    async def _publish_for(self, request: PublishRequest) -> ReceiptJson:
        receipt = await self._node.publish(
            request.topic,
            request.payload(),
            wait_for=request.wait_for,
            timeout=request.timeout,
            retain=request.retain,
        )
        return receipt_json(receipt)

    async def _subscribe(self, request: Request) -> Response:
        return await self._change(request, True)

    async def _unsubscribe(self, request: Request) -> Response:
        return await self._change(request, False)

    async def _change(self, request: Request, subscribe: bool) -> Response:
        topic = request.path_params["topic"]
        try:
            await (self._node.subscribe(topic) if subscribe else self._node.unsubscribe(topic))
        except NotKept as error:
            return json_response(Reply(error=str(error)), 503)
        except TopicweaveError as error:
            return json_response(Reply(error=str(error)), 400)
        return json_response(Reply(subscriptions=[*self._node.subscriptions, *self._node.patterns.wanted]))

    # The WebSocket.

    async def _events(self, connection: WebSocket) -> None:
        if len(self._clients) >= MOST_CLIENTS:
            await connection.send_denial_response(
                json_response(Reply(error=f"{MOST_CLIENTS} clients are connected"), 503)
            )
            return
        await connection.accept()
        topics = ReaderTopics()
        gaps = GapQueue()
        lacking: asyncio.Queue[Incomplete] = asyncio.Queue(MOST_LACKING)
        feed = self._node.open_feed((), on_gap=gaps.put)
        feed.topics = topics
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)

        unread: asyncio.Queue[Received] = asyncio.Queue(MOST_UNREAD)

        async def send_events() -> None:
            gate = self._node.world.gate
            async for event in feed:
                if event.again and not gate.awaits(self._node.event_id(event)):
                    continue  # It was acknowledged while this copy waited here.
                await connection.send_text(to_json(Reply(event=event_json(event))).decode())
                if gate.at_least_once:
                    await unread.put(msgspec.structs.replace(event, payload=b""))

        async def send_gaps() -> None:
            while True:
                for gap in await gaps.get_all():
                    await connection.send_text(to_json(Reply(gap=gap)).decode())

        def tell(incomplete: Incomplete) -> None:
            if topics.said(incomplete.pattern):
                with contextlib.suppress(asyncio.QueueFull):  # The node's log and view tell, too.
                    lacking.put_nowait(incomplete)

        async def send_lacking() -> None:
            while True:
                await connection.send_text(to_json(Reply(incomplete=await lacking.get())).decode())

        lost = False
        tell_no_more = self._node.on_incomplete(tell)
        sending = asyncio.create_task(
            _together(send_events(), send_gaps(), send_lacking(), self._acknowledge(connection, unread))
        )
        try:
            while True:
                known = set(topics)
                reply = await self._answer(await connection.receive_text(), topics, feed)
                for pattern in set(topics) - known:
                    for one in self._node.patterns.lacking(pattern):
                        tell(one)
                await connection.send_text(to_json(reply).decode())
        except WebSocketDisconnect as gone:
            lost = gone.code not in (1000, 1001)
        except (KeyError, RuntimeError):
            pass  # The client sent bytes instead of text.
        except asyncio.CancelledError:
            with contextlib.suppress(Exception):
                await connection.close(1001)
        finally:
            self._clients.discard(task)
            tell_no_more()
            sending.cancel()
            self._node.close_feed(feed)
            if self._stopping:
                pass  # What its client has not read comes again after the restart.
            elif lost and len(self._lingering) < MOST_CLIENTS:
                waiting = asyncio.create_task(self._linger(list(topics)))
                self._lingering.add(waiting)
                waiting.add_done_callback(self._lingering.discard)
            else:
                await self._want_less(list(topics))

    async def _acknowledge(self, connection: WebSocket, unread: asyncio.Queue[Received]) -> None:
        """What the client has read. Others get the rest, or the client gets it again."""
        socket: ReadSocket = connection.state.socket
        while True:
            events = [await unread.get()]
            while not unread.empty():
                events.append(unread.get_nowait())
            if not await socket.read_by_client():
                return
            for event in events:
                await self._node.acknowledge(event)

    async def _linger(self, topics: list[str]) -> None:
        await asyncio.sleep(LINGER)
        await self._want_less(topics)

    async def _answer(self, text: str, topics: ReaderTopics, feed: Feed) -> Reply:
        """Carry out a client's request; `topics` are those of its feed."""
        try:
            request = _socket_request(text)
            if request.subscribe:
                await self._want_more(
                    request, [one for one in request.subscribe if not topics.said(one)], topics, feed
                )
            if request.unsubscribe:
                done = [topic for topic in dict.fromkeys(request.unsubscribe) if topics.said(topic)]
                topics.difference_update(done)
                await self._want_less(done)
            if request.publish is not None:
                return Reply(receipt=await self._publish_for(request.publish))
            return Reply(subscriptions=sorted(topics), time=self._node.clock.now)
        except (TopicweaveError, msgspec.DecodeError) as error:
            return Reply(error=str(error))

    async def _want_more(
        self, request: SocketRequest, new: list[str], topics: ReaderTopics, feed: Feed
    ) -> None:
        """A client wants topics; what the node itself holds of them it gets at once, if it asks for it."""
        had = set(self._node.subscriptions)
        refuse_reserved(new)
        names, patterns = split(new)
        self._node.patterns.check_all(patterns)
        for name in names:
            self._node.check_permission(name)
        # The feed first: what is caught up at once must not be missed.
        topics.update(new)
        if request.last or request.since is not None:
            for topic in (*(name for name in names if name in had), *patterns):
                self._node.replay(feed, topic, request.last or MOST_REPLAYED, request.since or 0.0)
        await self._node.patterns.more(patterns, last=request.last, since=request.since)
        await self._node.wanting.more(names, last=request.last, since=request.since)

    async def _want_less(self, topics: list[str]) -> None:
        names, patterns = split(topics)
        await self._node.patterns.less(patterns)
        await self._node.wanting.less(names)


async def _together(*work: Coroutine[Any, Any, None]) -> None:
    """When the client is gone, what is sent fails: nobody has to be told."""
    await asyncio.gather(*work, return_exceptions=True)
