"""OPML folders: one file per reader, one outline with an `xmlUrl` per feed it subscribes to.

The standard library reads them, in a few lines. listparser, the library for such lists, reads a broken file as a
browser reads a page: of one that was cut in half it gives half of the feeds without a word. Here a broken file is
named, with the line; and nothing in a file is ever fetched.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pyarrow as pa

from topicweave.data.files import COMPRESSIONS, UNREADABLE, opened
from topicweave.data.lines import LineBlock, Wrong
from topicweave.data.parsing import PAIR


def reader_name(file: Path, root: Path) -> str:
    """The file's path within the folder, without its endings."""
    name = file.relative_to(root).as_posix() if root.is_dir() else file.name
    for ending in (*COMPRESSIONS, ".opml", ".xml"):
        name = name.removesuffix(ending)
    return name


def opml_block(file: str, reader: str) -> LineBlock:
    """What a file says, with the file in the place of a line."""
    try:
        with opened(file) as stream:
            root = ET.parse(stream).getroot()
    except ET.ParseError as error:
        return _wrong(file, error.position[0], f"not XML: {error}")
    except (*UNREADABLE, ValueError) as error:
        return _wrong(file, 0, f"cannot be read ({error})")
    if root.tag != "opml":
        return _wrong(file, 1, f"the root element is <{root.tag}>, not <opml>")
    feeds = [outline.get("xmlUrl", "").strip() for outline in root.iter("outline")]
    # A reader of nothing is still a reader.
    topics: list[str | None] = [feed for feed in feeds if feed]
    return LineBlock(file, 1, _rows(reader, topics or [None]), 1, [])


def _wrong(file: str, line: int, reason: str) -> LineBlock:
    return LineBlock(file, 1, _rows("", []), 0, [Wrong(file, line, reason, "")])


def _rows(reader: str, topics: list[str | None]) -> pa.Table:
    count = len(topics)
    columns = {"node": [reader] * count, "topic": topics, "time": [None] * count}
    return pa.table(
        {"at": pa.array([0] * count, pa.int64())} | {f.name: pa.array(columns[f.name], f.type) for f in PAIR}
    )
