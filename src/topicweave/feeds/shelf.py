"""What a reader keeps: items, and what it knows of its feeds (SQLite, in the data folder)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from topicweave.errors import BadInput
from topicweave.feeds.items import FeedItem, Polled, digest

FILE = "feeds.sqlite"
LAYOUT = 1
KEPT = 500
"""Items of one feed that are kept; of those that went away only their names are, so that they do not come back."""

_TABLES = """
CREATE TABLE IF NOT EXISTS items (
    number INTEGER PRIMARY KEY, feed TEXT NOT NULL, key TEXT NOT NULL, digest BLOB NOT NULL,
    title TEXT, link TEXT, summary TEXT, published INTEGER NOT NULL, came REAL NOT NULL, via TEXT NOT NULL,
    UNIQUE (feed, key)
);
CREATE TABLE IF NOT EXISTS feeds (
    feed TEXT PRIMARY KEY, title TEXT NOT NULL, etag TEXT NOT NULL, modified TEXT NOT NULL, trouble TEXT NOT NULL,
    poller TEXT NOT NULL, polled REAL NOT NULL
) WITHOUT ROWID;
"""


class ShownItem(NamedTuple):
    """An item as pages show it."""

    feed: str
    feed_title: str
    item: FeedItem
    came: float
    via: str


class FeedState(NamedTuple):
    """The last poll of a feed that this reader knows of."""

    feed: str
    title: str = ""
    etag: str = ""
    modified: str = ""
    trouble: str = ""
    poller: str = ""
    polled: float = 0.0


class Shelf:
    """One reader's, for one process at a time. What was put is there after a crash."""

    def __init__(self, folder: Path | None) -> None:
        try:
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
            path = ":memory:" if folder is None else str(folder / FILE)
            self._db = sqlite3.connect(path, isolation_level=None, timeout=0.5)
            self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.executescript(_TABLES)
            (layout,) = self._db.execute("PRAGMA user_version").fetchone()
            if layout not in (0, LAYOUT):
                raise BadInput(f"{folder}: feeds kept by another version of Topicweave (layout {layout})")
            self._db.execute(f"PRAGMA user_version={LAYOUT}")
        except (sqlite3.Error, OSError) as error:
            raise BadInput(f"{folder}: feeds cannot be kept there ({error})") from None

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is put inside is kept together, or none of it is, and that is a `sqlite3.Error`."""
        if self._db.in_transaction:
            yield
            return
        with self._db:
            self._db.execute("BEGIN")
            yield

    def put(self, feed: str, items: Iterable[FeedItem], came: float, via: str) -> list[FeedItem]:
        """Keep those that are new; these are returned."""
        new = []
        with self.together():
            for item in items:
                row = (
                    feed,
                    item.key,
                    digest(item),
                    item.title,
                    item.link,
                    item.summary,
                    item.published,
                    came,
                    via,
                )
                words = "INSERT OR IGNORE INTO items VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                if self._db.execute(words, row).rowcount:
                    new.append(item)
            if new:
                self._make_room(feed)
        return new

    def _make_room(self, feed: str) -> None:
        of_it = "FROM items WHERE feed = ? ORDER BY number DESC LIMIT -1 OFFSET ?"
        self._db.execute(
            f"UPDATE items SET title = NULL, link = NULL, summary = NULL WHERE number IN (SELECT number {of_it})",
            (feed, KEPT),
        )
        self._db.execute(f"DELETE FROM items WHERE number IN (SELECT number {of_it})", (feed, 10 * KEPT))

    def known(self, feed: str) -> dict[str, bytes]:
        """The digests of its items, by their names."""
        return dict(self._db.execute("SELECT key, digest FROM items WHERE feed = ?", (feed,)).fetchall())

    def drop_from(self, feed: str, via: str) -> int:
        """Take back what came from somebody who is not believed any more."""
        with self.together():
            return self._db.execute("DELETE FROM items WHERE feed = ? AND via = ?", (feed, via)).rowcount

    def newest(self, feeds: Iterable[str], most: int) -> list[ShownItem]:
        """Those that came last, of these feeds."""
        wanted = frozenset(feeds)
        rows = self._db.execute(
            "SELECT items.feed, coalesce(feeds.title, ''), key, items.title, link, summary, published, came, via"
            " FROM items LEFT JOIN feeds USING (feed) WHERE items.title IS NOT NULL ORDER BY came DESC, number"
        )
        found = []
        for feed, feed_title, key, title, link, summary, published, came, via in rows:
            if feed in wanted:
                item = FeedItem(key, title, link, summary, published)
                found.append(ShownItem(feed, feed_title, item, came, via))
                if len(found) == most:
                    break
        rows.close()
        return found

    def state(self, feed: str) -> FeedState:
        row = self._db.execute("SELECT * FROM feeds WHERE feed = ?", (feed,)).fetchone()
        return FeedState(*row) if row else FeedState(feed)

    def note_poll(self, feed: str, polled: Polled, poller: str, now: float) -> None:
        title = polled.title or self.state(feed).title
        row = (feed, title, polled.etag, polled.modified, polled.trouble, poller, now)
        self._db.execute("INSERT OR REPLACE INTO feeds VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def forget_validators(self, feed: str) -> None:
        """Ask the source for all of it the next time."""
        self._db.execute("UPDATE feeds SET etag = '', modified = '' WHERE feed = ?", (feed,))
