"""Joining: seeds are tried for ever. A seed is an address or a name; each address of a name is one.

Theory of operation: while nobody is connected, all seeds are dialled, with growing pauses. While somebody is,
the seeds that are not connected are tried now and then, so that two halves that lost each other for good meet
again at a common seed. Names are looked up anew each time: what a name stands for changes.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from topicweave.live.settings import Address, SeedName
from topicweave.live.troubles import why
from topicweave.model.ids import NodeId

if TYPE_CHECKING:
    from topicweave.live.transport import Transport

LONGEST_PAUSE = 5.0
"""Between two rounds while nobody is connected."""
QUIET_PAUSE = 30.0
"""Between two rounds while somebody is."""

Resolver = Callable[[str, int], Awaitable[Sequence[Address]]]


async def resolve(host: str, port: int) -> list[Address]:
    """Every address of a name."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(Address(str(entry[4][0]).split("%")[0], port) for entry in found))


class Seeds:
    """Dials on behalf of a node. `met(peers)` is told whom it reached."""

    def __init__(
        self,
        transport: Transport,
        seeds: Sequence[SeedName],
        stored: Sequence[Address],
        met: Callable[[set[NodeId]], None],
        resolver: Resolver = resolve,
    ) -> None:
        self._transport = transport
        self._seeds = list(seeds)
        self._stored = list(stored)
        self._met = met
        self._resolver = resolver
        self.rounds = 0
        self._known: dict[Address, NodeId] = {}
        """Who answered where."""

    async def keep_meeting(self) -> None:
        """Never returns."""
        transport = self._transport
        pause = transport.pace.first_backoff
        while True:
            alone = not transport.connected
            found = await self._round()
            self.rounds += 1
            if found:
                self._met(found)
            if transport.connected:
                pause = transport.pace.first_backoff
                await self._quiet(QUIET_PAUSE * transport.random.uniform(0.5, 1.5))
            else:
                if not alone:
                    pause = transport.pace.first_backoff
                await asyncio.sleep(pause * transport.random.uniform(0.5, 1.5))
                pause = min(2 * pause, LONGEST_PAUSE)

    async def _quiet(self, seconds: float) -> None:
        """Wait, but not when nobody is left."""
        loop = self._transport.loop
        until = loop.time() + seconds
        while loop.time() < until and self._transport.connected:
            await asyncio.sleep(min(1.0, self._transport.pace.heartbeat))

    async def _round(self) -> set[NodeId]:
        addresses = [address for seed in self._seeds for address in await self._addresses(seed)]
        if not self._transport.connected:
            addresses += self._stored
        connected = set(self._transport.connected)
        absent = [one for one in dict.fromkeys(addresses) if self._known.get(one) not in connected]
        results = await asyncio.gather(*(self._try(address) for address in absent))
        return {peer for peer in results if peer is not None and peer != self._transport.id}

    async def _addresses(self, seed: SeedName) -> Sequence[Address]:
        with contextlib.suppress(ValueError):
            return [Address(str(ipaddress.ip_address(seed.host)), seed.port)]
        try:
            return await self._resolver(seed.host, seed.port)
        except OSError as error:
            self._note(f"seed {seed}", f"its name is not known: {error.strerror or error}")
            return []

    async def _try(self, address: Address) -> NodeId | None:
        transport = self._transport
        if address == transport.address:
            return None
        try:
            peer = await transport.meet(address)
        except (OSError, ssl.SSLError, TimeoutError) as error:
            transport.counters.dials_failed += 1
            self._note(f"dialling {address}", why(error))
            return None
        self._known[address] = peer
        transport.troubles.settled(f"dialling {address}")
        return peer

    def _note(self, who: str, what: str) -> None:
        self._transport.troubles.note(who, what, self._transport.loop.time())
