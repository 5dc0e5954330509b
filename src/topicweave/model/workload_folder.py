"""A workload's folder: its Parquet tables found, and written all or not at all."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from topicweave.errors import BadInput
from topicweave.model import validation
from topicweave.model.committed import counted_parts
from topicweave.model.tables import Columns, Table, read_parquet
from topicweave.model.validation import WorkloadArrays, check_tables

TABLES = ("subscriptions", "topics", "churn", "hosts")


def read_folder(folder: Path) -> WorkloadArrays:
    """Read and check the tables of a folder; all but the subscriptions may be missing."""
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder; a workload is a folder that holds subscriptions.parquet")

    def optional(name: str, wanted: Columns, also: Columns | None = None) -> Table | None:
        path = _path(folder, name)
        there = path.exists() and counted_parts(path) != []
        return read_parquet(path, wanted, also) if there else None

    return check_tables(
        read_parquet(_path(folder, "subscriptions"), validation.SUBSCRIPTIONS),
        optional("topics", validation.TOPICS),
        optional("churn", validation.CHURN),
        optional("hosts", validation.HOSTS, validation.COORDINATES),
    )


def write_folder(folder: Path, tables: Mapping[str, Any], overwrite: bool) -> None:
    """Write tables (name -> pyarrow.Table) into a folder that appears only when it is whole.

    Only an empty folder, or with `overwrite` one that holds a workload and nothing else, is replaced.
    """
    _refuse_losing(folder, overwrite)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Everything happens in a hidden sibling: a rename within one file system is all or nothing.
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as staging:
        fresh, old = Path(staging, "new"), Path(staging, "old")
        fresh.mkdir()
        for name, table in tables.items():
            # The Arrow schema is left out so that dictionary-encoded names read back as plain strings.
            pq.write_table(
                table, _path(fresh, name), compression="zstd", store_schema=False, write_page_checksum=True
            )
        if folder.exists():
            folder.rename(old)
        try:
            fresh.rename(folder)
        except BaseException:
            if old.exists():
                old.rename(folder)
            raise


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}.parquet"


def _refuse_losing(folder: Path, overwrite: bool) -> None:
    if not folder.exists():
        return
    if not folder.is_dir():
        raise BadInput(f"{folder}: a file; a workload is saved as a folder, choose another name")
    found = sorted(entry.name for entry in folder.iterdir())
    if found and not overwrite:
        raise BadInput(
            f"{folder}: not empty (it holds {found[0]!r}); choose another folder or allow overwriting"
        )
    foreign = [name for name in found if name not in {f"{table}.parquet" for table in TABLES}]
    if foreign:
        raise BadInput(f"{folder}: holds {foreign[0]!r} besides a workload; choose another folder")
