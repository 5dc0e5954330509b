"""Dialling: with growing and random pauses, until a peer answers or counts as unreachable.

A node dials an address ever more rarely if the expected nodes do not answer there, however many nodes are
said to listen there. The same holds for a host. An address where a member has answered cannot be a victim's.
It counts only for itself, so hundreds of nodes on one busy machine stay in reach.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from topicweave.live.link import PeerLink
from topicweave.live.sending import Peer
from topicweave.live.settings import Address
from topicweave.live.troubles import why
from topicweave.model.ids import NodeId

if TYPE_CHECKING:
    from topicweave.live.transport import Transport

PATIENT_AFTER = 3
"""Failures in a row at one address before it is tried more rarely."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
HOST_BURST, HOST_RATE = 256.0, 2.0
"""Failed dials of one host, at once and per second."""
MOST_TARGETS = 4096


class Targets:
    """Where dialling failed, by address and by host. No I/O, no clock."""

    def __init__(self) -> None:
        self._failures: OrderedDict[Address, tuple[int, float]] = OrderedDict()
        self._hosts: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._members: OrderedDict[Address, None] = OrderedDict()
        self._trying: Counter[Address | str] = Counter()

    def may(self, address: Address, now: float) -> bool:
        failures, last = self._failures.get(address, (0, 0.0))
        underway = self._trying[address]
        if underway and failures + underway >= PATIENT_AFTER:
            return False
        if failures >= PATIENT_AFTER:
            pause = min(FIRST_PAUSE * 2.0 ** (failures - PATIENT_AFTER), LONGEST_PAUSE)
            if now < last + pause:
                return False
        if address in self._members:
            return True
        spent, at = self._hosts.get(address.host, (0.0, now))
        return self._trying[address.host] + spent - (now - at) * HOST_RATE < HOST_BURST

    @contextmanager
    def trying(self, address: Address) -> Iterator[None]:
        """A dial that has not ended yet: it may fail, like those before it."""
        both = (address, address.host)
        self._trying.update(both)
        try:
            yield
        finally:
            self._trying.subtract(both)
            for ended in both:
                if not self._trying[ended]:
                    del self._trying[ended]

    def failed(self, address: Address, now: float) -> None:
        failures, _ = self._failures.pop(address, (0, 0.0))
        self._failures[address] = (failures + 1, now)
        if address not in self._members:
            spent, at = self._hosts.pop(address.host, (0.0, now))
            self._hosts[address.host] = (max(0.0, spent - (now - at) * HOST_RATE) + 1.0, now)
        for table in (self._failures, self._hosts):
            if len(table) > MOST_TARGETS:
                table.popitem(last=False)

    def reached(self, address: Address) -> None:
        """A member of the swarm was dialled there, and answered."""
        self._failures.pop(address, None)
        self._members[address] = None
        self._members.move_to_end(address)
        if len(self._members) > MOST_TARGETS:
            self._members.popitem(last=False)

    def member(self, address: Address) -> bool:
        return address in self._members


class Dialler:
    """The dialling side of a `Transport`."""

    def __init__(self, owner: Transport) -> None:
        self._owner = owner
        self.targets = Targets()
        self._unreachable: dict[NodeId, float] = {}
        self.use_keys()

    def use_keys(self) -> None:
        keyring = self._owner.keyring
        self._context = keyring.context(server=False) if keyring else None

    def cooling(self, peer: NodeId) -> bool:
        """Whether a peer was unreachable a moment ago: not to be tried now."""
        until = self._unreachable.get(peer)
        if until is None:
            return False
        if until > self._owner.loop.time():
            return True
        del self._unreachable[peer]
        return False

    def met(self, peer: NodeId) -> None:
        """A peer is connected, whoever dialled. Where it says that it listens is its word alone."""
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
                if address is None or not self.targets.may(address, owner.loop.time()):
                    break
                try:
                    with self.targets.trying(address):
                        link = await self.connect(address, peer.id)
                except (OSError, ssl.SSLError, TimeoutError) as error:
                    owner.counters.dials_failed += 1
                    self.targets.failed(address, owner.loop.time())
                    if not isinstance(error, ConnectionRefusedError | TimeoutError):
                        owner.troubles.note(f"dialling {address}", why(error), owner.loop.time())
                    continue
                if link.peer != peer.id:
                    self.targets.failed(address, owner.loop.time())
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

    async def connect(self, address: Address, expected: NodeId | None = None) -> PeerLink:
        owner = self._owner
        if owner.cut(expected):
            raise ConnectionRefusedError("behind the firewall")
        link = PeerLink(owner, dialled=True, remote=str(address))
        try:
            async with asyncio.timeout(owner.pace.dial_timeout):
                await owner.loop.create_connection(
                    lambda: link,
                    address.host,
                    address.port,
                    ssl=self._context,
                    server_hostname="topicweave" if self._context else None,
                )
                await link.opened
        except BaseException as error:
            link.give_up(error)
            raise
        self.targets.reached(address)
        return link
