"""The telemetry tables in memory, and their one reader."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from topicweave.errors import BadInput
from topicweave.model.committed import counted_parts
from topicweave.telemetry.schema import SCHEMAS, file_name


@dataclass(frozen=True)
class Tables:
    """The four tables (pyarrow.Table each), with the columns of `schema.SCHEMAS`."""

    links: pa.Table
    publishes: pa.Table
    deliveries: pa.Table
    control: pa.Table

    @classmethod
    def load(cls, folder: str | Path) -> Tables:
        """Read `links.parquet`, … of a folder: each a file, or a folder of part files as Spark writes them."""
        return cls(
            **{table: read_table(Path(folder) / file_name(table), SCHEMAS[table]) for table in SCHEMAS}
        )

    def runs(self) -> list[str]:
        """The names of all runs with at least one row, sorted."""
        every = (self.links, self.publishes, self.deliveries, self.control)
        return sorted({name for table in every for name in pc.unique(table["run"]).to_pylist()})

    def of_run(self, run: str) -> Tables:
        """The rows of one run."""
        return Tables(
            *(
                table.filter(pc.equal(table["run"], run))
                for table in (self.links, self.publishes, self.deliveries, self.control)
            )
        )


def read_table(path: Path, schema: pa.Schema) -> pa.Table:
    """A file, or a folder of part files, with the columns of the schema."""
    counted = counted_parts(path)
    return read_parts(path if counted is None else counted, schema, path)


def read_parts(parts: Any, schema: pa.Schema, path: object, filesystem: Any = None) -> pa.Table:
    """A file, a folder or a list of files (on some file system of PyArrow's), which make up the table at `path`."""
    try:
        table = pq.read_table(parts, filesystem=filesystem) if parts != [] else schema.empty_table()
    except FileNotFoundError:
        raise BadInput(
            f"{path}: no such telemetry table; the run did not finish, or this is not its folder"
        ) from None
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise BadInput(f"{path}: not a whole Parquet table ({reason}); run again") from None
    return _conform(table, schema, path)


def _conform(table: pa.Table, schema: pa.Schema, path: object) -> pa.Table:
    """The columns of the schema, in its order and types: Spark writes names without our dictionaries."""
    columns = []
    for field in schema:
        if table.column_names.count(field.name) != 1:
            raise BadInput(f"{path}: needs one column {field.name!r}, has {', '.join(table.column_names)}")
        column = table[field.name]
        if column.null_count:
            row = pc.index(pc.is_null(column), True).as_py()
            raise BadInput(f"{path}: row {row + 1}, column {field.name!r}: null; every cell needs a value")
        if column.type != field.type:
            column = _cast(column, field, path)
        columns.append(column)
    return pa.table(columns, schema=schema).unify_dictionaries()


def _cast(column: pa.ChunkedArray, field: pa.Field, path: object) -> pa.ChunkedArray:
    try:
        return column.cast(field.type)
    except pa.ArrowException as error:
        raise BadInput(
            f"{path}: column {field.name!r}: {column.type} does not fit {field.type} ({error})"
        ) from None
