"""The data folder: what a node keeps when its process ends, however it ends (SQLite).

Rules kept
----------
1. What must not be forgotten is committed before anybody sees its effect: a sequence number before its event is sent, the fact that
   an event was seen before the application gets it. So a killed process never reuses a number and never hands over twice.
2. One process at a time: the folder is locked.
3. The write-ahead log survives a killed process. After a power failure the last moments may be missing (synchronous=NORMAL).
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from topicweave.blocks.seen import Gaps
from topicweave.errors import BadInput
from topicweave.live.settings import Address
from topicweave.model.event import Event, EventId
from topicweave.model.ids import NodeId, TopicId

LAYOUT = 2
"""Of the tables below; another one is refused."""

_TABLES = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS peers (id INTEGER PRIMARY KEY, host TEXT NOT NULL, port INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS subscriptions (topic TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sequences (topic INTEGER PRIMARY KEY, next INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS seen (
    publisher INTEGER, topic INTEGER, epoch INTEGER NOT NULL, highest INTEGER NOT NULL, gaps BLOB NOT NULL,
    PRIMARY KEY (publisher, topic)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (
    number INTEGER PRIMARY KEY, publisher INTEGER, topic INTEGER, epoch INTEGER, sequence INTEGER,
    hops INTEGER NOT NULL, payload BLOB NOT NULL,
    UNIQUE (publisher, topic, epoch, sequence)
);
"""


def _signed(identifier: int) -> int:
    """SQLite's integers have a sign, identifiers have none."""
    return identifier - (1 << 64) if identifier >= 1 << 63 else identifier


def _unsigned(stored: int) -> int:
    return stored & ((1 << 64) - 1)


class Store:
    """All writes since the last `commit` become permanent together."""

    def __init__(self, folder: str | Path) -> None:
        path = Path(folder) / "node.sqlite"
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, isolation_level=None, timeout=0.5)
            # Exclusive: a second process finds the folder taken.
            self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.executescript(_TABLES)
            self._db.execute("BEGIN IMMEDIATE")
            layout = self.fact("layout")
            if layout is None:
                self.set_fact("layout", LAYOUT)
            self._db.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise BadInput(f"{folder}: another process uses this data folder") from None
            raise BadInput(f"{folder}: cannot be used as a data folder ({error})") from None
        except (sqlite3.DatabaseError, OSError) as error:
            raise BadInput(f"{folder}: not a node's data folder ({error})") from None
        if layout not in (None, LAYOUT):
            raise BadInput(
                f"{folder}: written by another version of Topicweave (layout {layout}, not {LAYOUT})"
            )

    # Facts: name, swarm, system, time, epoch.

    def fact(self, name: str) -> int | float | str | None:
        row = self._db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        value: int | float | str | None = row[0] if row else None
        return value

    def set_fact(self, name: str, value: int | float | str) -> None:
        self._write("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    # Peers.

    def peers(self) -> dict[NodeId, Address]:
        rows = self._db.execute("SELECT id, host, port FROM peers")
        return {_unsigned(peer): Address(host, port) for peer, host, port in rows}

    def set_peers(self, peers: Mapping[NodeId, Address]) -> None:
        self._write("DELETE FROM peers")
        for peer, address in peers.items():
            self._write("INSERT INTO peers VALUES (?, ?, ?)", (_signed(peer), address.host, address.port))

    # Subscriptions.

    def subscriptions(self) -> list[str]:
        return [topic for (topic,) in self._db.execute("SELECT topic FROM subscriptions ORDER BY topic")]

    def add_subscription(self, topic: str) -> None:
        self._write("INSERT OR IGNORE INTO subscriptions VALUES (?)", (topic,))

    def remove_subscription(self, topic: str) -> None:
        self._write("DELETE FROM subscriptions WHERE topic = ?", (topic,))

    # Sequence numbers of the node's own events.

    def sequences(self) -> dict[TopicId, int]:
        return {_unsigned(topic): n for topic, n in self._db.execute("SELECT topic, next FROM sequences")}

    def set_sequence(self, topic: TopicId, following: int) -> None:
        self._write("INSERT OR REPLACE INTO sequences VALUES (?, ?)", (_signed(topic), following))

    # Events seen.

    def seen(self) -> Iterator[tuple[NodeId, TopicId, tuple[int, int, Gaps]]]:
        for publisher, topic, epoch, highest, stored in self._db.execute("SELECT * FROM seen"):
            gaps = tuple(struct.iter_unpack(">QQ", stored))
            yield _unsigned(publisher), _unsigned(topic), (epoch, highest, gaps)

    def set_seen(self, publisher: NodeId, topic: TopicId, state: tuple[int, int, Gaps]) -> None:
        epoch, highest, gaps = state
        stored = b"".join(struct.pack(">QQ", first, last) for first, last in gaps)
        row = (_signed(publisher), _signed(topic), epoch, highest, stored)
        self._write("INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?, ?)", row)

    # The caches.

    def events(self) -> Iterator[tuple[Event, int]]:
        """Oldest first, with their hops."""
        rows = self._db.execute(
            "SELECT publisher, topic, epoch, sequence, payload, hops FROM events ORDER BY number"
        )
        for publisher, topic, epoch, sequence, payload, hops in rows:
            yield Event(_unsigned(publisher), _unsigned(topic), epoch, sequence, payload), hops

    def add_event(self, event: Event, hops: int) -> None:
        row = (
            _signed(event.publisher),
            _signed(event.topic),
            event.epoch,
            event.sequence,
            hops,
            event.payload,
        )
        self._write(
            "INSERT OR IGNORE INTO events (publisher, topic, epoch, sequence, hops, payload)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            row,
        )

    def remove_event(self, event: EventId) -> None:
        self._write(
            "DELETE FROM events WHERE publisher = ? AND topic = ? AND epoch = ? AND sequence = ?",
            (_signed(event.publisher), _signed(event.topic), event.epoch, event.sequence),
        )

    # Transactions.

    def _write(self, statement: str, row: Iterable[object] = ()) -> None:
        if not self._db.in_transaction:
            self._db.execute("BEGIN")
        self._db.execute(statement, tuple(row))

    def commit(self) -> None:
        if self._db.in_transaction:
            self._db.execute("COMMIT")

    def close(self) -> None:
        self.commit()
        self._db.close()
