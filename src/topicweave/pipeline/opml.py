"""OPML folders as Spark rows: as `lines.parsed_lines`, with a file in the place of a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from topicweave.data.opml import opml_block, reader_name
from topicweave.data.parsing import PAIR
from topicweave.pipeline.lines import BOOKKEEPING, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILES_PER_TASK = 500
_SCHEMA = pa.schema([*BOOKKEEPING, *PAIR])


def parsed_opml(spark: SparkSession, files: list[Path], root: Path) -> DataFrame:
    """A row for every feed of every reader."""
    from pyspark.sql.pandas.types import from_arrow_schema

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for file, reader in zip(batch["file"].to_pylist(), batch["reader"].to_pylist(), strict=True):
                yield from rows_of(opml_block(file, reader), _SCHEMA)

    table = pa.table(
        {"file": [str(file) for file in files], "reader": [reader_name(file, root) for file in files]}
    )
    tasks = spark.createDataFrame(table).repartitionByRange(-(-len(files) // _FILES_PER_TASK), "file")
    return tasks.mapInArrow(read, from_arrow_schema(_SCHEMA))
