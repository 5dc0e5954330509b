"""What HTTP and WebSocket clients say to a node, and what it answers: typed, so that it is checked and described once."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any

import msgspec

from topicweave import __version__
from topicweave.errors import BadInput
from topicweave.live.application import Gap, Receipt, Received

Topic = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
Topics = Annotated[list[Topic], msgspec.Meta(max_length=10_000)]


class PublishRequest(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """An event to publish: `text`, or any bytes as `base64`."""

    topic: Topic
    text: str = ""
    base64: str = ""
    wait_for: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    timeout: Annotated[float, msgspec.Meta(ge=0, le=60)] = 5.0
    retain: bool = False

    def payload(self) -> bytes:
        if not self.base64:
            return self.text.encode()
        try:
            return base64.b64decode(self.base64, validate=True)
        except binascii.Error as error:
            raise BadInput(f"base64: {error}") from None


class Request(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A WebSocket message to the node: one of these. With `subscribe`: `last` events of each topic, or those `since` a moment (Unix time)."""

    subscribe: Topics | None = None
    last: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    since: float | None = None
    unsubscribe: Topics | None = None
    publish: PublishRequest | None = None


class EventJson(msgspec.Struct, omit_defaults=True):
    """An event as clients get it: `text` if its payload is UTF-8, else `base64`."""

    topic: str
    publisher: str
    epoch: int
    sequence: int
    text: str | None = None
    base64: str | None = None

    @classmethod
    def of(cls, event: Received) -> EventJson:
        text = encoded = None
        try:
            text = event.payload.decode()
        except UnicodeDecodeError:
            encoded = base64.b64encode(event.payload).decode()
        return cls(event.topic, event.publisher, event.epoch, event.sequence, text, encoded)


class ReceiptJson(msgspec.Struct):
    neighbours: int
    accepted: int
    refused: dict[str, int]
    reason: str
    sequence: int
    epoch: int

    @classmethod
    def of(cls, receipt: Receipt) -> ReceiptJson:
        event = receipt.event
        return cls(
            receipt.neighbours, receipt.accepted, receipt.refused, receipt.reason, event.sequence, event.epoch
        )


class Reply(msgspec.Struct, omit_defaults=True):
    """A WebSocket message from the node: an event, a gap (events that will not come), or the answer to the oldest request not yet answered."""

    event: EventJson | None = None
    gap: Gap | None = None
    receipt: ReceiptJson | None = None
    subscriptions: list[str] | None = None
    error: str | None = None


def openapi() -> dict[str, Any]:
    """The OpenAPI 3.1 description."""
    (publish, receipt, request, reply), schemas = msgspec.json.schema_components(
        [PublishRequest, ReceiptJson, Request, Reply], ref_template="#/components/schemas/{name}"
    )
    topic = {"name": "topic", "in": "path", "required": True, "schema": {"type": "string"}}
    token = {"name": "token", "in": "query", "schema": {"type": "string"}}
    published = {"200": _json("the receipt", receipt), "400": _json("what is wrong with the request")}
    wanted = {"200": _json("all topics wanted")}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Topicweave node", "version": __version__},
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
        "paths": {
            "/live": {
                "get": {"summary": "Whether the process serves", "responses": {"200": _json("it does")}}
            },
            "/ready": {
                "get": {
                    "summary": "Whether the node is of use; no token is asked for",
                    "responses": {"200": _json("it is"), "503": _json("it is not, and a word why")},
                }
            },
            "/health": {
                "get": _guarded(
                    "How the node is", {"200": _json("it is well"), "503": _json("it is alone or failing")}
                )
            },
            "/metrics": {
                "get": _guarded(
                    "Figures in Prometheus' text format",
                    {"200": {"description": "the figures", "content": {"text/plain": {}}}},
                )
            },
            "/view": {
                "get": _guarded(
                    "Links with kinds, topics, caches, counters", {"200": _json("the node's view")}
                )
            },
            "/backup": {
                "get": _guarded(
                    "A copy of the data folder's file, made while the node goes on",
                    {
                        "200": {
                            "description": "the copy",
                            "content": {"application/vnd.sqlite3": {}},
                        },
                        "400": _json("there is no data folder, or it cannot be copied"),
                    },
                )
            },
            "/publish": {
                "post": {
                    **_guarded("Publish an event", published),
                    "requestBody": {"required": True, "content": {"application/json": {"schema": publish}}},
                }
            },
            "/subscriptions/{topic}": {
                "parameters": [topic],
                "put": _guarded("Want a topic", wanted),
                "delete": _guarded("Want a topic no more", wanted),
            },
            "/events": {
                "get": {
                    **_guarded(
                        "WebSocket: publish and subscribe", {"101": {"description": "the WebSocket is open"}}
                    ),
                    "description": "Text messages in JSON. To the node: `Request`; from the node: `Reply`.",
                    "parameters": [token],
                    "x-websocket": {"receives": request, "sends": reply},
                }
            },
        },
    }


def _json(text: str, schema: Any = None) -> dict[str, Any]:
    content = {"application/json": {"schema": schema or {"type": "object"}}}
    return {"description": text, "content": content}


def _guarded(summary: str, responses: dict[str, Any]) -> dict[str, Any]:
    """A path that asks for a token, and looks at where the request comes from."""
    refused = {
        "401": {"description": "the token is missing or wrong"},
        "403": {"description": "not from here"},
    }
    return {"summary": summary, "responses": {**responses, **refused}}
