"""A reader: a node that wants its feeds' topics, polls those whose turn is its own, and shows what came.

Theory of operation: each feed is a topic. Readers of a feed agree on one of them that polls it (`rota`). It
publishes what is new, one event for each item, and then that it polled. The others believe it, but for
samples: now and then a reader asks the source itself, and compares. Who told what the source does not say,
twice, is not believed any more: what came from it goes, and its polls do not count.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import sqlite3
import time
from collections.abc import Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from topicweave.errors import BadInput, NotKept
from topicweave.feeds import pages
from topicweave.feeds.fetching import Fetcher, SourceAnswer
from topicweave.feeds.items import (
    Document,
    FeedItem,
    PollClaim,
    Polled,
    decode,
    digest,
    encode,
    parse,
    web_link,
)
from topicweave.feeds.rota import Act, Rota
from topicweave.feeds.shelf import FeedState, Shelf
from topicweave.live.application import Received
from topicweave.live.node import LiveNode

log = logging.getLogger("topicweave.feeds")

TOPIC = "feed "
AT_FIRST = 20
"""Items of a feed that is new to all that are passed on: the newest."""
LATE = 100
"""Events that a newcomer asks its neighbours for, of each feed."""
THREADS = 8
MEETING = 12
"""Moments that a reader waits for a first link, if it is to join somebody."""
STRIKES = 2
"""Times that somebody is caught before it is not believed any more."""
MOST_FEEDS = 2_000
ON_PAGE = 200


class FeedSettings(msgspec.Struct, frozen=True):
    """Times in seconds."""

    period: float = 1800.0
    """Between two polls of a feed, by all its readers together."""
    turns: int = 10
    """Polls before somebody else takes over."""
    moment: float = 5.0
    """How long a reader that wants to poll waits for others that do."""
    samples: float = 0.02
    """The share of others' polls that this reader compares with the source."""
    gap: float = 1.0
    """Between two requests of this reader to one host."""
    patience: float = 30.0
    """For one answer."""


class FeedCounts(msgspec.Struct):
    """What a reader did."""

    polls: int = 0
    unchanged: int = 0
    samples: int = 0
    items_polled: int = 0
    items_received: int = 0
    caught: int = 0
    not_believed: int = 0
    not_kept: int = 0
    """Times that the data folder took nothing."""


