"""A client's connection, as a door sees it."""

from __future__ import annotations

from typing import Protocol

from topicweave.live.mqtt.packets import Reason, Will


class MqttClient(Protocol):
    client_id: str
    username: str | None
    will: Will | None

    def wake(self) -> None:
        """Its session has something for it."""

    def end(self, reason: Reason, text: str) -> None:
        """It is sent away, and `Door.left` is told at once."""
