"""Asking real sources over real sockets, polite to the good and safe from the bad."""

import time
from collections.abc import Iterator

import pytest

from tests.feeds.source import Source, serving
from tests.live.together import kept_port
from topicweave.feeds import fetching
from topicweave.feeds.fetching import AGENT, Fetcher


@pytest.fixture(scope="module")
def source() -> Iterator[Source]:
    with serving() as source:
        yield source


def fetcher(patience: float = 20.0) -> Fetcher:
    return Fetcher(lambda: 0.0, gap=0.0, most_seconds=patience)


def test_what_has_not_changed_is_not_sent_again(source: Source) -> None:
    ours = fetcher()
    first = ours.fetch(source.feed("a"))
    assert first.body == source.document("a")
    assert first.content_type == "application/rss+xml"
    again = ours.fetch(source.feed("a"), first.etag, first.modified)
    assert (again.body, again.trouble, again.etag) == (None, "", first.etag)
    source.items["a"] = 4
    assert ours.fetch(source.feed("a"), first.etag, first.modified).body == source.document("a")
    assert ours.requests == 4  # robots.txt once
    assert source.agents == {AGENT}


def test_robots_txt_is_obeyed(source: Source) -> None:
    before = source.asked["/private/b"]
    assert fetcher().fetch(f"{source.url}/private/b").trouble == "robots.txt forbids it"
    assert source.asked["/private/b"] == before


@pytest.mark.parametrize(
    ("path", "trouble"),
    [
        ("missing/a", "the source answers 404"),
        ("gone/a", "gone for good"),
        ("broken/a", "the source answers 500"),
        ("circle/a", "the source answers 302"),
        ("elsewhere/a", "the source answers 302"),
        ("huge/a", "more than 4 MiB"),
    ],
)
def test_trouble_is_named(source: Source, path: str, trouble: str) -> None:
    answer = fetcher().fetch(f"{source.url}/{path}")
    assert (answer.body, answer.trouble) == (None, trouble)


def test_one_that_moved_is_found(source: Source) -> None:
    assert fetcher().fetch(f"{source.url}/moved/b").body == source.document("b")


def test_a_source_says_for_how_long_it_wants_to_be_left_alone(source: Source) -> None:
    assert fetcher().fetch(f"{source.url}/busy/a").wait == 3600.0


def test_one_that_never_ends_is_left(source: Source) -> None:
    assert fetcher(patience=3.0).fetch(f"{source.url}/slow/a").trouble == "not done after 3 s"


def test_where_nobody_is_there_is_trouble() -> None:
    with kept_port() as nobody:
        assert fetcher().fetch(f"http://{nobody}/a").trouble == "Connection refused"


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://h/x", "http://", "nothing", "http://[x/"])
def test_nothing_but_the_web_is_asked(url: str) -> None:
    answer = fetcher().fetch(url)
    assert answer.body is None
    assert answer.trouble


def test_requests_to_one_host_keep_their_distance(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    def waited(seconds: float) -> list[bool]:
        """Of each wait but the first: whether it was for the rest of so many seconds."""
        took = time.monotonic() - began
        return [waits[0] == 0.0, *(seconds - took <= wait <= seconds for wait in waits[1:])]

    began = time.monotonic()
    ours = Fetcher(lambda: 0.0, gap=30.0)
    monkeypatch.setattr(ours._closed, "wait", waits.append)
    ours.fetch(source.feed("c"))
    ours.fetch(source.feed("c"))
    assert waited(30.0) == [True] * 3
    monkeypatch.setattr(source, "robots", "User-agent: *\nCrawl-delay: 50\n")
    waits.clear()
    began = time.monotonic()
    slow = Fetcher(lambda: 0.0, gap=30.0)
    monkeypatch.setattr(slow._closed, "wait", waits.append)
    slow.fetch(source.feed("c"))
    assert waited(50.0) == [True] * 2
    assert fetching.MOST_GAP >= 50
