"""Dialling: with growing and random pauses, until a peer answers or is taken for unreachable."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING

from topicweave.live.link import Link
from topicweave.live.sending import Peer
from topicweave.live.settings import Address
from topicweave.model.ids import NodeId

if TYPE_CHECKING:
    from topicweave.live.transport import Transport


class Dialler:
    """The dialling side of a `Transport`."""

    def __init__(self, owner: Transport) -> None:
        self._owner = owner
        self._context = owner.keyring.context(server=False) if owner.keyring else None
        self._unreachable: dict[NodeId, float] = {}

    def cooling(self, peer: NodeId) -> bool:
        """Whether a peer was unreachable a moment ago: not to be tried now."""
        until = self._unreachable.get(peer)
        if until is None:
            return False
        if until > self._owner.loop.time():
            return True
        del self._unreachable[peer]
        return False

    def reached(self, peer: NodeId) -> None:
        self._unreachable.pop(peer, None)

    def dial(self, peer: Peer) -> None:
        if peer.dialling is None and not self._owner.closed:
            peer.dialling = self._owner.spawn(self._keep_dialling(peer))

    async def _keep_dialling(self, peer: Peer) -> None:
        owner = self._owner
        try:
            for attempt in range(owner.pace.dial_attempts):
                if attempt:
                    await asyncio.sleep(self._pause(attempt))
                address = owner.book.get(peer.id)
                if peer.link is not None or owner.closed:
                    return
                if address is None:
                    break
                try:
                    link = await self.connect(address, peer.id)
                except (OSError, ssl.SSLError, TimeoutError):
                    owner.counters.dials_failed += 1
                    continue
                if link.peer != peer.id:
                    owner.book.failed(peer.id)  # Somebody else lives there.
                    break
                return
        finally:
            peer.dialling = None
        if peer.link is None and owner.peers.get(peer.id) is peer:
            if len(self._unreachable) > owner.limits.addresses:
                self._unreachable.clear()
            self._unreachable[peer.id] = owner.loop.time() + owner.pace.unreachable_pause
            owner.drop(peer)

    def _pause(self, attempt: int) -> float:
        """Twice as long each time, give or take half, so that nobody dials in step."""
        pause = self._owner.pace.first_backoff * 2.0 ** (attempt - 1)
        return float(pause * self._owner.random.uniform(0.5, 1.5))

    async def connect(self, address: Address, expected: NodeId | None = None) -> Link:
        owner = self._owner
        if owner.cut(expected):
            raise ConnectionRefusedError("behind the firewall")
        async with asyncio.timeout(owner.pace.dial_timeout):
            _, link = await owner.loop.create_connection(
                lambda: Link(owner, dialled=True),
                address.host,
                address.port,
                ssl=self._context,
                server_hostname="topicweave" if self._context else None,
            )
            try:
                await link.opened
            except BaseException:
                link.abort()
                raise
        return link
