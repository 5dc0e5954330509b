"""What a door keeps in the node's data folder: the sessions that outlive their connections, and whose
retained values it holds.

A session is written whole when it begins, when its subscriptions change, when its connection ends and when
the node stops in order. Without a data folder nothing is kept, and a client that comes back after a restart
is told that there is no session.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import msgspec

from topicweave.live.mqtt.session import SavedSession, Session

if TYPE_CHECKING:
    from topicweave.live.disk import Disk

log = logging.getLogger("topicweave.live")

SESSION, RETAINED_HERE = "mqtt-session/", "mqtt-retained/"
PATIENCE = 5.0
"""Seconds for which a client waits for a disk that takes nothing."""


class KeptSession(msgspec.Struct, frozen=True, array_like=True):
    session: SavedSession
    at: float
    """When it was written, by the wall clock: what came later is not in it."""
    connected: bool


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(KeptSession).decode


class DoorFolder:
    def __init__(self, disk: Disk | None) -> None:
        self._disk = disk
        self._written: set[str] = set()

    async def sessions(self) -> list[KeptSession]:
        found: list[KeptSession] = []
        if self._disk is not None:
            for client_id, written in (await self._disk.read(self._disk.store.facts_below, SESSION)).items():
                self._written.add(client_id)
                try:
                    found.append(_decode(written))
                except msgspec.MsgspecError as error:
                    log.error("mqtt: the session of %s cannot be read and is gone: %s", client_id, error)
                    self.forget(client_id)
        return found

    async def retained(self) -> list[str]:
        if self._disk is None:
            return []
        return list(await self._disk.read(self._disk.store.facts_below, RETAINED_HERE))

    def save(self, session: Session, wall: float) -> None:
        """If it is to outlive its connection; else it is not kept any more."""
        if not session.expiry:
            self.forget(session.client_id)
        if self._disk is None or not session.expiry:
            return
        self._written.add(session.client_id)
        written = _encode(KeptSession(session.save(), wall, session.connected))
        self._disk.do(self._disk.store.set_fact, SESSION + session.client_id, written)
        self._disk.committed()

    def forget(self, client_id: str) -> None:
        if self._disk is not None and client_id in self._written:
            self._written.discard(client_id)
            self._disk.do(self._disk.store.forget_fact, SESSION + client_id)
            self._disk.committed()

    def retain(self, topic: str) -> None:
        if self._disk is not None:
            self._disk.do(self._disk.store.set_fact, RETAINED_HERE + topic, b"")

    def let_go(self, topic: str) -> None:
        if self._disk is not None:
            self._disk.do(self._disk.store.forget_fact, RETAINED_HERE + topic)

    async def permanent(self) -> bool:
        """Whether what was said so far is on disk, or there is none."""
        if self._disk is None:
            return True
        done, _ = await asyncio.wait([self._disk.committed()], timeout=PATIENCE)
        return bool(done)
