"""OPML folders: one file per reader, one outline with an `xmlUrl` per feed it subscribes to."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from topicweave.pipeline.formats import PAIR
from topicweave.pipeline.lines import BOOKKEEPING, COUNT, REJECT, ROW, opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILES_PER_TASK = 500
_SCHEMA = pa.schema([*BOOKKEEPING, *PAIR])


def parsed_opml(spark: SparkSession, files: list[Path], root: Path) -> DataFrame:
    """As `lines.parsed_lines`, with a file in the place of a line.

    The reader's name is the file's path within the folder, without its endings.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for file, reader in zip(batch["file"].to_pylist(), batch["reader"].to_pylist(), strict=True):
                yield pa.RecordBatch.from_pylist(_read(file, reader), schema=_SCHEMA)

    table = pa.table(
        {"file": [str(file) for file in files], "reader": [_reader(file, root) for file in files]}
    )
    tasks = spark.createDataFrame(table).repartitionByRange(-(-len(files) // _FILES_PER_TASK), "file")
    return tasks.mapInArrow(read, from_arrow_schema(_SCHEMA))


def _reader(file: Path, root: Path) -> str:
    name = file.relative_to(root).as_posix() if root.is_dir() else file.name
    for ending in (".gz", ".xz", ".opml", ".xml"):
        name = name.removesuffix(ending)
    return name


def _read(file: str, reader: str) -> list[dict[str, Any]]:
    def note(kind: int, line: int, reason: str = "", topic: str | None = None) -> dict[str, Any]:
        return {
            "kind": kind,
            "file": file,
            "line": line,
            "reason": reason,
            "text": "",
            "node": reader if kind == ROW else None,
            "topic": topic,
            "time": None,
        }

    try:
        with opened(file, "") as stream:
            root = ET.parse(stream).getroot()
    except ET.ParseError as error:
        return [note(REJECT, error.position[0], f"not XML: {error}")]
    except (OSError, EOFError, ValueError) as error:
        return [note(REJECT, 0, f"cannot be read ({error})")]
    if root.tag != "opml":
        return [note(REJECT, 1, f"the root element is <{root.tag}>, not <opml>")]
    feeds = [outline.get("xmlUrl", "").strip() for outline in root.iter("outline")]
    rows = [note(ROW, 1, topic=feed) for feed in feeds if feed]
    # A reader of nothing is still a reader.
    return [note(COUNT, 1), *(rows or [note(ROW, 1)])]
