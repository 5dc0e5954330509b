"""What feeds hold, and what readers tell each other of it."""

from __future__ import annotations

import calendar
import hashlib
import html
import re
from typing import Annotated, Any
from urllib.parse import urljoin, urlsplit

import feedparser
import msgspec

MOST_ITEMS = 100
"""Items of one document that are looked at: the newest come first."""
SHORT, LONG, URL = 300, 4000, 2000
"""Characters of a title, of a summary and of an address."""


class FeedItem(msgspec.Struct, frozen=True, array_like=True, tag="item"):
    """One entry of a feed, as text: nothing in it is markup."""

    key: Annotated[str, msgspec.Meta(max_length=URL)]
    """What the source names it by."""
    title: Annotated[str, msgspec.Meta(max_length=SHORT)]
    link: Annotated[str, msgspec.Meta(max_length=URL)]
    summary: Annotated[str, msgspec.Meta(max_length=LONG)]
    published: Annotated[int, msgspec.Meta(ge=0, lt=1 << 40)] = 0
    """Unix time; 0 if the source does not say."""


class PollClaim(msgspec.Struct, frozen=True, array_like=True, tag="claim"):
    """I am going to poll this feed."""


class Polled(msgspec.Struct, frozen=True, array_like=True, tag="polled"):
    """I polled it; the next poll is due after so many seconds. What the source said goes along, so that
    whoever polls next can ask for changes only.
    """

    due: Annotated[float, msgspec.Meta(ge=0, le=7 * 86400.0)]
    turns_left: Annotated[int, msgspec.Meta(ge=0, le=1000)]
    """How often I mean to go on; 0: somebody else should."""
    etag: Annotated[str, msgspec.Meta(max_length=SHORT)] = ""
    modified: Annotated[str, msgspec.Meta(max_length=SHORT)] = ""
    trouble: Annotated[str, msgspec.Meta(max_length=SHORT)] = ""
    """Why there was nothing to be had."""
    title: Annotated[str, msgspec.Meta(max_length=SHORT)] = ""


Said = FeedItem | PollClaim | Polled
_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[Said] = msgspec.msgpack.Decoder(Said)


def encode(said: Said) -> bytes:
    return _encode(said)


def decode(payload: bytes) -> Said | None:
    """None if it is not of these: anybody can publish anything on a topic."""
    try:
        return _decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


class Document(msgspec.Struct, frozen=True):
    """What one answer of a source holds."""

    title: str
    items: tuple[FeedItem, ...]


def parse(body: bytes, url: str, content_type: str = "") -> Document | None:
    """None if it is no feed. A broken one gives what can be read of it."""
    headers = {"content-type": content_type} if content_type else {}
    parsed: Any = feedparser.parse(body, response_headers=headers)
    if not parsed.get("version"):
        return None
    items: dict[str, FeedItem] = {}
    for entry in parsed.entries[:MOST_ITEMS]:
        item = _item(entry, url)
        items.setdefault(item.key, item)
    return Document(plain(str(parsed.feed.get("title", "")), SHORT), tuple(items.values()))


def _item(entry: Any, url: str) -> FeedItem:
    title = plain(str(entry.get("title", "")), SHORT)
    link = web_link(urljoin(url, str(entry.get("link", ""))))
    summary = plain(str(entry.get("summary", "")), LONG)
    when = entry.get("published_parsed") or entry.get("updated_parsed")
    try:
        published = min(max(0, calendar.timegm(when)), (1 << 40) - 1) if when else 0
    except (OverflowError, ValueError):
        published = 0
    named = str(entry.get("id", "")) or link
    if not 0 < len(named) <= URL:
        named = hashlib.sha256("\0".join((title, link, summary)).encode("utf-8", "replace")).hexdigest()
    return FeedItem(clean(named), title, link, summary, published)


def web_link(link: str) -> str:
    """Only what a browser fetches from the web; nothing that it would run.

    >>> web_link("https://example.org/a"), web_link("javascript:alert(1)")
    ('https://example.org/a', '')
    """
    try:
        parts = urlsplit(link)
    except ValueError:
        return ""
    good = parts.scheme in ("http", "https") and bool(parts.netloc) and len(link) <= URL
    return clean(link) if good and " " not in link else ""


def plain(markup: str, most: int) -> str:
    """Text without tags, on one line.

    >>> plain("<b>New</b>:\\n  a &amp; b<script>x()</script>", 20)
    'New: a & b'
    """
    text = re.sub(r"(?is)<(script|style)\b.*?(</\1\s*>|\Z)", " ", markup[: 8 * most])
    text = html.unescape(re.sub(r"(?s)<[^>]*(>|\Z)", " ", text))
    text = " ".join(clean(text).split())
    text = re.sub(r" (?=[:;,.!?])", "", text)
    return text if len(text) <= most else text[: most - 1] + "…"


def clean(text: str) -> str:
    """Without what no page or file can hold: control characters, halves of characters."""
    text = text.encode("utf-8", "ignore").decode()
    return "".join(letter for letter in text if letter >= " " or letter in "\n\t")


def digest(item: FeedItem) -> bytes:
    """Two readers that saw the same item have the same."""
    return hashlib.blake2b(_encode(item), digest_size=16).digest()
