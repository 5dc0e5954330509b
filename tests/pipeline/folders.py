"""Looking into folders of tables."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq


def contents(folder: Path) -> dict[str, bytes]:
    """Every file by its path: two folders are the same when these are, but for when and by what they were made."""
    found = {
        file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()
    }
    if "about.json" in found:
        about = json.loads(found["about.json"])
        about.pop("made", None)
        found["about.json"] = json.dumps(about).encode()
    return found


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(folder / f"{table}.parquet").to_pylist()
    return found


def pairs(folder: Path) -> list[tuple[str, str]]:
    return sorted((row["node"], row["topic"]) for row in rows(folder, "subscriptions"))
