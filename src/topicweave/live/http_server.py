"""An HTTP server for one machine's users: which requests may come in, and what happens to the others. Its
owner decides what it serves.

On loopback no token is needed. Then only pages of this port may use it, so that no web page that a user
visits can reach it through the browser (the Origin and Host headers tell). Elsewhere a token is needed.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import socket
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from topicweave.client.words import Reply
from topicweave.errors import BadInput
from topicweave.live import web
from topicweave.live.http_crowd import Crowd, Guesses, crowded_protocol
from topicweave.live.http_socket import ReadSocket
from topicweave.live.settings import Address

MOST_BODY = 2 * 1024 * 1024
GRACE = 1.0
"""Seconds that requests have when the server stops."""
BODY_SECONDS = 30.0
"""For a request's body to come."""
OPEN_PATHS = frozenset({"/live", "/ready", *web.ASSETS})
"""Without a token: what whoever keeps the process running asks, and what pages are made of."""

to_json = msgspec.json.Encoder().encode


class _Server(uvicorn.Server):
    """Leaves the process's signals to the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield


class HttpServer:
    """Serves its owner's routes until it is stopped."""

    def __init__(self, wanted: Address, token: str, routes: Sequence[BaseRoute]) -> None:
        self._wanted = wanted
        self._token = token
        self._application = Starlette(
            routes=routes,
            middleware=[Middleware(_Doorkeeper, server=self)],
            exception_handlers={HTTPException: _explain},
        )
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None
        self.stopping = False
        self.crowd = Crowd()
        self._guesses = Guesses()
        self.address = Address("127.0.0.1", 0)

    async def start(self) -> None:
        wanted = self._wanted
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
            self._application,
            lifespan="off",
            log_level="warning",
            access_log=False,
            ws=ReadSocket,
            ws_max_size=MOST_BODY,
            http=crowded_protocol(self.crowd),
            backlog=1024,
            timeout_graceful_shutdown=int(10 * GRACE),
        )
        self._server = _Server(config)
        self._serving = asyncio.create_task(self._server.serve(sockets=[listening]))
        while not self._server.started and not self._serving.done():
            await asyncio.sleep(0.005)

    async def stop(self) -> None:
        """Requests have a moment to end; then clients that read nothing are cut off, and the rest is cancelled."""
        if self._server is None or self._serving is None:
            return
        self._server.should_exit = True
        await asyncio.wait([self._serving], timeout=GRACE)
        self.stopping = True
        state = self._server.server_state
        for protocol in list(state.connections):
            protocol.transport.abort()
        await asyncio.wait([self._serving], timeout=GRACE / 5)
        for task in list(state.tasks):
            task.cancel()
        await self._serving

    def refusal(self, connection: HTTPConnection) -> tuple[int, str] | None:
        """Why a client may not come in, if so."""
        if connection.url.path in OPEN_PATHS:
            return None
        refusal = self._token_refusal(connection) if self._token else _foreign(connection)
        if refusal is None and not _is_text(connection.scope.get("raw_path", b"")):
            return 400, "the path is not UTF-8: write each byte of a topic's name in UTF-8 as %XX"
        return refusal

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


def _foreign(connection: HTTPConnection) -> tuple[int, str] | None:
    """Why a request without a token does not come from here, if so."""
    origin = connection.headers.get("origin")
    host = connection.headers.get("host", "")
    if not _is_loopback(host) or (origin is not None and origin != f"http://{host}"):
        return 403, "without a token, only this machine and this port's own pages may come in"
    return None


class _Doorkeeper:
    """Asks every connection, HTTP or WebSocket, before anything else sees it."""

    def __init__(self, app: ASGIApp, server: HttpServer) -> None:
        self._app = app
        self._owner = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = (
            self._owner.refusal(HTTPConnection(scope)) if scope["type"] in ("http", "websocket") else None
        )
        if refusal is None:
            if scope.get("path") not in OPEN_PATHS:
                receive = self._let_in(scope, receive)
            try:
                await self._app(scope, receive, send)
            except asyncio.CancelledError:
                if not self._owner.stopping:  # Then it is no failure.
                    raise
        else:  # A WebSocket, too, is refused with a status and a reason.
            await json_response(Reply(error=refusal[1]), refusal[0])(scope, receive, send)

    def _let_in(self, scope: Scope, receive: Receive) -> Receive:
        """A client leaves the crowd when its request is whole. Until then it is one of those who sit and wait."""
        crowd, client = self._owner.crowd, scope.get("client")
        if not _has_body(scope):
            crowd.let_in(client)
            return receive

        async def received() -> Message:
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body"):
                crowd.let_in(client)
            return message

        return received


async def body_of(request: Request) -> bytes:
    """A request's whole body, in time."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MOST_BODY:
                    raise HTTPException(413, f"more than {MOST_BODY} bytes")
    except TimeoutError:
        reason = f"the request was not whole after {BODY_SECONDS:g} s"
        raise HTTPException(408, reason, {"connection": "close"}) from None
    except ClientDisconnect:
        raise HTTPException(400, "the client went away") from None
    return bytes(body)


async def _explain(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    response = json_response(Reply(error=error.detail), error.status_code)
    response.headers.update(error.headers or {})
    return response


def json_response(value: object, status: int = 200) -> Response:
    return Response(to_json(value), status, media_type="application/json")


def _has_body(scope: Scope) -> bool:
    if scope["type"] != "http":
        return False
    headers = Headers(scope=scope)
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def _is_text(path: bytes) -> bool:
    """Whether a path, as it came, means text."""
    try:
        unquote_to_bytes(path).decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    name = name.removeprefix("[").removesuffix("]")
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
