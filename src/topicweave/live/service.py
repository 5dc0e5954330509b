"""Word to the service manager that started this process, by systemd's protocol: ready, reading its keys
again, stopping, still turning.

The manager names a datagram socket (`NOTIFY_SOCKET`) and how long it waits for a sign of life
(`WATCHDOG_USEC`). Without either nothing is said.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable, Mapping

READY, STOPPING, ALIVE = "READY=1", "STOPPING=1", "WATCHDOG=1"


class ServiceManager:
    """Whoever started the process, if it wants to hear of it."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._address = environment.get("NOTIFY_SOCKET", "")
        if self._address.startswith("@"):
            self._address = "\0" + self._address[1:]  # Linux's names outside of the file system
        meant_for = environment.get("WATCHDOG_PID", "")
        patience = environment.get("WATCHDOG_USEC", "")
        ours = not meant_for or meant_for == str(os.getpid())
        self.patience = int(patience) / 1e6 if patience.isdecimal() and ours else 0.0
        """Seconds without a sign of life after which the process is ended; 0: it is not waited for."""

    def say(self, *lines: str) -> None:
        """A manager that is gone is no reason to stop."""
        if not self._address:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as door:
            door.setblocking(False)
            try:
                door.sendto("\n".join(lines).encode(), self._address)
            except OSError:
                return

    def reloading(self) -> None:
        """`READY` follows when it is done."""
        self.say("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    async def keep_telling(self, status: Callable[[], str]) -> None:
        """Signs of life, each from a turn of the event loop, and what the node does at the moment."""
        if not self._address:
            return
        while True:
            self.say(*([ALIVE] if self.patience else []), f"STATUS={status()}")
            await asyncio.sleep(min(self.patience / 3, 10.0) if self.patience else 10.0)
