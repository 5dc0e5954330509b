"""The data folder: what a node keeps when its process ends, however it ends (SQLite).

Rules kept
----------
1. The folder commits what must not be forgotten before that has an effect: a sequence number before its event
   is sent, and the fact that an event was seen before the application gets it. So a killed process never uses a
   number twice and never hands an event over twice.
2. One process at a time: the folder is locked.
3. The write-ahead log survives a killed process. After a power failure the last moments may be missing
   (synchronous=NORMAL).
4. While a node runs, only the thread of `disk` works here, so a slow disk does not delay the event loop.
"""

from __future__ import annotations

import contextlib
import sqlite3
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from topicweave.blocks.seen import Gaps
from topicweave.errors import BadInput
from topicweave.live import layouts
from topicweave.live.event_log import Logged
from topicweave.live.settings import Address
from topicweave.model.event import Event, EventId
from topicweave.model.ids import NodeId, TopicId

FILE = "node.sqlite"
LAYOUT = layouts.LATEST
"""Of the tables below; earlier ones are brought to it, later ones refused."""

_TABLES = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS peers (id INTEGER PRIMARY KEY, host TEXT NOT NULL, port INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS subscriptions (topic TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sequences (topic INTEGER PRIMARY KEY, next INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS seen (
    publisher INTEGER, topic INTEGER, epoch INTEGER NOT NULL, highest INTEGER NOT NULL, gaps BLOB NOT NULL,
    base INTEGER NOT NULL,
    PRIMARY KEY (publisher, topic)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (
    number INTEGER PRIMARY KEY, publisher INTEGER, topic INTEGER, epoch INTEGER, sequence INTEGER,
    hops INTEGER NOT NULL, payload BLOB NOT NULL, arrived REAL NOT NULL,
    UNIQUE (publisher, topic, epoch, sequence)
);
CREATE INDEX IF NOT EXISTS events_by_topic ON events (topic, number);
CREATE TABLE IF NOT EXISTS unacknowledged (
    publisher INTEGER, topic INTEGER, epoch INTEGER, sequence INTEGER, payload BLOB NOT NULL,
    PRIMARY KEY (publisher, topic, epoch, sequence)
);
"""

_THIS = "publisher = ? AND topic = ? AND epoch = ? AND sequence = ?"


def _signed(identifier: int) -> int:
    """SQLite's integers have a sign, identifiers have none."""
    return identifier - (1 << 64) if identifier >= 1 << 63 else identifier


def _unsigned(stored: int) -> int:
    return stored & ((1 << 64) - 1)


class Store:
    """All writes since the last `commit` become permanent together. `signed`: whether events carry signatures."""

    def __init__(self, folder: str | Path, signed: bool = False) -> None:
        path = Path(folder) / FILE
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            written = layouts.last_written(path)
            self._db = sqlite3.connect(path, isolation_level=None, timeout=0.5, check_same_thread=False)
            # Exclusive: a second process finds the folder taken.
            self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            layout = self._bring_up(written, signed)
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise BadInput(f"{folder}: another process uses this data folder") from None
            raise BadInput(f"{folder}: cannot be used as a data folder ({error})") from None
        except (sqlite3.DatabaseError, OSError) as error:
            raise BadInput(f"{folder}: not a node's data folder ({error})") from None
        if layout != LAYOUT:
            self._db.close()
            raise BadInput(
                f"{folder}: written by a later version of Topicweave (layout {layout}; this one reads up to {LAYOUT});"
                " start the node with that version, or with an empty data folder"
            )

    def _bring_up(self, written: float, signed: bool) -> object:
        """Make the tables, or bring them to the layout of today; the layout that there is in the end."""
        self._db.execute("BEGIN IMMEDIATE")
        layout = layouts.layout_of(self._db)
        if isinstance(layout, int) and layouts.EARLIEST <= layout < LAYOUT:
            layouts.bring_up(self._db, layout, written, signed)
            layout = LAYOUT
        self._db.execute("COMMIT")
        if layout in (None, LAYOUT):
            self._db.executescript(_TABLES)
            self._db.execute("INSERT OR IGNORE INTO facts VALUES ('layout', ?)", (LAYOUT,))
            layout = LAYOUT
        return layout

    # Facts: name, swarm, system, time, epoch.

    def fact(self, name: str) -> int | float | str | None:
        row = self._db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        value: int | float | str | None = row[0] if row else None
        return value

    def set_fact(self, name: str, value: int | float | str | bytes) -> None:
        self._write("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def facts_below(self, prefix: str) -> dict[str, bytes]:
        """Those whose names begin so, without that beginning."""
        rows = self._db.execute(
            "SELECT substr(name, ?), value FROM facts WHERE substr(name, 1, ?) = ? ORDER BY name",
            (len(prefix) + 1, len(prefix), prefix),
        )
        return dict(rows.fetchall())

    def forget_fact(self, name: str) -> None:
        self._write("DELETE FROM facts WHERE name = ?", (name,))

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

    def seen(self) -> Iterator[tuple[NodeId, TopicId, tuple[int, int, Gaps], int]]:
        """Streams as they were, each with the first number that counts as missed (see `gaps`)."""
        for publisher, topic, epoch, highest, stored, base in self._db.execute("SELECT * FROM seen"):
            gaps = tuple(struct.iter_unpack(">QQ", stored))
            yield _unsigned(publisher), _unsigned(topic), (epoch, highest, gaps), base

    def set_seen(self, publisher: NodeId, topic: TopicId, state: tuple[int, int, Gaps], base: int) -> None:
        epoch, highest, gaps = state
        stored = b"".join(struct.pack(">QQ", first, last) for first, last in gaps)
        row = (_signed(publisher), _signed(topic), epoch, highest, stored, base)
        self._write("INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?, ?, ?)", row)

    # The log.

    def events(self, last: int | None = None) -> Iterator[Logged]:
        """Oldest first; the last so many of each topic."""
        numbered = (
            "SELECT *, row_number() OVER (PARTITION BY topic ORDER BY number DESC) AS place FROM events"
        )
        most = -1 if last is None else last
        rows = self._db.execute(
            f"SELECT publisher, topic, epoch, sequence, payload, hops, arrived FROM ({numbered})"
            " WHERE ? < 0 OR place <= ? ORDER BY number",
            (most, most),
        )
        for *row, hops, arrived in rows:
            yield Logged(_event(row), hops, arrived)

    def within(self, missed: tuple[NodeId, TopicId, int, int, int], most: int) -> list[Logged]:
        """Events of a stream: publisher, topic, epoch, first and last number."""
        publisher, topic, epoch, first, last = missed
        rows = self._db.execute(
            "SELECT publisher, topic, epoch, sequence, payload, hops, arrived FROM events"
            " WHERE publisher = ? AND topic = ? AND epoch = ? AND sequence BETWEEN ? AND ? ORDER BY sequence LIMIT ?",
            (_signed(publisher), _signed(topic), epoch, first, min(last, (1 << 63) - 1), most),
        )
        return [Logged(_event(row), hops, arrived) for *row, hops, arrived in rows]

    def history(self, topic: TopicId, last: int, since: float) -> list[tuple[Event, int]]:
        """The last events of a topic that came after a moment, oldest first."""
        rows = self._db.execute(
            "SELECT publisher, topic, epoch, sequence, payload, hops FROM events"
            " WHERE topic = ? AND arrived >= ? ORDER BY number DESC LIMIT ?",
            (_signed(topic), since, last),
        ).fetchall()
        return [(_event(row), hops) for *row, hops in reversed(rows)]

    def add_event(self, event: Event, hops: int, arrived: float) -> None:
        row = (*_key(event.id), hops, event.payload, arrived)
        self._write(
            "INSERT OR IGNORE INTO events (publisher, topic, epoch, sequence, hops, payload, arrived)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            row,
        )

    def prune(self, topic: TopicId, events: int, size: int, since: float, spare_last: bool) -> None:
        """Keep of a topic's log so many events, bytes, and what came after a moment; and, if asked, the last
        in any case.
        """
        self._write(
            "DELETE FROM events WHERE number IN (SELECT number FROM ("
            " SELECT number, arrived, row_number() OVER newer AS place, sum(length(payload)) OVER newer AS bytes"
            " FROM events WHERE topic = ? WINDOW newer AS (ORDER BY number DESC))"
            " WHERE (place > ? OR bytes > ? OR arrived < ?) AND place > ?)",
            (_signed(topic), events, size, since, int(spare_last)),
        )

    def forget_topic(self, topic: TopicId) -> None:
        self._write("DELETE FROM events WHERE topic = ?", (_signed(topic),))

    # At least once: what the application was handed and has not acknowledged.

    def unacknowledged(self) -> list[Event]:
        rows = self._db.execute(
            "SELECT publisher, topic, epoch, sequence, payload FROM unacknowledged ORDER BY rowid"
        )
        return [_event(row) for row in rows]

    def add_unacknowledged(self, event: Event) -> None:
        self._write(
            "INSERT OR IGNORE INTO unacknowledged VALUES (?, ?, ?, ?, ?)", (*_key(event.id), event.payload)
        )

    def acknowledge(self, event: EventId) -> None:
        self._write(f"DELETE FROM unacknowledged WHERE {_THIS}", _key(event))

    # Transactions.

    def _write(self, statement: str, row: Iterable[object] = ()) -> None:
        if not self._db.in_transaction:
            self._db.execute("BEGIN")
        self._db.execute(statement, tuple(row))

    def commit(self) -> None:
        if self._db.in_transaction:
            self._db.execute("COMMIT")

    def roll_back(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def copy_to(self, file: Path) -> None:
        """All that is committed, as a data folder's file of its own; but not where the numbering stands.

        A node that goes on from a copy has forgotten what it published since. It must number in a new epoch,
        or others take its events for ones they have.
        """
        self._db.execute("VACUUM INTO ?", (str(file),))
        with contextlib.closing(sqlite3.connect(file)) as copy, copy:
            copy.execute("DELETE FROM facts WHERE name = 'epoch'")
            copy.execute("DELETE FROM sequences")

    def close(self) -> None:
        self._db.close()


def _key(event: EventId) -> tuple[int, int, int, int]:
    return _signed(event.publisher), _signed(event.topic), event.epoch, event.sequence


def _event(row: list[Any] | tuple[Any, ...]) -> Event:
    publisher, topic, epoch, sequence, payload = row
    return Event(_unsigned(publisher), _unsigned(topic), epoch, sequence, payload)
