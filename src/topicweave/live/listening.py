"""Listening: a node accepts every connection, and the other side must say hello in time. `admission` decides
which connections go when there are too many.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from typing import TYPE_CHECKING

from topicweave.live.link import PeerLink
from topicweave.live.settings import Address
from topicweave.live.troubles import why

if TYPE_CHECKING:
    from topicweave.live.transport import Transport

log = logging.getLogger("topicweave.live")


class Listener:
    """The listening side of a `Transport`."""

    def __init__(self, owner: Transport, listen: Address) -> None:
        self._owner = owner
        self.use_keys()
        family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.setblocking(False)
        try:
            self._socket.bind((listen.host, listen.port))
            self._socket.listen(256)
        except OSError:
            self._socket.close()
            raise
        self.port: int = self._socket.getsockname()[1]
        self._accepting = owner.spawn(self._accept())

    def use_keys(self) -> None:
        keyring = self._owner.keyring
        self._context = keyring.context(server=True) if keyring else None

    async def close(self) -> None:
        self._accepting.cancel()
        await asyncio.gather(self._accepting, return_exceptions=True)
        self._socket.close()

    async def _accept(self) -> None:
        owner = self._owner
        while True:
            try:
                accepted, remote = await owner.loop.sock_accept(self._socket)
            except OSError as error:
                # Out of file descriptors, most likely: let some be closed first.
                log.warning("%s: cannot accept a connection: %s", owner.name, error)
                await asyncio.sleep(0.1)
                continue
            link = PeerLink(owner, dialled=False, remote=remote[0])
            if owner.admit(link):
                link.greeting = owner.spawn(self._greet(link, accepted))
            else:
                link.dismiss()
                accepted.close()

    async def _greet(self, link: PeerLink, accepted: socket.socket) -> None:
        owner = self._owner
        try:
            accepted.setblocking(False)
            await owner.loop.connect_accepted_socket(
                lambda: link,
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=owner.pace.hello_timeout if self._context else None,
            )
        except (OSError, ssl.SSLError, TimeoutError) as error:
            link.error = why(error)
            owner.counters.connections_refused += 1
            owner.troubles.note(f"a stranger from {link.remote}", link.error, owner.loop.time())
            accepted.close()
            link.dismiss()
            owner.link_lost(link)
        except asyncio.CancelledError:
            accepted.close()
            link.dismiss()
            raise
