"""A node's HTTP port: health, metrics, view, and a WebSocket for applications in any language.

`/live` and `/ready` answer without a token, and however many connections sit and wait: see `http_crowd`.

On loopback no token is needed; then only pages of this port itself may use it, so that no web page a user happens to visit can reach the
node through the browser (the Origin and Host headers tell). Elsewhere a token is a must.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import socket
from typing import TYPE_CHECKING, Any

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from topicweave.client.words import PublishRequest, ReceiptJson, Reply
from topicweave.client.words import Request as SocketRequest
from topicweave.errors import BadInput, TopicweaveError
from topicweave.live import health, metrics, web
from topicweave.live.application import Feed, GapQueue
from topicweave.live.backup import Backups
from topicweave.live.http_crowd import Crowd, Guesses, crowded_protocol
from topicweave.live.http_requests import event_json, openapi, receipt_json
from topicweave.live.settings import Address

if TYPE_CHECKING:
    from topicweave.live.node import LiveNode

MOST_BODY = 2 * 1024 * 1024
MOST_CLIENTS = 256
MOST_REPLAYED = 1_000_000
LINGER = 30.0
"""Seconds for which topics of a client that was lost, and did not close, are wanted on: it will come back, and ask for what came meanwhile."""
OPEN_PATHS = frozenset({"/live", "/ready", *web.ASSETS})
"""Without a token: what whoever keeps the process running asks, and what pages are made of."""

_to_json = msgspec.json.Encoder().encode
_publish_request = msgspec.json.Decoder(PublishRequest).decode
_socket_request = msgspec.json.Decoder(SocketRequest).decode


class _Server(uvicorn.Server):
    """Leaves the process's signals to the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield


