"""What wildcards cost at the MQTT door of a node: events per second, by how many filters its clients hold.
docs/mqtt.md.

One client holds filters such as `zone/7/#`, and another publishes on a hundred topics. Each message matches
one filter. The first row has no wildcards: the client names the hundred topics.
"""

from __future__ import annotations

import asyncio
import functools

from benchmarks.live.mqtt import Rate, Reader, Writer, flow_to, server
from benchmarks.sheet import Column, Sheet

TOPICS = [f"zone/{number:03}/t" for number in range(100)]


def filters(count: int) -> list[str]:
    """The first so many of `zone/NUMBER/#`; a hundred and more match all topics between them, and fewer those
    that they begin with.
    """
    return [f"zone/{number:03}/#" for number in range(count)] if count else TOPICS


def rate(wildcards: int, events: int) -> Rate:
    from topicweave.live.node import run

    found: list[Rate] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        wished = filters(wildcards)
        topics = TOPICS[: wildcards or len(TOPICS)]
        arrived = [0]
        reader = functools.partial(Reader, topics[0], 0, arrived, wished)
        _, reading = await loop.create_connection(reader, "127.0.0.1", at[0])
        await reading.ready
        _, writing = await loop.create_connection(Writer, "127.0.0.1", at[0])
        found.append(await flow_to(writing, at[1], topics, events, 0, events, arrived))
        reading.transport.abort()
        writing.transport.abort()

    with server("topicweave") as at:
        run(main)
    return found[0]


def run(quick: bool) -> list[Sheet]:
    sheet = Sheet(
        "wildcards",
        "One MQTT client with so many filters at a door, one that publishes (QoS 0)",
        1,
        Column("wildcards", ",d"),
        Column("arrived", ".4f", "more"),
        Column("events per s", ",.0f", "more"),
        Column("node's CPU, µs per event", ",.0f", "less"),
    )
    for count in (0, 1, 10) if quick else (0, 1, 100, 1000):
        got = rate(count, 500 if quick else 30_000)
        sheet.add(count, got.arrived, got.per_second, got.processor)
    return [sheet]
