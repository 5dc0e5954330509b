"""A data folder on a disk that is full."""

from __future__ import annotations

from topicweave.live.store import Store


def limit_pages(store: Store, most: int) -> None:
    """As if the disk held no more of SQLite's pages; 0 for as many as there are."""
    store._db.execute(f"PRAGMA max_page_count={most or 1 << 30}")
