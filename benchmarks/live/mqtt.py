"""MQTT clients at a node's door, and at Mosquitto: the same cheap clients, one server process each, in one run.

The clients are ours and write bytes made beforehand, so that the servers have the work: one publisher to one
and ten subscribers, and a thousand clients that each want a topic of their own.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from topicweave.live.mqtt.codec import encode
from topicweave.live.mqtt.packets import V311, Connect, Publish, Suback, Subscribe, Wish

SERVERS = ("topicweave", "mosquitto")
PAYLOAD = bytes(128)
WINDOW = 200
"""Messages of QoS 1 that a publisher has on their way."""
SILENCE = 3.0
"""Seconds without a message after which the rest is taken for lost."""
MOSQUITTO = """listener {port} 127.0.0.1
allow_anonymous true
max_queued_messages 0
max_inflight_messages 0
"""


class Rate(NamedTuple):
    arrived: float
    per_second: float
    processor: float
    """Microseconds of the server's CPU per delivery: what a busy machine leaves as it is."""


class Crowd(NamedTuple):
    """Of a thousand clients: how many connect and subscribe in a second, deliveries, and what the server takes."""

    joins: float
    rate: Rate
    megabytes: float


@contextlib.contextmanager
def server(name: str) -> Iterator[tuple[int, psutil.Process]]:
    """Its port, and its process."""
    with tempfile.TemporaryDirectory() as folder:
        if name == "mosquitto":
            program = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
            port = 18830 + os.getpid() % 1000
            settings = Path(folder) / "mosquitto.conf"
            settings.write_text(MOSQUITTO.format(port=port))
            process = subprocess.Popen([program, "-c", str(settings)], stderr=subprocess.DEVNULL)
        else:
            command = [sys.executable, "-m", "topicweave.cli", "node", "--insecure", "--preset", "local"]
            process = subprocess.Popen(
                [*command, "--listen", "127.0.0.1:0", "--mqtt", "127.0.0.1:0"], stdout=subprocess.PIPE
            )
            assert process.stdout is not None
            port = int(json.loads(process.stdout.readline())["mqtt"].rpartition(":")[2])
        try:
            _wait_for(port)
            yield port, psutil.Process(process.pid)
        finally:
            process.terminate()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)  # noqa: TID251 - until a server listens


class Reader(asyncio.Protocol):
    """Counts messages, which are all of one length, and answers those of QoS 1."""

    def __init__(self, topic: str, qos: int, arrived: list[int], filters: Sequence[str] = ()) -> None:
        """Instead of the topic `filters` are subscribed to, if there are any; all topics are as long as the
        one given.
        """
        wishes = tuple(Wish(one, qos) for one in filters or [topic])
        self._hello = encode(Connect("", V311), V311) + encode(Subscribe(1, wishes), V311)
        self._welcome = 4 + len(encode(Suback(1, (0,) * len(wishes)), V311))
        self._length = len(encode(Publish(topic, PAYLOAD, qos, packet_id=qos), V311))
        self._id_at = self._length - len(PAYLOAD) - 2
        self._qos, self._arrived, self._data = qos, arrived, b""
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]  # uvloop's have another base
        self.transport.write(self._hello)

    def data_received(self, data: bytes) -> None:
        data = self._data + data
        if not self.ready.done():
            if len(data) < self._welcome:  # Connack and Suback.
                self._data = data
                return
            self.ready.set_result(None)
            data = data[self._welcome :]
        count, length, place = len(data) // self._length, self._length, self._id_at
        if self._qos:
            starts = range(place, place + count * length, length)
            self.transport.write(b"".join([b"\x40\x02" + data[start : start + 2] for start in starts]))
        self._arrived[0] += count
        self._data = data[count * length :]


class Writer(asyncio.Protocol):
    """Publishes as fast as the server reads; of QoS 1 with a window."""

    def __init__(self) -> None:
        self.room, self.news = asyncio.Event(), asyncio.Event()
        self.room.set()
        self.answered = 0
        self._bytes = -4  # The Connack.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]  # uvloop's have another base
        self.transport.write(encode(Connect("", V311), V311))

    def data_received(self, data: bytes) -> None:
        self._bytes += len(data)
        self.answered = self._bytes // 4
        self.news.set()

    def pause_writing(self) -> None:
        self.room.clear()

    def resume_writing(self) -> None:
        self.room.set()

    async def publish(self, topics: list[str], count: int, qos: int) -> None:
        plain = [encode(Publish(topic, PAYLOAD), V311) for topic in topics]
        for number in range(count):
            if not qos:
                self.transport.write(plain[number % len(plain)])
            else:
                while number - self.answered >= WINDOW:
                    self.news.clear()
                    await self.news.wait()
                packet_id = number % 65535 + 1
                self.transport.write(
                    encode(Publish(topics[number % len(topics)], PAYLOAD, 1, packet_id=packet_id), V311)
                )
            await self.room.wait()
            if number % 100 == 99:
                await asyncio.sleep(0)


async def _flow(
    at: tuple[int, psutil.Process], topics: list[str], readers: int, count: int, qos: int
) -> tuple[float, Rate]:
    """Readers take turns with the topics. Joins per second, and the rate."""
    port, process = at
    loop = asyncio.get_running_loop()
    arrived = [0]
    began = time.perf_counter()
    protocols: list[Reader] = []
    for start in range(0, readers, 50):
        makers = [
            functools.partial(Reader, topics[number % len(topics)], qos, arrived)
            for number in range(start, min(start + 50, readers))
        ]
        made = await asyncio.gather(*(loop.create_connection(maker, "127.0.0.1", port) for maker in makers))
        protocols += [protocol for _, protocol in made]
        await asyncio.gather(*(protocol.ready for _, protocol in made))
    joins = readers / (time.perf_counter() - began)
    _, writer = await loop.create_connection(Writer, "127.0.0.1", port)
    expected = count * readers // len(topics)
    rate = await flow_to(writer, process, topics, count, qos, expected, arrived)
    for protocol in protocols:
        protocol.transport.abort()
    writer.transport.abort()
    return joins, rate


async def flow_to(
    writer: Writer,
    process: psutil.Process,
    topics: list[str],
    count: int,
    qos: int,
    expected: int,
    arrived: list[int],
) -> Rate:
    """From the first message published until all have arrived, or no more come."""
    before = sum(process.cpu_times()[:2])
    began = last = time.perf_counter()
    publishing = asyncio.create_task(writer.publish(topics, count, qos))
    seen = 0
    while arrived[0] < expected and time.perf_counter() - last < SILENCE:
        await asyncio.sleep(0.01)
        if arrived[0] > seen:
            seen, last = arrived[0], time.perf_counter()
    publishing.cancel()
    used = 1e6 * (sum(process.cpu_times()[:2]) - before) / max(arrived[0], 1)
    return Rate(arrived[0] / expected, arrived[0] / (last - began), used)


def fan_out(name: str, subscribers: int, count: int, qos: int) -> Rate:
    from topicweave.live.node import run

    found: list[Rate] = []

    async def main() -> None:
        found.append((await _flow(at, ["bench/topic"], subscribers, count, qos))[1])

    with server(name) as at:
        run(main)
    return found[0]


def crowd(name: str, clients: int, count: int) -> Crowd:
    from topicweave.live.node import run

    found: list[Crowd] = []

    async def main() -> None:
        topics = [f"bench/{number:05}" for number in range(clients)]
        joins, rate = await _flow(at, topics, clients, count, 0)
        found.append(Crowd(joins, rate, at[1].memory_info().rss / 1e6))

    with server(name) as at:
        run(main)
    return found[0]