class FeedReader:
    """Runs beside a node that keeps its events for it. `folder` keeps the items, `out` gets the pages; None:
    neither.
    """

    def __init__(
        self,
        node: LiveNode,
        urls: Sequence[str],
        settings: FeedSettings | None = None,
        folder: Path | None = None,
        out: Path | None = None,
        seed: int | None = None,
    ) -> None:
        self.settings = settings or FeedSettings()
        self.urls = checked(urls)
        self.counts = FeedCounts()
        self._node = node
        self._out = out
        self._random = random.Random(seed)
        self._shelf = Shelf(folder)
        self._wall = node.clock.wall
        self.fetcher = Fetcher(self._wall, self.settings.gap, self.settings.patience)
        self._rotas = {url: self._rota() for url in self.urls}
        self._busy: set[str] = set()
        self._strikes: dict[str, int] = {}
        # Feed, poller -> told since its last poll.
        self._recent: dict[tuple[str, str], dict[str, FeedItem]] = {}
        self._changed = True
        self._pool = ThreadPoolExecutor(THREADS, "feeds")
        self._tasks: set[asyncio.Task[None]] = set()

    def _rota(self) -> Rota:
        settings = self.settings
        return Rota(
            self._node.name,
            settings.period,
            settings.turns,
            settings.moment,
            self._random,
            time.monotonic(),
        )

    @property
    def shelf(self) -> Shelf:
        return self._shelf

    async def run(self) -> None:
        """Until it is cancelled."""
        with contextlib.suppress(NotKept):  # It reads on; `/health` tells of the disk.
            await self._node.subscribe([TOPIC + url for url in self.urls], last=LATE)
        await self._meet_others()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._listen())
                group.create_task(self._keep_polling())
                group.create_task(self._keep_showing())
        finally:
            for task in self._tasks:
                task.cancel()
            self.fetcher.close()
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._show()
            self._shelf.close()

    async def _meet_others(self) -> None:
        """Who is going to meet others has no reason to poll before."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(MEETING * self.settings.moment):
                while self._node.settings.join and not self._node.node.degree:
                    await asyncio.sleep(0.1)
        self._rotas = {url: self._rota() for url in self.urls}

    # What others say.

    async def _listen(self) -> None:
        async for events in self._node.batches():
            try:
                with self._shelf.together():
                    for event in events:
                        self.hear(event)
            except sqlite3.Error as error:
                self._cannot_keep(error)

    def _cannot_keep(self, error: sqlite3.Error) -> None:
        """As when the disk is full. Others have what is lost here; a poll of this reader's own finds it again."""
        self.counts.not_kept += 1
        log.error("%s: the data folder takes nothing (%s)", self._node.name, error)

    def hear(self, event: Received) -> None:
        url = event.topic.removeprefix(TOPIC)
        rota = self._rotas.get(url)
        said = decode(event.payload)
        if rota is None or said is None or event.publisher == self._node.name:
            return
        if self._strikes.get(event.publisher, 0) >= STRIKES:
            self.counts.not_believed += 1
            return
        now = time.monotonic()
        if isinstance(said, FeedItem):
            safe = msgspec.structs.replace(said, link=web_link(said.link))
            if self._shelf.put(url, [safe], self._wall(), event.publisher):
                self.counts.items_received += 1
                self._changed = True
                self._recent.setdefault((url, event.publisher), {})[said.key] = said
        elif event.age > self.settings.period:
            return  # From long ago: it says nothing of who polls.
        elif isinstance(said, PollClaim):
            rota.heard_claim(event.publisher, now)
        else:
            left = max(0.0, said.due - event.age)
            rota.heard_poll(event.publisher, left, said.turns_left, not said.trouble, now)
            self._shelf.note_poll(url, said, event.publisher, self._wall() - event.age)
            self._changed = True
            told = self._recent.pop((url, event.publisher), {})
            if told and self._random.random() < self.settings.samples:
                self._begin(url, self._compare(url, event.publisher, told))

    async def _compare(self, url: str, publisher: str, told: dict[str, FeedItem]) -> None:
        """Ask the source whether it says what somebody told."""
        self.counts.samples += 1
        document = (await self._fetch(url, FeedState(url)))[1]
        if document is None:
            return  # The source does not say.
        there = {item.key: digest(item) for item in document.items}
        wrong = [key for key, item in told.items() if there.get(key) != digest(item)]
        if not wrong:
            return
        self.counts.caught += 1
        strikes = self._strikes[publisher] = self._strikes.get(publisher, 0) + 1
        log.warning("%s sent %d items of %s that the source does not have", publisher, len(wrong), url)
        if strikes >= STRIKES:
            for feed in self.urls:
                if self._shelf.drop_from(feed, publisher):
                    self._shelf.forget_validators(feed)
            log.warning("%s: its items are not trusted from now on", publisher)
            self._changed = True

    # Polling.

    async def _keep_polling(self) -> None:
        while True:
            now = time.monotonic()
            for url, rota in self._rotas.items():
                if url in self._busy or now < rota.next:
                    continue
                act = rota.due(now)
                if act is Act.CLAIM:
                    await self._say(url, PollClaim())
                elif act is Act.POLL:
                    self._begin(url, self._poll(url, rota))
            soonest = min(
                (rota.next for url, rota in self._rotas.items() if url not in self._busy), default=now + 1
            )
            await asyncio.sleep(min(max(soonest - time.monotonic(), 0.02), 1.0))

    def _begin(self, url: str, work: Coroutine[Any, Any, None]) -> None:
        self._busy.add(url)
        task = asyncio.create_task(work)
        self._tasks.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            self._busy.discard(url)
            error = None if task.cancelled() else task.exception()
            if isinstance(error, sqlite3.Error):
                self._cannot_keep(error)
            elif error is not None:
                log.error("%s: %s", url, error)

        task.add_done_callback(ended)

    async def _poll(self, url: str, rota: Rota) -> None:
        known = self._shelf.known(url)
        # Who has none of its items asks for all of them, whatever the one before was told.
        answer, document = await self._fetch(url, self._shelf.state(url) if known else FeedState(url))
        self.counts.polls += 1
        self.counts.unchanged += answer.body is None and not answer.trouble
        trouble = answer.trouble
        if answer.body is not None and document is None:
            trouble = "what came is no feed"
        items = document.items if document is not None else ()
        known = self._shelf.known(url)  # some may have come meanwhile
        new = [item for item in items if item.key not in known]
        self._shelf.put(url, reversed(new), self._wall(), self._node.name)
        self.counts.items_polled += len(new)
        for item in reversed(new if known else new[:AT_FIRST]):
            await self._say(url, item)
        due, left = rota.polled(time.monotonic(), not trouble, answer.wait)
        title = document.title if document is not None else ""
        # What was not read whole is asked for again.
        etag, modified = ("", "") if trouble else (answer.etag, answer.modified)
        polled = Polled(min(due, 7 * 86400.0), left, etag, modified, trouble[:300], title)
        self._shelf.note_poll(url, polled, self._node.name, self._wall())
        self._changed = True
        await self._say(url, polled)

    async def _fetch(self, url: str, state: FeedState) -> tuple[SourceAnswer, Document | None]:
        """Asking and reading take a thread: neither may hold up the node."""
        return await asyncio.get_running_loop().run_in_executor(
            self._pool, partial(_fetched, self.fetcher, url, state.etag, state.modified)
        )

    async def _say(self, url: str, said: FeedItem | PollClaim | Polled) -> None:
        await self._node.publish(TOPIC + url, encode(said))

    # Showing.

    async def _keep_showing(self) -> None:
        while True:
            self._show()
            await asyncio.sleep(1.0)

    def _show(self) -> None:
        if not self._changed or self._out is None:
            return
        self._changed = False
        items = self._shelf.newest(self.urls, ON_PAGE)
        states = [self._shelf.state(url) for url in self.urls]
        with contextlib.suppress(OSError):
            pages.write(self._out / "index.html", pages.page(self._node.name, items, states).encode())
            pages.write(self._out / "feeds.atom", pages.atom(self._node.name, items))


def _fetched(fetcher: Fetcher, url: str, etag: str, modified: str) -> tuple[SourceAnswer, Document | None]:
    answer = fetcher.fetch(url, etag, modified)
    document = None if answer.body is None else parse(answer.body, url, answer.content_type)
    return answer, document


def checked(urls: Iterable[str]) -> list[str]:
    """Each once, and only those of the web."""
    unique = list(dict.fromkeys(urls))
    wrong = [url for url in unique if web_link(url) != url]
    if wrong:
        raise BadInput(f"{wrong[0]!r} is no feed's address: it begins with http:// or https://")
    if not 0 < len(unique) <= MOST_FEEDS:
        raise BadInput(f"{len(unique)} feeds: 1 to {MOST_FEEDS} can be read")
    return unique
