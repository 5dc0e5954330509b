"""One publisher process and 1 or 10 subscriber processes: deliveries per second of 128-byte events.

Counted from the first publish to the last delivery at the slowest subscriber. Subscribers say when they are
ready; the publisher's events begin only then.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.live.figures import SIZE

PAYLOAD = bytes(SIZE)
PATIENCE = 120.0
SILENCE = 10.0


class Rate(NamedTuple):
    per_second: float
    """Deliveries, at all subscribers together."""
    arrived: float
    """Share of the deliveries due."""


def _finish(queue: Any, subscribers: int, began: float, events: int) -> Rate:
    """Once all subscribers have told when they had their last event, and how many they got."""
    told = [queue.get(timeout=PATIENCE) for _ in range(subscribers)]
    delivered = sum(count for _, count in told)
    return Rate(delivered / (max(end for end, _ in told) - began), delivered / subscribers / events)


def _processes(
    target: Callable[..., None], count: int, *arguments: Any
) -> tuple[list[Any], Any, list[Event]]:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    ready = [context.Event() for _ in range(count)]
    started = [
        context.Process(target=target, args=(*arguments, queue, ready[number]), daemon=True)
        for number in range(count)
    ]
    for process in started:
        process.start()
    return started, queue, ready


def _wait_for_port(port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.05)  # noqa: TID251 - a server of others can't be asked for a sign
    raise RuntimeError("nats-server did not come up")


def _end(processes: list[Any]) -> None:
    for process in processes:
        process.terminate()
        process.join()


def _keys(folder: Path | None, name: str) -> dict[str, Any]:
    """Settings of a node with keys, or without."""
    return {"insecure": True} if folder is None else {"keys": str(folder / name)}


def _topicweave_subscriber(
    join: str, events: int, folder: Path | None, numbers: Any, queue: Any, ready: Event
) -> None:
    import topicweave
    from topicweave.live.node import run

    name = f"subscriber-{numbers.get()}"

    async def main() -> None:
        async with topicweave.connect(
            preset="local", join=(join,), subscribe=("bench",), **_keys(folder, name)
        ) as node:
            got, last = 0, time.monotonic()

            async def read() -> None:
                nonlocal got, last
                async for event in node.events():
                    if len(event.payload) != SIZE:
                        ready.set()
                        continue
                    got += 1
                    if not got % 100 or got == events:
                        last = time.monotonic()
                    if got == events:
                        return

            reading = asyncio.create_task(read())
            # Silence after the events have begun is the end: what has not come is lost.
            while not reading.done() and (not got or time.monotonic() - last < SILENCE):
                await asyncio.wait([reading], timeout=1.0)
            queue.put((last, got))
            await asyncio.sleep(PATIENCE)

    run(main)


def topicweave_signed(subscribers: int, events: int) -> Rate:
    """With keys: mutual TLS on each link, and each event signed and verified."""
    from topicweave.live.authority import issue, new_swarm

    with tempfile.TemporaryDirectory() as temporary:
        swarm = new_swarm(Path(temporary) / "swarm")
        for name in ("publisher", *(f"subscriber-{number}" for number in range(subscribers))):
            issue(swarm, name)
        return topicweave(subscribers, events, swarm)


def topicweave(subscribers: int, events: int, folder: Path | None = None) -> Rate:
    import topicweave as library
    from topicweave.live.node import run

    results: list[Rate] = []

    async def main() -> None:
        numbers = multiprocessing.get_context("spawn").Queue()
        for number in range(subscribers):
            numbers.put(number)
        async with library.connect(preset="local", cache=0, **_keys(folder, "publisher")) as node:
            processes, queue, ready = _processes(
                _topicweave_subscriber, subscribers, str(node.address), events, folder, numbers
            )
            try:
                deadline = time.monotonic() + PATIENCE
                while not all(one.is_set() for one in ready) and time.monotonic() < deadline:
                    await node.publish("bench", b"probe")
                    await asyncio.sleep(0.2)
                began = time.monotonic()
                for _ in range(events):
                    await node.publish("bench", PAYLOAD)
                results.append(await asyncio.to_thread(_finish, queue, subscribers, began, events))
            finally:
                _end(processes)

    run(main)
    return results[0]


def _nats_subscriber(url: str, events: int, queue: Any, ready: Event) -> None:
    import nats
    import uvloop

    async def main() -> None:
        client = await nats.connect(url)
        done = asyncio.Event()
        left = events

        async def received(_message: object) -> None:
            nonlocal left
            left -= 1
            if not left:
                queue.put((time.monotonic(), events))
                done.set()

        await client.subscribe("bench", cb=received, pending_msgs_limit=-1, pending_bytes_limit=-1)
        await client.flush()
        ready.set()
        await done.wait()

    uvloop.run(main())


def nats(subscribers: int, events: int) -> Rate:
    import nats as library
    import uvloop

    places = [Path(folder) / "bin/nats-server" for folder in sys.path]
    server = next((str(place) for place in places if place.exists()), None)
    if server is None:
        raise RuntimeError("left out: nats-server is not installed")
    port = "42223"
    running = subprocess.Popen([server, "-a", "127.0.0.1", "-p", port], stderr=subprocess.DEVNULL)
    _wait_for_port(int(port))
    results: list[Rate] = []

    async def main() -> None:
        client = await library.connect(
            f"nats://127.0.0.1:{port}", max_reconnect_attempts=100, reconnect_time_wait=0.1
        )
        processes, queue, ready = _processes(
            _nats_subscriber, subscribers, f"nats://127.0.0.1:{port}", events
        )
        try:
            for one in ready:
                await asyncio.to_thread(one.wait, PATIENCE)
            began = time.monotonic()
            for _ in range(events):
                await client.publish("bench", PAYLOAD)
            await client.flush()
            results.append(await asyncio.to_thread(_finish, queue, subscribers, began, events))
        finally:
            _end(processes)
            await client.close()

    try:
        uvloop.run(main())
    finally:
        running.terminate()
        running.wait()
    return results[0]


def _zmq_subscriber(address: str, events: int, queue: Any, ready: Event) -> None:
    import zmq

    socket = zmq.Context().socket(zmq.SUB)
    socket.setsockopt(zmq.RCVHWM, 0)
    socket.setsockopt(zmq.SUBSCRIBE, b"bench")
    socket.connect(address)
    left = events
    while left:
        _, payload = socket.recv_multipart()
        if len(payload) != SIZE:
            ready.set()
        else:
            left -= 1
    queue.put((time.monotonic(), events))


def pyzmq(subscribers: int, events: int) -> Rate:
    import zmq

    socket = zmq.Context().socket(zmq.PUB)
    socket.setsockopt(zmq.SNDHWM, 0)
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    processes, queue, ready = _processes(_zmq_subscriber, subscribers, f"tcp://127.0.0.1:{port}", events)
    try:
        deadline = time.monotonic() + PATIENCE
        while not all(one.wait(0.05) for one in ready) and time.monotonic() < deadline:
            socket.send_multipart((b"bench", b"probe"))
        began = time.monotonic()
        for _ in range(events):
            socket.send_multipart((b"bench", PAYLOAD))
        return _finish(queue, subscribers, began, events)
    finally:
        _end(processes)
