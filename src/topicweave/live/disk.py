"""The data folder's thread: it collects writes, commits them together, and repeats them while the disk is full.

Theory of operation: `do` notes a write. `committed` returns a future that is done when all writes noted so
far are permanent. The thread has one batch at a time; writes noted meanwhile form the next. A batch that
fails is rolled back and tried again after a growing pause, ahead of later writes. So nothing is lost that was
promised to be permanent, and nothing counts as permanent that is not.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from topicweave.live.counters import Counters
from topicweave.live.store import Store

log = logging.getLogger("topicweave.live")

PATIENCE = 5.0
"""Seconds for which an application waits for a disk that takes nothing, unless it says otherwise."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0

T = TypeVar("T")
Write = tuple[Callable[..., None], tuple[Any, ...]]


class Disk:
    """Made in a running event loop. `failed(reason)` is called each time the disk refuses a batch."""

    def __init__(self, store: Store, counters: Counters, failed: Callable[[str], None]) -> None:
        self.store = store
        self.error = ""
        """Why what was noted is not permanent; empty while all is well."""
        self._counters = counters
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="data-folder")
        self._noted: list[Write] = []
        self._promise: asyncio.Future[None] | None = None
        self._working: asyncio.Task[None] | None = None
        self._closed = False

    def do(self, write: Callable[..., None], *arguments: Any) -> None:
        """Note a write; `write` is a method of the store."""
        self._noted.append((write, arguments))

    def committed(self) -> asyncio.Future[None]:
        """Done when everything noted so far is permanent."""
        if self._promise is None:
            self._promise = self._loop.create_future()
            if self._working is None and not self._closed:
                self._working = self._loop.create_task(self._work())
        return self._promise

    async def keeps(self, promise: asyncio.Future[None], patience: float = PATIENCE) -> bool:
        """Whether what `committed` promised is permanent. While the disk fails, that is waited for so many
        seconds at most.
        """
        while not promise.done() and not self._closed:
            await asyncio.wait([promise], timeout=0.1)
            if self.error:
                await asyncio.wait([promise], timeout=patience)
                break
        return promise.done() and not promise.cancelled()

    async def read(self, query: Callable[..., T], *arguments: Any) -> T:
        return await self._loop.run_in_executor(self._thread, query, *arguments)

    async def close(self, patience: float = 2.0) -> None:
        """Write what is noted, if that can be done in a moment."""
        if self._noted:
            self.committed()
        working = self._working
        if working is not None:
            await asyncio.wait([working], timeout=patience)
            if not working.done():
                log.error("the last write did not reach the data folder: %s", self.error)
                working.cancel()
        self._closed = True  # Timers may still come.
        await self._loop.run_in_executor(self._thread, self.store.close)
        self._thread.shutdown(wait=False)

    async def _work(self) -> None:
        pause = FIRST_PAUSE
        while self._promise is not None:
            batch, self._noted = self._noted, []
            promise, self._promise = self._promise, None
            while error := await self._loop.run_in_executor(self._thread, self._write, batch):
                self._counters.store_failures += 1
                if not self.error:
                    log.error("the data folder takes nothing: %s; trying again", error)
                self.error = error
                self._failed(error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            if self.error:
                log.warning("the data folder works again")
                self.error, pause = "", FIRST_PAUSE
            if not promise.done():
                promise.set_result(None)
        self._working = None

    def _write(self, batch: list[Write]) -> str:
        """In the thread: why it failed, if so."""
        try:
            for write, arguments in batch:
                write(*arguments)
            self.store.commit()
        except (sqlite3.Error, OSError) as error:
            try:
                self.store.roll_back()
            except sqlite3.Error as again:
                return f"{error}; {again}"
            return str(error)
        return ""
