"""A running node's HTTP port, used from another process."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from topicweave.errors import TopicweaveError


def url_of(node: str, scheme: str, path: str) -> str:
    """Of a node that is named as users name it; `scheme` is http or ws.

    >>> url_of("127.0.0.1:8000", "http", "/publish"), url_of("https://node.example.org/", "ws", "/events")
    ('http://127.0.0.1:8000/publish', 'wss://node.example.org/events')
    """
    secure = "s" if node.startswith("https://") else ""
    return f"{scheme}{secure}://{node.removeprefix('https://').removeprefix('http://').rstrip('/')}{path}"


def publish_through(
    node: str, token: str, topic: str, payload: bytes, wait_for: int = 0, timeout: float = 5.0
) -> dict[str, Any]:
    """Let a running node publish; returns its receipt."""
    body = {
        "topic": topic,
        "base64": base64.b64encode(payload).decode(),
        "wait_for": wait_for,
        "timeout": timeout,
    }
    with opened(node, token, "/publish", json.dumps(body).encode(), timeout + 10.0) as answer:
        receipt: dict[str, Any] = json.load(answer)
        return receipt


@contextmanager
def opened(
    node: str, token: str, path: str, body: bytes | None = None, timeout: float = 60.0
) -> Iterator[Any]:
    """A node's answer; with a body, to a POST."""
    headers = {"Content-Type": "application/json"} if body is not None else {}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(url_of(node, "http", path), body, headers)
    # A proxy of the environment has no business between a user and a node on the same machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        answer = opener.open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        try:
            reason = json.load(error)["error"]
        except (ValueError, KeyError):
            reason = str(error)
        raise TopicweaveError(f"node {node}: {reason}") from None
    except OSError as error:
        raise unreachable(node, error) from None
    with answer:
        yield answer


def events_through(
    node: str,
    token: str,
    topics: Sequence[str],
    last: int = 0,
    since: float | None = None,
    on_gap: Callable[[str], None] = lambda gap: None,
    on_incomplete: Callable[[str], None] = lambda incomplete: None,
) -> Iterator[str]:
    """Subscribe to topics and patterns through a running node; yields events as JSON text. A node that goes
    away is an error.
    """
    from websockets.exceptions import ConnectionClosed, WebSocketException
    from websockets.sync.client import connect

    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request: dict[str, Any] = {"subscribe": list(topics), "last": last}
    if since is not None:
        request["since"] = since
    try:
        with connect(
            url_of(node, "ws", "/events"), additional_headers=headers, proxy=None, max_size=None
        ) as socket:
            socket.send(json.dumps(request))
            for text in socket:
                message = json.loads(text)
                if "event" in message:
                    yield json.dumps(message["event"], ensure_ascii=False)
                elif "gap" in message:
                    on_gap(json.dumps(message["gap"], ensure_ascii=False))
                elif "incomplete" in message:
                    on_incomplete(json.dumps(message["incomplete"], ensure_ascii=False))
                elif "error" in message:
                    raise TopicweaveError(f"node {node}: {message['error']}")
            raise TopicweaveError(f"node {node} stopped")
    except ConnectionClosed as error:
        raise TopicweaveError(f"node {node} went away ({error})") from None
    except (OSError, WebSocketException) as error:
        raise unreachable(node, error) from None


def unreachable(node: str, error: Exception) -> TopicweaveError:
    reason = getattr(error, "reason", None) or error  # urllib wraps what happened in signs of its own
    return TopicweaveError(
        f"node {node} cannot be used ({reason}); start one with `topicweave node --http 127.0.0.1:8000`"
    )
