"""The wills of one door's clients: what is published when a client goes without a word, at once or after its delay."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from topicweave.errors import TopicweaveError
from topicweave.live.mqtt.client import MqttClient
from topicweave.live.mqtt.packets import MqttError, Publish, Will

log = logging.getLogger("topicweave.live")

MOST_PATIENCE = 5.0
"""Seconds for which a node that stops waits for all wills and all that they need."""


class Wills:
    def __init__(self, publish: Callable[[MqttClient, Publish], Awaitable[None]]) -> None:
        self._publish = publish
        self._waiting: dict[str, tuple[asyncio.TimerHandle, MqttClient, Will]] = {}
        self._executing: set[asyncio.Task[None]] = set()

    def leave(self, client: MqttClient, will: Will, delay: float) -> None:
        """A client has gone. Its will is published after so many seconds, unless the client comes back."""
        if not delay:
            self._execute(client, will)
            return
        timer = asyncio.get_running_loop().call_later(delay, self._execute, client, will)
        self._waiting[client.client_id] = (timer, client, will)

    def back(self, client_id: str, ends: bool) -> None:
        """A client came back in time, unless its session ends with this."""
        if (waiting := self._waiting.pop(client_id, None)) is not None:
            timer, client, will = waiting
            timer.cancel()
            if ends:
                self._execute(client, will)

    async def stop(self) -> None:
        """Publish all that wait."""
        for timer, client, will in list(self._waiting.values()):
            timer.cancel()
            self._execute(client, will)
        if self._executing:
            _, late = await asyncio.wait(self._executing, timeout=MOST_PATIENCE)
            if late:
                log.error("mqtt: %d wills are not published: the node stops", len(late))
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _execute(self, client: MqttClient, will: Will) -> None:
        self._waiting.pop(client.client_id, None)
        packet = Publish(will.topic, will.payload, will.qos, will.retain, properties=will.properties)

        async def publish() -> None:
            with contextlib.suppress(MqttError, TopicweaveError):
                await self._publish(client, packet)

        task = asyncio.get_running_loop().create_task(publish())
        self._executing.add(task)
        task.add_done_callback(self._executing.discard)
