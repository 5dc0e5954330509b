"""The HTTP port: health, metrics, view, and events over a WebSocket, also from JavaScript."""

from __future__ import annotations

import asyncio
import base64
import gc
import http.client
import json
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from websockets.asyncio.client import connect as connect_socket
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

import topicweave
from tests.live.together import eventually, linked, local, run, taken
from topicweave.client.through import events_through, publish_through
from topicweave.errors import TopicweaveError
from topicweave.live import LiveNode, web
from topicweave.live.http import MOST_UNREAD

HTTP = "127.0.0.1:0"


def ask(
    node: LiveNode, path: str, method: str, body: bytes | None, headers: dict[str, str]
) -> tuple[int, bytes]:
    assert node.http is not None
    request = urllib.request.Request(f"http://{node.http.address}{path}", body, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


async def asked(
    node: LiveNode, path: str, method: str = "GET", body: bytes | None = None, **headers: str
) -> tuple[int, bytes]:
    return await asyncio.to_thread(ask, node, path, method, body, headers)


def test_health_tells_the_truth() -> None:
    async def test() -> None:
        async with topicweave.connect(local(http=HTTP, subscribe=("a",))) as seed:
            status, body = await asked(seed, "/health")
            assert (status, json.loads(body)["status"]) == (200, "ok"), "alone, but nobody was to be there"
            async with topicweave.connect(local(subscribe=("a",), join=(str(seed.address),))) as other:
                await eventually(lambda: linked(seed, other))
                status, body = await asked(seed, "/health")
                assert (status, json.loads(body)["degree"]) == (200, 1)
            await eventually(lambda: not seed.joined)
            status, body = await asked(seed, "/health")
            assert (status, json.loads(body)["status"]) == (503, "alone")
            seed.world.guarded({}.__getitem__, "missing")
            status, body = await asked(seed, "/health")
            assert (status, json.loads(body)["status"]) == (503, "failing")
            assert "KeyError" in body.decode()

    run(test)


def test_metrics_and_view() -> None:
    async def test() -> None:
        topics = tuple(f"topic {number}" for number in range(50))
        async with topicweave.connect(local(http=HTTP, subscribe=topics)) as node:
            for topic in topics:
                await node.publish(topic, b"x")
            status, body = await asked(node, "/metrics")
            families = list(text_string_to_metric_families(body.decode()))
            values = {s.name: s.value for family in families for s in family.samples if not s.labels}
            assert status == 200
            assert values["topicweave_deliveries_total"] == 50
            assert values["topicweave_membership_contacts"] == len(node.world.contacts())
            assert values["topicweave_subscriptions"] == 50
            assert "topic 1" not in body.decode(), "no label per topic"
            status, body = await asked(node, "/view")
            view = json.loads(body)
            assert (view["name"], len(view["topics"]), view["cache"]["events"]) == (node.name, 50, 50)

    run(test)


def test_publishing_and_subscribing_by_http() -> None:
    async def test() -> None:
        async with topicweave.connect(local(http=HTTP)) as node:
            status, body = await asked(node, "/subscriptions/news/today", "PUT")
            assert (status, json.loads(body)["subscriptions"]) == (200, ["news/today"])
            event = json.dumps({"topic": "news/today", "base64": base64.b64encode(b"\xff\x00").decode()})
            status, body = await asked(node, "/publish", "POST", event.encode())
            assert (status, json.loads(body)["sequence"]) == (200, 0)
            await eventually(lambda: taken(node) == [("news/today", b"\xff\x00")])
            status, body = await asked(node, "/subscriptions/news/today", "DELETE")
            assert json.loads(body)["subscriptions"] == []

    run(test)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"topic": ""}',
        b'{"topic": "\xff"}',
        b'{"topic": "a", "base64": "?"}',
        b'{"topic": "a", "colour": 1}',
    ],
)
def test_requests_that_make_no_sense_are_explained(body: bytes) -> None:
    async def test() -> None:
        async with topicweave.connect(local(http=HTTP)) as node:
            status, answer = await asked(node, "/publish", "POST", body)
            assert status == 400
            assert json.loads(answer)["error"]

    run(test)


def test_a_topic_that_is_not_text_is_refused() -> None:
    async def test() -> None:
        async with topicweave.connect(local(http=HTTP)) as node:
            for path in ("/subscriptions/%FF", "/subscriptions/a/%C3%28/b", "/%FF"):
                for method in ("PUT", "DELETE", "GET"):
                    status, answer = await asked(node, path, method)
                    assert status == 400
                    assert "UTF-8" in json.loads(answer)["error"]
            assert node.subscriptions == []
            status, answer = await asked(node, "/subscriptions/%EF%BF%BD", "PUT")
            assert (status, json.loads(answer)["subscriptions"]) == (200, ["\ufffd"]), "somebody may mean it"

    run(test)


