"""What a node hands its clients, in their words, and the description of the HTTP port that is made from these."""

from __future__ import annotations

from typing import Any

import msgspec

from topicweave import __version__
from topicweave.client.words import EventJson, PublishRequest, ReceiptJson, Reply, Request
from topicweave.live.application import Receipt, Received


def event_json(event: Received) -> EventJson:
    return EventJson.holding(
        event.payload, event.topic, event.publisher, event.epoch, event.sequence, event.age
    )


def receipt_json(receipt: Receipt) -> ReceiptJson:
    event = receipt.event
    return ReceiptJson(
        receipt.neighbours, receipt.accepted, receipt.refused, receipt.reason, event.sequence, event.epoch
    )


def openapi() -> dict[str, Any]:
    """The OpenAPI 3.1 description."""
    (publish, receipt, request, reply), schemas = msgspec.json.schema_components(
        [PublishRequest, ReceiptJson, Request, Reply], ref_template="#/components/schemas/{name}"
    )
    topic = {"name": "topic", "in": "path", "required": True, "schema": {"type": "string"}}
    token = {"name": "token", "in": "query", "schema": {"type": "string"}}
    published = {"200": _json("the receipt", receipt), "400": _json("what is wrong with the request")}
    wanted = _wanted()
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
                    "summary": "Whether the node serves events; no token is asked for",
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
                "put": _guarded(
                    "Want a topic, or a pattern such as zone/+/door (`#` is written %23)", wanted
                ),
                "delete": _guarded("Want a topic or a pattern no more", wanted),
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


def _wanted() -> dict[str, Any]:
    return {
        "200": _json("all topics and patterns wanted"),
        "400": _json("why they cannot be had"),
        "503": _json("it is done, but a restart may forget it: the data folder takes nothing"),
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
