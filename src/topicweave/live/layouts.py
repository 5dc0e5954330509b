"""Data folders of earlier versions: their tables are converted to the present layout, in one transaction.

| layout | what it lacks |
|---|---|
| 1 | events seen are a window of 1,024 bits below the highest number |
| 2 | nothing says when an event came, and from which number on an event counts as missed |

The conversion makes nothing up. An event counts as come when the file was last written. Missing events of a
stream are not announced as missed, because the node may not have been subscribed. In a swarm with keys the
stored events are dropped: no node reads the form of their signatures.
"""

from __future__ import annotations

import sqlite3
import struct
from pathlib import Path

from topicweave.blocks.seen import Gaps

EARLIEST, LATEST = 1, 3
WINDOW = 1024
"""Numbers that layout 1 remembers; what is older counts as seen."""


def last_written(path: Path) -> float:
    """When a file or its write-ahead log was written, last; ask before it is opened."""
    there = [file for file in (path, path.with_name(f"{path.name}-wal")) if file.exists()]
    return max((file.stat().st_mtime for file in there), default=0.0)


def layout_of(db: sqlite3.Connection) -> object:
    """The layout of a file, whatever it says; none if it is empty."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'facts'").fetchone():
        return None
    row = db.execute("SELECT value FROM facts WHERE name = 'layout'").fetchone()
    return row[0] if row else None


def bring_up(db: sqlite3.Connection, layout: int, written: float, signed: bool) -> None:
    """From an earlier layout to the latest; within the caller's transaction. `written`: when the file was, last."""
    if layout < 2:
        _gaps_for_bits(db)
    db.execute("ALTER TABLE seen ADD COLUMN base INTEGER NOT NULL DEFAULT 0")
    db.execute("UPDATE seen SET base = highest + 1")
    db.execute(f"ALTER TABLE events ADD COLUMN arrived REAL NOT NULL DEFAULT {float(written)!r}")
    if signed:
        db.execute("DELETE FROM events")
    db.execute("UPDATE facts SET value = ? WHERE name = 'layout'", (LATEST,))


def _gaps_for_bits(db: sqlite3.Connection) -> None:
    db.execute("ALTER TABLE seen RENAME COLUMN bits TO gaps")
    for publisher, topic, highest, bits in db.execute(
        "SELECT publisher, topic, highest, gaps FROM seen"
    ).fetchall():
        gaps = gaps_of(highest, int.from_bytes(bits, "big"))
        stored = b"".join(struct.pack(">QQ", first, last) for first, last in gaps)
        db.execute("UPDATE seen SET gaps = ? WHERE publisher = ? AND topic = ?", (stored, publisher, topic))


def gaps_of(highest: int, bits: int) -> Gaps:
    """Bit `i` says whether `highest - i` was seen.

    >>> gaps_of(9, 0b1110110011), gaps_of(3, 0b1111), gaps_of(2000, 1)
    (((3, 3), (6, 7)), (), ((977, 1999),))
    """
    gaps: list[tuple[int, int]] = []
    for number in range(max(0, highest - WINDOW + 1), highest):
        if bits >> (highest - number) & 1:
            continue
        if gaps and gaps[-1][1] == number - 1:
            gaps[-1] = (gaps[-1][0], number)
        else:
            gaps.append((number, number))
    return tuple(gaps)
