"""Data folders of earlier layouts."""

import asyncio
import os
import sqlite3
import struct
from contextlib import closing
from pathlib import Path

import pytest

from topicweave.errors import BadInput
from topicweave.live import LiveNode, Settings
from topicweave.live.store import FILE, LAYOUT, Store
from topicweave.model.ids import ring_id

NEWS = ring_id("news")
ME, OTHER = ring_id("me"), ring_id("other")
WRITTEN = 1_700_000_000.0
SHARED = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE peers (id INTEGER PRIMARY KEY, host TEXT NOT NULL, port INTEGER NOT NULL);
CREATE TABLE subscriptions (topic TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE sequences (topic INTEGER PRIMARY KEY, next INTEGER NOT NULL);
CREATE TABLE events (
    number INTEGER PRIMARY KEY, publisher INTEGER, topic INTEGER, epoch INTEGER, sequence INTEGER,
    hops INTEGER NOT NULL, payload BLOB NOT NULL,
    UNIQUE (publisher, topic, epoch, sequence)
);
"""
SEEN = """
CREATE TABLE seen (
    publisher INTEGER, topic INTEGER, epoch INTEGER NOT NULL, highest INTEGER NOT NULL, {} BLOB NOT NULL,
    PRIMARY KEY (publisher, topic)
) WITHOUT ROWID;
"""
"""As versions with layouts 1 and 2 made them."""


def signed(identifier: int) -> int:
    return identifier - (1 << 64) if identifier >= 1 << 63 else identifier


def old_folder(folder: Path, layout: int) -> Path:
    """Of a node that wants `news`, has published three events on it, and has had 0, 1 and 4 of another's."""
    folder.mkdir()
    seen = bytes([0b11001]) if layout == 1 else struct.pack(">QQ", 2, 3)
    with closing(sqlite3.connect(folder / FILE)) as db, db:
        db.executescript(SHARED + SEEN.format("bits" if layout == 1 else "gaps"))
        facts = [("layout", layout), ("name", "me"), ("swarm", "topicweave"), ("epoch", 7), ("now", 100.0)]
        db.executemany("INSERT INTO facts VALUES (?, ?)", facts)
        db.execute("INSERT INTO peers VALUES (?, '127.0.0.1', 9)", (signed(OTHER),))
        db.execute("INSERT INTO subscriptions VALUES ('news')")
        db.execute("INSERT INTO sequences VALUES (?, 3)", (signed(NEWS),))
        db.execute("INSERT INTO seen VALUES (?, ?, 5, 4, ?)", (signed(OTHER), signed(NEWS), seen))
        for number in (0, 1, 4):
            row = (signed(OTHER), signed(NEWS), number, b"%d" % number)
            db.execute("INSERT INTO events VALUES (NULL, ?, ?, 5, ?, 2, ?)", row)
    os.utime(folder / FILE, (WRITTEN, WRITTEN))
    return folder


@pytest.mark.parametrize("layout", [1, 2])
def test_a_folder_of_an_earlier_layout_is_brought_to_this_one_with_all_that_it_knows(
    tmp_path: Path, layout: int
) -> None:
    folder = old_folder(tmp_path / "data", layout)
    for _ in range(2):  # The second time it is of this layout.
        store = Store(folder)
        assert store.fact("layout") == LAYOUT
        assert store.subscriptions() == ["news"]
        assert store.sequences() == {NEWS: 3}
        assert list(store.peers()) == [OTHER]
        # Whether 2 and 3 are older than the subscription is not known: they are new if they come, and not
        # announced as missed.
        assert list(store.seen()) == [(OTHER, NEWS, (5, 4, ((2, 3),)), 5)]
        kept = list(store.events())
        assert [one.event.payload for one in kept] == [b"0", b"1", b"4"]
        assert {one.arrived for one in kept} == {WRITTEN}
        assert store.unacknowledged() == []
        store.close()


@pytest.mark.parametrize("layout", [1, 2])
def test_events_whose_signatures_nobody_reads_stay_behind(tmp_path: Path, layout: int) -> None:
    store = Store(old_folder(tmp_path / "data", layout), signed=True)
    assert list(store.events()) == []
    assert store.subscriptions() == ["news"]
    store.close()


@pytest.mark.parametrize("layout", [1, 2])
def test_a_node_goes_on_from_an_earlier_layout(tmp_path: Path, layout: int) -> None:
    folder = old_folder(tmp_path / "data", layout)

    async def lives() -> None:
        node = LiveNode(
            Settings(name="me", system="spidercast", insecure=True, preset="local", data=str(folder))
        )
        await node.start()
        assert node.subscriptions == ["news"]
        published = await node.publish("news", b"next")
        assert published.event.epoch == 7
        assert published.event.sequence == 3
        await node.stop()

    asyncio.run(lives())
    store = Store(folder)
    assert [one.event.payload for one in store.events()] == [b"0", b"1", b"4", b"next"]
    store.close()


@pytest.mark.parametrize("layout", [LAYOUT + 1, 0, "new"])
def test_a_folder_of_a_layout_that_is_not_known_is_refused_and_not_touched(
    tmp_path: Path, layout: int | str
) -> None:
    folder = old_folder(tmp_path / "data", 2)
    with closing(sqlite3.connect(folder / FILE)) as db, db:
        db.execute("UPDATE facts SET value = ? WHERE name = 'layout'", (layout,))
    with pytest.raises(BadInput, match=rf"layout {layout}; this one reads up to {LAYOUT}.*empty data folder"):
        Store(folder)
    with closing(sqlite3.connect(folder / FILE)) as db:
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert "unacknowledged" not in tables