def test_a_body_too_large_is_refused() -> None:
    async def test() -> None:
        async with topicweave.connect(local(http=HTTP)) as node:
            status, _ = await asked(node, "/publish", "POST", bytes(3 * 1024 * 1024))
            assert status == 413

    run(test)


def test_the_description_holds_what_is_served(tmp_path: Path) -> None:
    async def test() -> None:
        async with topicweave.connect(local(http=HTTP, data=str(tmp_path))) as node:
            _, body = await asked(node, "/openapi.json")
            description = json.loads(body)
            assert description["openapi"] == "3.1.0"
            for path in description["paths"]:
                if "get" in description["paths"][path] and path != "/events":
                    status, _ = await asked(node, path)
                    assert status == 200, path
            text = json.dumps(description)
            for name in description["components"]["schemas"]:
                assert f"#/components/schemas/{name}" in text

    run(test)


def test_events_over_a_websocket() -> None:
    async def test() -> None:
        async with topicweave.connect(local(http=HTTP, subscribe=("kept",))) as node:
            assert node.http is not None
            async with connect_socket(f"ws://{node.http.address}/events", proxy=None) as socket:
                for request, key in (
                    ({"subscribe": ["news", "kept"]}, "subscriptions"),
                    ({"publish": {"topic": "news", "text": "hällo"}}, None),
                    ({"publish": {"topic": "other", "text": "not for us"}}, "receipt"),
                    ({"subscribe": "news"}, "error"),
                    ({"colour": 1}, "error"),
                ):
                    await socket.send(json.dumps(request))
                    answer = json.loads(await socket.recv())
                    if key is None:
                        # The receipt and the event may come in either order.
                        both = {**answer, **json.loads(await socket.recv())}
                        assert both["event"]["text"] == "hällo"
                        assert both["receipt"]["sequence"] == 0
                    else:
                        assert key in answer
                assert node.subscriptions == ["kept", "news"]
            # Gone, and so is what only it wanted.
            await eventually(lambda: node.subscriptions == ["kept"])

    run(test)


def test_other_peoples_pages_and_names_are_kept_out() -> None:
    async def test() -> None:
        async with topicweave.connect(local(http=HTTP)) as node:
            assert node.http is not None
            status, _ = await asked(node, "/view", Origin="http://evil.example")
            assert status == 403
            status, _ = await asked(node, "/view", Host="evil.example")
            assert status == 403
            status, _ = await asked(node, "/view", Origin=f"http://{node.http.address}")
            assert status == 200
            with pytest.raises(InvalidStatus, match="403"):
                async with connect_socket(
                    f"ws://{node.http.address}/events",
                    origin=Origin("http://evil.example"),
                    proxy=None,
                ):
                    pass

    run(test)


def test_a_token_is_asked_for() -> None:
    async def test() -> None:
        async with topicweave.connect(local(http=HTTP, token="secret")) as node:
            assert node.http is not None
            for wrong in ("", "Bearer wrong"):
                status, _ = await asked(node, "/view", Authorization=wrong)
                assert status == 401
            status, _ = await asked(node, "/view", Authorization="Bearer secret")
            assert status == 200
            with pytest.raises(TopicweaveError, match="token"):
                await asyncio.to_thread(publish_through, str(node.http.address), "", "a", b"x")

    run(test)


def test_the_shells_publish_and_subscribe_go_through_a_node() -> None:
    async def test() -> None:
        async with topicweave.connect(local(http=HTTP, token="secret")) as node:
            assert node.http is not None
            address = str(node.http.address)
            events = events_through(address, "secret", ["news"])
            first = asyncio.create_task(asyncio.to_thread(next, events))
            await eventually(lambda: node.subscriptions == ["news"])
            await asyncio.to_thread(publish_through, address, "secret", "news", b"hello")
            assert json.loads(await first)["text"] == "hello"
            await asyncio.to_thread(events.close)  # type: ignore[attr-defined]  # a generator closes

    run(test)


