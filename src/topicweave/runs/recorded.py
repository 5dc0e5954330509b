"""Runs that leave their telemetry behind, for `topicweave measure` and `topicweave stream`.

FOLDER/links.parquet/RUN-000001.parquet, …    the tables, a file of each run
FOLDER/_runs/RUN.json                         what the run was, written when all of its files are there
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

import topicweave
from topicweave.errors import BadInput
from topicweave.runs.registry import from_plain
from topicweave.runs.run import Result, Run, recording
from topicweave.runs.store import key, whole
from topicweave.telemetry.schema import RECORDED, file_name
from topicweave.telemetry.writer import MemoryTelemetry

NOTES = "_runs"


class RecordedRun(msgspec.Struct, frozen=True, tag="recorded", forbid_unknown_fields=True):
    """Another run, whose telemetry is kept; its result is the other's."""

    of: dict[str, Any]
    """The other run, in plain values."""
    name: str
    folder: str

    @property
    def system(self) -> str:
        return str(self.of.get("system", ""))

    def run(self) -> Result:
        inner = from_plain(self.of)
        with recording(self.name) as kept:
            result = inner.run()
        if not kept:
            raise BadInput(
                f"runs of kind {self.of['type']!r} have no telemetry to keep; leave out --telemetry"
            )
        _write(Path(self.folder), self.name, self.of, key(inner), kept)
        return result


def _write(folder: Path, name: str, of: dict[str, Any], mark: str, kept: list[MemoryTelemetry]) -> None:
    tables = {
        file_name(table): _write_table(
            folder / file_name(table) / f"{name}-000001.parquet",
            pa.Table.from_batches([batch for one in kept for batch in one.batches()[table]], schema),
        )
        for table, schema in RECORDED.items()
    }
    note = {"run": name, "of": of, "key": mark, "version": topicweave.__version__, "tables": tables}
    whole(_note(folder, name), lambda partial: partial.write_text(json.dumps(note, indent=2)))


def _write_table(path: Path, rows: pa.Table) -> dict[str, Any]:
    whole(path, lambda partial: pq.write_table(rows, partial, compression="zstd"))
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    return {"name": path.name, "rows": rows.num_rows, "bytes": len(content), "sha256": digest}


def _note(folder: Path, name: str) -> Path:
    return folder / NOTES / f"{name}.json"


class Recording(NamedTuple):
    """Where the telemetry of some runs goes, and what each is called there."""

    folder: Path
    name_of: Callable[[Any, str], str]
    """By its label and key."""

    def has(self, label: Hashable, mark: str) -> bool:
        """Whether a run's telemetry is there, and whole."""
        note = _read(_note(self.folder, self.name_of(label, mark)))
        return note is not None and note["key"] == mark and all(_there(self.folder, note))

    def wrapped(self, label: Hashable, mark: str, run: Run) -> RecordedRun:
        plain = msgspec.to_builtins(run)
        return RecordedRun(plain, self.name_of(label, mark), str(self.folder.absolute()))

    def refuse_others(self) -> None:
        """Raise if the folder holds something that today's code did not record."""
        for note in _notes(self.folder):
            if note["key"] != key(from_plain(note["of"])):
                raise BadInput(
                    f"{self.folder}: holds the run {note['run']!r} of other code (version {note['version']}); "
                    "choose another --telemetry"
                )
        if not _notes(self.folder) and any((self.folder / file_name(table)).exists() for table in RECORDED):
            raise BadInput(f"{self.folder}: holds telemetry of something else; choose another --telemetry")


def manifest(folder: Path) -> dict[str, Any]:
    """Of every table the parts that count: those of runs that were recorded to their end."""
    notes = _notes(folder)
    tables: dict[str, Any] = {}
    for table in map(file_name, RECORDED):
        parts = [note["tables"][table] for note in notes]
        tables[table] = {"rows": sum(part["rows"] for part in parts), "parts": parts}
    return tables


def _notes(folder: Path) -> list[dict[str, Any]]:
    found = (_read(file) for file in sorted((folder / NOTES).glob("*.json")))
    return [note for note in found if note is not None]


def _read(path: Path) -> dict[str, Any] | None:
    try:
        note: dict[str, Any] = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be read ({error}); record anew in another folder") from None
    return note


def _there(folder: Path, note: Mapping[str, Any]) -> Iterator[bool]:
    for table, part in note["tables"].items():
        path = folder / table / part["name"]
        yield path.is_file() and path.stat().st_size == part["bytes"]
