"""A copy of a running node's data folder: made by the node, which has the folder locked, and fetched over HTTP.

The node writes the copy beside its own file, on the data folder's thread, and hands it out from there. The copy has no name any more while it is read, so
nothing is left behind however the reader ends.
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

from topicweave.errors import BadInput, TopicweaveError
from topicweave.live.client import opened
from topicweave.live.store import LAYOUT

if TYPE_CHECKING:
    from topicweave.live.disk import Disk

CHUNK = 256 * 1024
PREFIX = "copy-"


class Backups:
    """Of one node; one at a time."""

    def __init__(self) -> None:
        self._busy = False

    async def copy(self, disk: Disk | None, folder: str) -> tuple[int, AsyncIterator[bytes]]:
        """How many bytes it has, and the bytes."""
        if disk is None:
            raise BadInput("this node has no data folder: there is nothing to copy")
        if self._busy:
            raise BadInput("a copy is being fetched already; try again when it is done")
        self._busy = True
        try:
            await disk.committed()
            file = await disk.read(_copy, disk, Path(folder))
        except BaseException:
            self._busy = False
            raise
        return os.fstat(file.fileno()).st_size, self._chunks(file)

    async def _chunks(self, file: BinaryIO) -> AsyncIterator[bytes]:
        try:
            with file:
                while chunk := await asyncio.to_thread(file.read, CHUNK):
                    yield chunk
        finally:
            self._busy = False


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
