"""What is read out of feeds, good, broken and malicious."""

import pytest

from topicweave.feeds.items import LONG, MOST_ITEMS, SHORT, FeedItem, PollClaim, Polled, decode, encode, parse

RSS = """<?xml version="1.0"?><rss version="2.0"><channel><title>{title}</title>{items}</channel></rss>"""
ITEM = (
    "<item><title>{0}</title><link>http://s/{0}</link><guid>{0}</guid><description>{1}</description></item>"
)


def rss(items: str, title: str = "A source") -> bytes:
    return RSS.format(title=title, items=items).encode()


def test_an_rss_feed() -> None:
    dated = "<item><title>a</title><link>/a</link><pubDate>Thu, 01 Jan 1970 00:02:00 GMT</pubDate></item>"
    document = parse(rss(dated + ITEM.format("b", "&lt;b&gt;bold&lt;/b&gt; words")), "http://source/feed")
    assert document is not None
    assert document.title == "A source"
    assert document.items == (
        FeedItem("http://source/a", "a", "http://source/a", "", 120),
        FeedItem("b", "b", "http://s/b", "bold words", 0),
    )


def test_an_atom_feed() -> None:
    entry = "<entry><id>urn:1</id><title>one</title><link href='http://s/1'/><updated>1970-01-01T00:01:00Z</updated></entry>"
    document = parse(
        f"<feed xmlns='http://www.w3.org/2005/Atom'><title>T</title>{entry}</feed>".encode(), "http://s/"
    )
    assert document is not None
    assert document.items == (FeedItem("urn:1", "one", "http://s/1", "", 60),)


@pytest.mark.parametrize("body", [b"", b"\0\xff" * 50, b"<html><body>404</body></html>", b"{}", b"<rss"])
def test_what_is_no_feed_is_none(body: bytes) -> None:
    document = parse(body, "http://s/")
    assert document is None or document.items == ()


def test_a_feed_that_breaks_off_gives_what_can_be_read() -> None:
    document = parse(rss(ITEM.format("a", "") + ITEM.format("b", ""))[:-40], "http://s/")
    assert document is not None
    assert [item.key for item in document.items][:1] == ["a"]


def test_nothing_in_an_item_is_markup_or_runs() -> None:
    bad = (
        "<item><title>&lt;script&gt;steal()&lt;/script&gt;x &lt;img src=y onerror=z&gt;</title>"
        "<link>javascript:steal()</link><guid>1</guid><description><![CDATA[<a href='javascript:x'>go</a>\0]]></description></item>"
    ).replace("\0", "")
    document = parse(rss(bad), "http://s/")
    assert document is not None
    (item,) = document.items
    assert (item.title, item.link, item.summary) == ("x", "", "go")


def test_entities_that_grow_without_end_do_not() -> None:
    levels = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(12))
    bomb = f'<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY e0 "{"x" * 10}">{levels}]>'
    document = parse((bomb + rss(ITEM.format("&e12;", "")).decode()[21:]).encode(), "http://s/")
    assert document is None or all(len(item.title) <= SHORT for item in document.items)


def test_lengths_and_numbers_are_bounded() -> None:
    many = "".join(ITEM.format(n, "word " * 5000) for n in range(3 * MOST_ITEMS))
    document = parse(rss(many, "t" * 10_000), "http://s/")
    assert document is not None
    assert len(document.items) == MOST_ITEMS
    assert len(document.title) == SHORT
    assert all(len(item.summary) <= LONG for item in document.items)


@pytest.mark.parametrize(
    "said", [FeedItem("k", "t", "http://l/", "s", 5), PollClaim(), Polled(60.0, 3, '"e"', "m", "", "T")]
)
def test_what_readers_say_travels(said: FeedItem | PollClaim | Polled) -> None:
    assert decode(encode(said)) == said


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"hello",
        b"\x93\xa4item\x01\x02",
        encode(FeedItem("k", "t" * 301, "", "")),
        encode(Polled(-1.0, 0)),
        encode(Polled(float("nan"), 0)),
    ],
)
def test_what_is_none_of_it_is_left_alone(payload: bytes) -> None:
    assert decode(payload) is None