def test_pages_are_served_whole_and_keep_to_themselves() -> None:
    async def test() -> None:
        async with topicweave.connect(local(http=HTTP, token="secret")) as node:
            assert node.http is not None
            for path in (*web.PAGES, *web.ASSETS):
                status, body = await asked(node, f"{path}?token=secret")
                assert (status, b"://" in body.replace(b"ws://127.0.0.1", b"")) == (200, False), path
            status, _ = await asked(node, "/")
            assert status == 401, "a page needs the token"
            for path in web.ASSETS:
                status, _ = await asked(node, path)
                assert status == 200, "what it is made of does not"
            page = f"http://{node.http.address}/?token=secret"
            with await asyncio.to_thread(urllib.request.urlopen, page) as answer:
                assert "default-src 'none'" in answer.headers["content-security-policy"]

    run(test)


def stalled_socket(node: LiveNode, topic: str) -> socket.socket:
    """A client that subscribes, and reads no events."""
    assert node.http is not None
    where = node.http.address
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect((where.host, where.port))
    client.sendall(
        b"GET /events HTTP/1.1\r\nHost: %b\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        % str(where).encode()
    )
    assert client.recv(4096).startswith(b"HTTP/1.1 101 ")
    request = json.dumps({"subscribe": [topic]}).encode()
    client.sendall(bytes([0x81, 0x80 | len(request)]) + bytes(4) + request)
    return client


def test_an_event_that_no_client_has_read_is_not_acknowledged() -> None:
    async def test() -> None:
        settings = local(http=HTTP, delivery="at-least-once", redeliver_after=0.5)
        async with topicweave.connect(settings) as node:
            assert node.http is not None
            unread = node.world.gate.unacknowledged
            client = await asyncio.to_thread(stalled_socket, node, "t")
            await eventually(lambda: node.subscriptions == ["t"])
            for number in range(50):
                await node.publish("t", b"%d" % number)
            await eventually(lambda: len(unread) == 50)
            await eventually(lambda: node.counters.deliveries == 50)
            assert (await asked(node, "/view"))[0] == 200, "what there was to be written is written"
            assert len(unread) == 50
            client.close()
            async with connect_socket(f"ws://{node.http.address}/events", proxy=None) as reader:
                await reader.send('{"subscribe": ["t"]}')
                texts: set[str] = set()
                while len(texts) < 50:
                    answer = json.loads(await reader.recv())
                    texts |= {answer["event"]["text"]} if "event" in answer else set()
                await eventually(lambda: not unread, "what it has read is acknowledged")

    run(test)


def test_what_no_client_has_read_outlives_a_node_that_stops_in_order(tmp_path: Path) -> None:
    async def test() -> None:
        settings = local(
            http=HTTP, delivery="at-least-once", data=str(tmp_path / "data"), redeliver_after=600.0
        )
        async with topicweave.connect(settings) as node:
            client = await asyncio.to_thread(stalled_socket, node, "t")
            await eventually(lambda: node.subscriptions == ["t"])
            for number in range(5):
                await node.publish("t", b"%d" % number)
            await eventually(lambda: len(node.world.gate.unacknowledged) == 5)
        client.close()
        async with topicweave.connect(settings) as node:
            assert len(node.world.gate.unacknowledged) == 5

    run(test)


def test_a_client_that_reads_later_keeps_up() -> None:
    async def test() -> None:
        settings = local(http=HTTP, delivery="at-least-once", redeliver_after=600.0)
        async with topicweave.connect(settings) as node:
            assert node.http is not None
            async with connect_socket(f"ws://{node.http.address}/events", proxy=None) as reader:
                await reader.send('{"subscribe": ["t"]}')
                await eventually(lambda: node.subscriptions == ["t"])
                count = 5 * MOST_UNREAD
                for _ in range(count):
                    await node.publish("t", b"x")
                await eventually(lambda: node.counters.deliveries == count)
                answers = [json.loads(await reader.recv()) for _ in range(count + 1)]
                assert sum("event" in answer for answer in answers) == count
                await eventually(lambda: not node.world.gate.unacknowledged)

    run(test)


def test_clients_that_wait_do_not_keep_a_node_from_stopping_in_order(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test() -> None:
        async with topicweave.connect(local(http=HTTP)) as node:
            client = await asyncio.to_thread(stalled_socket, node, "t")
            await eventually(lambda: node.subscriptions == ["t"])
            for _ in range(100):
                await node.publish("t", bytes(100_000))
            await eventually(lambda: node.counters.deliveries == 100)
            body = b'{"topic": "t", "wait_for": 9, "timeout": 60}'
            asking = asyncio.create_task(asked(node, "/publish", "POST", body))
            await eventually(lambda: node.counters.publishes == 101)
        client.close()
        with pytest.raises((OSError, http.client.HTTPException)):
            await asking

    run(test)
    gc.collect()
    assert [record.getMessage() for record in caplog.records if record.name != "topicweave.live"] == []