class HttpPort:
    """Serves one node."""

    def __init__(self, node: LiveNode) -> None:
        self._node = node
        self._token = node.settings.token
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None
        self._clients: set[asyncio.Task[Any]] = set()
        self._lingering: set[asyncio.Task[None]] = set()
        self.crowd = Crowd()
        self._guesses = Guesses()
        self._backups = Backups()
        self.address = Address("127.0.0.1", 0)

    @property
    def clients(self) -> int:
        """WebSocket clients at the moment."""
        return len(self._clients)

    async def start(self) -> None:
        wanted = Address.parse(self._node.settings.http)
        family = socket.AF_INET6 if ":" in wanted.host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((wanted.host, wanted.port))
        except OSError as error:
            listening.close()
            raise BadInput(f"cannot serve HTTP on {wanted}: {error.strerror}") from None
        self.address = Address(wanted.host, listening.getsockname()[1])
        config = uvicorn.Config(
            self._application(),
            lifespan="off",
            log_level="warning",
            access_log=False,
            ws="websockets-sansio",
            ws_max_size=MOST_BODY,
            http=crowded_protocol(self.crowd),
            backlog=1024,
            timeout_graceful_shutdown=1,
        )
        self._server = _Server(config)
        self._serving = asyncio.create_task(self._server.serve(sockets=[listening]))
        while not self._server.started and not self._serving.done():
            await asyncio.sleep(0.005)

    async def stop(self) -> None:
        for task in [*self._clients, *self._lingering]:
            task.cancel()
        if self._server is not None and self._serving is not None:
            self._server.should_exit = True
            await self._serving

    def _application(self) -> Starlette:
        return Starlette(
            routes=[
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
            ],
            middleware=[Middleware(_Doorkeeper, port=self)],
        )

    def refusal(self, connection: HTTPConnection) -> tuple[int, str] | None:
        """Why a client may not come in, if so."""
        if connection.url.path in OPEN_PATHS:
            return None
        if self._token:
            return self._token_refusal(connection)
        origin = connection.headers.get("origin")
        host = connection.headers.get("host", "")
        if not _is_loopback(host) or (origin is not None and origin != f"http://{host}"):
            return 403, "without a token, only this machine and this port's own pages may come in"
        return None

    def _token_refusal(self, connection: HTTPConnection) -> tuple[int, str] | None:
        address = connection.client.host if connection.client else ""
        now = asyncio.get_running_loop().time()
        if not self._guesses.may_try(address, now):
            return 429, "too many wrong tokens from this address; try again in a second"
        header = connection.headers.get("authorization", "").removeprefix("Bearer ")
        given = header or connection.query_params.get("token", "")
        if hmac.compare_digest(given.encode(), self._token.encode()):
            return None
        if given:
            self._guesses.wrong(address, now)
        return 401, "the token is missing or wrong"

    # Reading.

    async def _openapi(self, _request: Request) -> Response:
        return _json(openapi())

    async def _alive(self, _request: Request) -> Response:
        """Whether the process serves at all."""
        return _json({"live": True})

    async def _ready(self, _request: Request) -> Response:
        """Whether it is of use: 200 or 503, and one word why."""
        status = health.health(self._node)["status"]
        return _json({"ready": status == "ok", "status": status}, 200 if status == "ok" else 503)

    async def _health(self, _request: Request) -> Response:
        state = health.health(self._node)
        return _json(state, 200 if state["status"] == "ok" else 503)

    async def _metrics(self, _request: Request) -> Response:
        return Response(metrics.exposition(self._node), media_type="text/plain; version=0.0.4")

    async def _view(self, _request: Request) -> Response:
        return _json(health.view(self._node))

    async def _backup(self, _request: Request) -> Response:
        """A copy of the data folder, made while the node goes on."""
        try:
            size, chunks = await self._backups.copy(self._node.disk, self._node.settings.data)
        except TopicweaveError as error:
            return _json(Reply(error=str(error)), 400)
        headers = {"content-length": str(size)}
        return StreamingResponse(chunks, media_type="application/vnd.sqlite3", headers=headers)

    # Doing.

    async def _publish(self, request: Request) -> Response:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_BODY:
                return _json(Reply(error=f"more than {MOST_BODY} bytes"), 413)
        try:
            return _json(await self._publish_for(_publish_request(bytes(body))))
        except (TopicweaveError, msgspec.DecodeError) as error:
            return _json(Reply(error=str(error)), 400)

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
        except TopicweaveError as error:
            return _json(Reply(error=str(error)), 400)
        return _json(Reply(subscriptions=self._node.subscriptions))

    # The WebSocket.

    async def _events(self, connection: WebSocket) -> None:
        if len(self._clients) >= MOST_CLIENTS:
            await connection.send_denial_response(
                _json(Reply(error=f"{MOST_CLIENTS} clients are connected"), 503)
            )
            return
        await connection.accept()
        topics: set[str] = set()
        gaps = GapQueue()
        feed = self._node.open_feed((), on_gap=gaps.put)
        feed.topics = topics
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)

        async def send_events() -> None:
            async for event in feed:
                await connection.send_text(_to_json(Reply(event=event_json(event))).decode())
                if self._node.world.gate.at_least_once:
                    await self._node.acknowledge(event)

        async def send_gaps() -> None:
            while True:
                for gap in await gaps.get_all():
                    await connection.send_text(_to_json(Reply(gap=gap)).decode())

        lost = False
        senders = [asyncio.create_task(send_events()), asyncio.create_task(send_gaps())]
        try:
            while True:
                reply = await self._answer(await connection.receive_text(), topics, feed)
                await connection.send_text(_to_json(reply).decode())
        except WebSocketDisconnect as gone:
            lost = gone.code not in (1000, 1001)
        except (KeyError, RuntimeError):
            pass  # The client sent bytes instead of text.
        except asyncio.CancelledError:
            with contextlib.suppress(Exception):
                await connection.close(1001)
        finally:
            self._clients.discard(task)
            for sender in senders:
                sender.cancel()
            self._node.close_feed(feed)
            if lost and len(self._lingering) < MOST_CLIENTS:
                waiting = asyncio.create_task(self._linger(list(topics)))
                self._lingering.add(waiting)
                waiting.add_done_callback(self._lingering.discard)
            else:
                await self._node.wanting.less(list(topics))

    async def _linger(self, topics: list[str]) -> None:
        await asyncio.sleep(LINGER)
        await self._node.wanting.less(topics)

    async def _answer(self, text: str, topics: set[str], feed: Feed) -> Reply:
        """Carry out a client's request; `topics` are those of its feed."""
        try:
            request = _socket_request(text)
            if request.subscribe:
                await self._want_more(
                    request, [one for one in request.subscribe if one not in topics], topics, feed
                )
            if request.unsubscribe:
                done = [topic for topic in dict.fromkeys(request.unsubscribe) if topic in topics]
                topics.difference_update(done)
                await self._node.wanting.less(done)
            if request.publish is not None:
                return Reply(receipt=await self._publish_for(request.publish))
            return Reply(subscriptions=sorted(topics), time=self._node.clock.now)
        except (TopicweaveError, msgspec.DecodeError) as error:
            return Reply(error=str(error))

    async def _want_more(self, request: SocketRequest, new: list[str], topics: set[str], feed: Feed) -> None:
        """A client wants topics; what the node itself holds of them it gets at once, if it asks for it."""
        had = set(self._node.subscriptions)
        # The feed first: what is caught up at once must not be missed.
        topics.update(new)
        if request.last or request.since is not None:
            for topic in dict.fromkeys(new):
                if topic in had:
                    self._node.replay(feed, topic, request.last or MOST_REPLAYED, request.since or 0.0)
        await self._node.wanting.more(new, last=request.last, since=request.since)


class _Doorkeeper:
    """Asks every connection, HTTP or WebSocket, before anything else sees it."""

    def __init__(self, app: ASGIApp, port: HttpPort) -> None:
        self._app = app
        self._port = port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = (
            self._port.refusal(HTTPConnection(scope)) if scope["type"] in ("http", "websocket") else None
        )
        if refusal is None:
            if scope.get("path") not in OPEN_PATHS:
                self._port.crowd.let_in(scope.get("client"))
            await self._app(scope, receive, send)
        else:  # A WebSocket, too, is refused with a status and a reason.
            await _json(Reply(error=refusal[1]), refusal[0])(scope, receive, send)


def _json(value: object, status: int = 200) -> Response:
    return Response(_to_json(value), status, media_type="application/json")


def _is_loopback(host: str) -> bool:
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    name = name.removeprefix("[").removesuffix("]")
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
