"""Readers that share feeds over a mesh of live nodes: the source is asked by one of them, and all have what it says."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest

from tests.feeds.source import Source, serving
from topicweave.errors import BadInput
from topicweave.feeds.command import feeds_of
from topicweave.feeds.items import FeedItem, Polled, encode, parse
from topicweave.feeds.pages import ATOM, page
from topicweave.feeds.reading import TOPIC, FeedReader, FeedSettings, checked
from topicweave.feeds.shelf import KEPT, Shelf
from topicweave.live.node import LiveNode, connect

PATIENCE = 300.0
BAD = ["missing/x", "gone/x", "broken/x", "page/x", "huge/x", "circle/x", "busy/x", "private/x"]


@asynccontextmanager
async def reading(
    names: list[str], urls: list[str], settings: FeedSettings, folder: Path, on: str = ""
) -> AsyncIterator[list[tuple[LiveNode, FeedReader]]]:
    async with AsyncExitStack() as stack:
        found: list[tuple[LiveNode, FeedReader]] = []
        for number, name in enumerate(names):
            join = [on] if on else [str(found[0][0].address)] if found else []
            node = await stack.enter_async_context(
                connect(insecure=True, listen="127.0.0.1:0", preset="lan", name=name, join=join)
            )
            reader = FeedReader(node, urls, settings, folder / name, folder / name, seed=number)
            found.append((node, reader))
        running = [asyncio.create_task(reader.run()) for _, reader in found]
        yield found
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not true():
            await asyncio.sleep(0.1)


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await main()

    asyncio.run(whole())


@pytest.mark.timeout(600)
def test_ten_readers_of_a_hundred_feeds_ask_as_if_they_were_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving() as source:
        good = [f"f{number}" for number in range(91)] + ["malicious"]
        urls = [*map(source.feed, good), *(f"{source.url}/{bad}" for bad in BAD)]
        assert len(urls) == 100
        settings = FeedSettings(period=30.0, moment=4.0, samples=0.0, gap=0.0, patience=20.0)

        async def main() -> None:
            async with reading([f"reader-{n}" for n in range(10)], urls, settings, tmp_path) as readers:

                def all_have_all() -> bool:
                    return all(
                        source.keys(name) <= reader.shelf.known(source.feed(name)).keys()
                        for _, reader in readers
                        for name in good
                    )

                began = time.monotonic()
                await until(all_have_all)
                first = {name: source.asked[f"/good/{name}"] for name in good}
                source.items.update(dict.fromkeys(good, 5))
                await until(all_have_all)
                asked = {name: source.asked[f"/good/{name}"] for name in good}
                await until((tmp_path / "reader-0" / "index.html").exists)
                # Each at once, and then again after every period.
                polls_alone = 1 + int((time.monotonic() - began) / settings.period)
                alone = polls_alone * 10 * len(good)
                with capsys.disabled():
                    print(
                        f"\n10 readers, {len(good)} feeds, two versions of each: {sum(asked.values())} requests,"
                        f" {sum(first.values())} of them for the first; readers that poll for themselves: {alone}"
                    )
                # How many more than the 2 per feed depends on how busy this machine is.
                assert sum(asked.values()) < alone / 2
                assert source.asked["/private/x"] == 0
                assert sum(reader.counts.items_received for _, reader in readers) >= 0.5 * 9 * 5 * len(good)

        run(main)
    shown = (tmp_path / "reader-3" / "index.html").read_text()
    for trouble in (
        "the source answers 404",
        "gone for good",
        "robots.txt forbids it",
        "what came is no feed",
    ):
        assert trouble in shown
    entries = ET.parse(tmp_path / "reader-3" / "feeds.atom").getroot().findall(f"{{{ATOM}}}entry")
    assert len(entries) == 200


def test_a_page_shows_what_malicious_feeds_say_and_does_nothing_of_it() -> None:
    source, shelf = Source(), Shelf(None)
    document = parse(source.document("malicious"), "http://127.0.0.1/")
    assert document is not None
    shelf.put("http://127.0.0.1/", document.items, 1.0, "<b>reader</b>")
    shown = page("<i>me</i>", shelf.newest(["http://127.0.0.1/"], 10), [shelf.state("http://127.0.0.1/")])
    assert "free" in shown
    assert "gifts" in shown
    for never in ("<script", "javascript:", "onerror", "<img", "<b>", "<i>"):
        assert never not in shown


@pytest.mark.timeout(600)
def test_a_late_reader_gets_what_was_there_without_asking_the_source(tmp_path: Path) -> None:
    with serving() as source:
        settings = FeedSettings(period=600.0, moment=1.0, samples=0.0, gap=0.0)
        url = source.feed("a")

        async def main() -> None:
            async with reading(["ann", "bob"], [url], settings, tmp_path) as readers:
                await until(lambda: all(len(reader.shelf.known(url)) == 3 for _, reader in readers))
                on = str(readers[0][0].address)
                # It waits longer than anything takes to come, before it asks the source itself.
                patient = msgspec.structs.replace(settings, moment=60.0)
                async with reading(["late"], [url], patient, tmp_path, on) as late:
                    await until(lambda: len(late[0][1].shelf.known(url)) == 3)
                    assert late[0][1].counts.polls == 0
                asked = source.asked["/good/a"]
                await until(lambda: sum(reader.counts.polls for _, reader in readers) >= asked)

        run(main)


@pytest.mark.timeout(600)
def test_who_makes_items_up_is_caught_and_not_believed(tmp_path: Path) -> None:
    with serving() as source:
        settings = FeedSettings(period=600.0, moment=1.0, samples=1.0, gap=0.0)
        url = source.feed("a")

        async def main() -> None:
            async with reading(["ann", "bob"], [url], settings, tmp_path) as readers:
                await until(lambda: all(len(reader.shelf.known(url)) == 3 for _, reader in readers))
                on = str(readers[0][0].address)
                async with connect(insecure=True, listen="127.0.0.1:0", preset="lan", join=[on]) as liar:
                    number = 0
                    while any(reader.counts.not_believed < 2 for _, reader in readers):
                        number += 1
                        lie = FeedItem(f"lie-{number}", "buy this", "http://example.org/", "")
                        await liar.publish(TOPIC + url, encode(lie), wait_for=1)
                        await liar.publish(TOPIC + url, encode(Polled(600.0, 5)), wait_for=1)
                        await asyncio.sleep(0.2)
                for _, reader in readers:
                    assert reader.counts.caught >= 2
                    assert reader.shelf.known(url).keys() == source.keys("a")

        run(main)


def test_a_shelf_outlives_its_process_and_stays_small(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    items = [FeedItem(str(number), f"t{number}", "", "") for number in range(KEPT + 50)]
    assert len(shelf.put("f", items, 1.0, "me")) == KEPT + 50
    shelf.close()
    shelf = Shelf(tmp_path)
    assert shelf.put("f", items, 2.0, "me") == []  # not even those that are shown no more
    assert len(shelf.newest(["f"], 10_000)) == KEPT
    shelf.close()


@pytest.mark.timeout(600)
def test_a_full_disk_is_told_and_the_reader_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with serving() as source:
        settings = FeedSettings(period=2.0, moment=0.2, samples=0.0, gap=0.0)
        url = source.feed("a")

        async def main() -> None:
            async with reading(["ann"], [url], settings, tmp_path) as readers:
                reader = readers[0][1]
                await until(lambda: len(reader.shelf.known(url)) == 3)
                database = reader.shelf._db
                (pages,) = database.execute("PRAGMA page_count").fetchone()
                database.execute(f"PRAGMA max_page_count={pages}")
                source.items["a"] = 90
                await until(lambda: reader.counts.not_kept > 0)
                database.execute("PRAGMA max_page_count=100000")
                await until(lambda: len(reader.shelf.known(url)) == 90)

        run(main)
    assert "takes nothing" in caplog.text


def test_bad_input_is_said_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "my.opml"
    with pytest.raises(BadInput, match="no such file"):
        feeds_of(file)
    file.write_text("<opml")
    with pytest.raises(BadInput, match="not XML"):
        feeds_of(file)
    file.write_text("<opml><body><outline text='x'/></body></opml>")
    with pytest.raises(BadInput, match="xmlUrl"):
        feeds_of(file)
    with pytest.raises(BadInput, match="'file:///x' is no feed's address"):
        checked(["http://a/", "file:///x"])


@pytest.mark.timeout(600)
def test_the_command(tmp_path: Path) -> None:
    with serving() as source:
        opml = tmp_path / "my.opml"
        opml.write_text(f"<opml><body><outline xmlUrl='{source.feed('a')}'/></body></opml>")
        words = [
            *("feeds", str(opml), "--insecure", "--listen", "127.0.0.1:0", "--data", str(tmp_path / "data")),
            *("--out", str(tmp_path / "site"), "--every", "0.2"),
        ]
        process = subprocess.Popen(
            [str(Path(sys.executable).parent / "topicweave"), *words],
            stdout=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )
        assert process.stdout
        where = json.loads(process.stdout.readline())
        index = Path(where["page"])

        async def shown() -> None:
            await until(lambda: index.exists() and "a 2" in index.read_text())

        run(shown)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        assert json.loads(out)["items_polled"] == 3
