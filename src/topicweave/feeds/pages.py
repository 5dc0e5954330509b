"""What a reader looks at: a page, and an Atom file for other programs. Both are files, written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

from topicweave.feeds.shelf import FeedState, ShownItem

ATOM = "http://www.w3.org/2005/Atom"

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Feeds of {reader}</title><style>
:root {{ color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }}
body {{ max-width: 48rem; margin: 2rem auto; padding: 0 1rem }}
article {{ margin: 1.2rem 0 }} h2 {{ font-size: 1rem; margin: 0 }} p {{ margin: .2rem 0 }}
small, td, th {{ opacity: .8; text-align: left; vertical-align: top; padding-right: 1rem; font-size: .85rem }}
.trouble {{ color: #c33 }}
</style></head><body><h1>Feeds of {reader}</h1>
{items}
<h1>Sources</h1><table><tr><th>feed</th><th>polled by</th><th>at (UTC)</th><th>trouble</th></tr>
{feeds}
</table></body></html>
"""


def page(reader: str, items: Sequence[ShownItem], feeds: Sequence[FeedState]) -> str:
    """Everything that came from a feed is text here: none of it is run or fetched."""
    shown = "\n".join(_article(one) for one in items) or "<p>Nothing yet.</p>"
    rows = "\n".join(
        f"<tr><td>{escape(one.title or one.feed)}</td><td>{escape(one.poller or 'nobody yet')}</td>"
        f'<td>{_when(one.polled)}</td><td class="trouble">{escape(one.trouble)}</td></tr>'
        for one in feeds
    )
    return _PAGE.format(reader=escape(reader), items=shown, feeds=rows)


def _article(one: ShownItem) -> str:
    item = one.item
    title = escape(item.title or item.link or "(no title)")
    if item.link:
        title = f'<a rel="noreferrer noopener" href="{escape(item.link)}">{title}</a>'
    source = escape(one.feed_title or urlsplit(one.feed).netloc)
    return (
        f"<article><h2>{title}</h2><small>{source}, {_when(item.published or one.came)}, via {escape(one.via)}</small>"
        f"<p>{escape(item.summary)}</p></article>"
    )


def atom(reader: str, items: Sequence[ShownItem]) -> bytes:
    """RFC 4287."""
    ET.register_namespace("", ATOM)
    feed = ET.Element(f"{{{ATOM}}}feed")
    _text(feed, "id", f"urn:topicweave:feeds:{reader}")
    _text(feed, "title", f"Feeds of {reader}")
    _text(feed, "updated", _stamp(max((one.came for one in items), default=0.0)))
    for one in items:
        entry = ET.SubElement(feed, f"{{{ATOM}}}entry")
        _text(entry, "id", one.item.link or f"urn:topicweave:item:{one.item.key}")
        _text(entry, "title", one.item.title)
        _text(entry, "updated", _stamp(one.item.published or one.came))
        author = ET.SubElement(entry, f"{{{ATOM}}}author")
        _text(author, "name", one.feed_title or one.feed)
        if one.item.link:
            ET.SubElement(entry, f"{{{ATOM}}}link", href=one.item.link)
        _text(entry, "summary", one.item.summary)
    written: bytes = ET.tostring(feed, encoding="utf-8", xml_declaration=True)
    return written


def _text(parent: ET.Element, name: str, text: str) -> None:
    ET.SubElement(parent, f"{{{ATOM}}}{name}").text = text


def _moment(seconds: float) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)


def _when(seconds: float) -> str:
    return _moment(seconds).strftime("%Y-%m-%d %H:%M") if seconds else "never"


def _stamp(seconds: float) -> str:
    return _moment(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")


def write(path: Path, content: bytes) -> None:
    """Whoever reads it sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_bytes(content)
    partial.replace(path)
