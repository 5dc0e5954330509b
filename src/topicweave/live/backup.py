"""A copy of a running node's data folder. The node makes it, because it has the folder locked, and hands it
out over HTTP.

The node writes the copy beside its own file, on the data folder's thread, and sends it from there. The copy's
file has no name while it is read, so nothing is left behind however the reader ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from topicweave.client.through import opened
from topicweave.errors import BadInput, TopicweaveError
from topicweave.live.store import LAYOUT

if TYPE_CHECKING:
    from topicweave.live.disk import Disk

CHUNK = 256 * 1024
PREFIX = "copy-"
PATIENCE = 30.0
DISK_PATIENCE = 5.0
"""Seconds for which a copy waits for a disk that takes nothing."""


class Backups:
    """Of one node; one at a time. A reader that takes nothing for `patience` seconds makes room for the next."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._copying = False
        self._file: BinaryIO | None = None
        self._moved = 0.0  # when the reader last took something

    async def copy(self, disk: Disk | None, folder: str) -> tuple[int, AsyncIterator[bytes]]:
        """How many bytes it has, and the bytes."""
        if disk is None:
            raise BadInput("this node has no data folder: there is nothing to copy")
        reads = self._file is not None and not self._file.closed
        if self._copying or (reads and _now() - self._moved < self._patience):
            raise BadInput("a copy is being fetched already; try again when it is done")
        if self._file is not None:
            self._file.close()
        self._copying = True
        try:
            if not await disk.keeps(disk.committed(), DISK_PATIENCE):
                raise BadInput(
                    f"the data folder takes nothing at the moment: {disk.error or 'the node stops'}"
                )
            self._file = await disk.read(_copy, disk, Path(folder))
        finally:
            self._copying = False
        self._moved = _now()
        return os.fstat(self._file.fileno()).st_size, self._chunks(self._file)

    async def _chunks(self, file: BinaryIO) -> AsyncIterator[bytes]:
        with file:
            while chunk := await asyncio.to_thread(file.read, CHUNK):
                self._moved = _now()
                yield chunk


def _now() -> float:
    return asyncio.get_running_loop().time()


def _copy(disk: Disk, folder: Path) -> BinaryIO:
    """In the thread."""
    for left in folder.glob(f"{PREFIX}*"):  # of a process that was killed
        left.unlink(missing_ok=True)
    name = folder / f"{PREFIX}{secrets.token_hex(8)}.sqlite"
    try:
        disk.store.copy_to(name)
        return name.open("rb")
    except (sqlite3.Error, OSError) as error:
        raise BadInput(f"the data folder cannot be copied: {error}") from None
    finally:
        name.unlink(missing_ok=True)


def backup_through(node: str, token: str, file: Path) -> int:
    """Fetch a copy from a running node; how many events it holds. The file is there whole, or not at all."""
    part = file.with_name(file.name + ".part")
    try:
        with opened(node, token, "/backup") as answer, part.open("wb") as out:
            while chunk := answer.read(CHUNK):
                out.write(chunk)
            out.flush()
            os.fsync(out.fileno())
        events = _verified(part)
        part.replace(file)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
    return events


def _verified(file: Path) -> int:
    try:
        with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as copy:
            sound = copy.execute("PRAGMA integrity_check").fetchone()[0]
            layout = copy.execute("SELECT value FROM facts WHERE name = 'layout'").fetchone()
            events: int = copy.execute("SELECT count(*) FROM events").fetchone()[0]
    except sqlite3.Error as error:
        raise TopicweaveError(f"what came is no copy of a data folder ({error})") from None
    if sound != "ok" or layout is None or layout[0] != LAYOUT:
        raise TopicweaveError(f"the copy is damaged ({sound}); nothing was kept, try again")
    return events
