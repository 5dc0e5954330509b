"""Results of finished runs: a folder of small files, each named by what the run is and by the code that it can reach.

Whoever asks for the same run finds it there: comparisons, studies and sweeps share one store. A run is done
when its result can be read; what cannot be read is run again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from topicweave.data.files import contents, data_file
from topicweave.data.formats import find_real
from topicweave.data.places import Place
from topicweave.errors import TopicweaveError
from topicweave.runs.fingerprint import fingerprint
from topicweave.runs.registry import encode
from topicweave.runs.run import Result, Run

FOLDER = "runs"


def beside(out: Path) -> Path:
    """Where commands keep results unless told otherwise: `runs` beside the folder that they write to, so
    `out/runs` for all.
    """
    return out.parent / FOLDER


def key(run: Run) -> str:
    """Names a run: its fields, what is in its workload and in the files that it reads, and its code."""
    plain = msgspec.to_builtins(run)
    for field in plain:
        held = getattr(getattr(run, field, None), "contents", None)
        if held is not None:
            plain[field] = held()
    name = hashlib.sha1(fingerprint(run).encode(), usedforsecurity=False)
    name.update(msgspec.json.encode(plain, order="deterministic"))
    if read := sorted(set(_data_sets(run))):
        name.update(msgspec.json.encode([[one, _held(one)] for one in read]))
    return name.hexdigest()


def _data_sets(value: Any) -> Iterator[str]:
    """The real data sets that a run's structs read."""
    if isinstance(value, msgspec.Struct):
        yield from getattr(value, "data_sets", ())
        for field in value.__struct_fields__:
            yield from _data_sets(getattr(value, field))


def _held(data_set: str) -> list[Any]:
    try:
        return contents(data_file(find_real(data_set).file))
    except TopicweaveError:
        return []  # The run will say what is missing.


def whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Let `write` make a file that gets its name when it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.uname().nodename}.{os.getpid()}")
    try:
        write(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


class ResultStore:
    """A folder of results, by path or URI, one file each, written whole or not at all."""

    def __init__(self, folder: Path | Place) -> None:
        self.folder = Place(str(folder))

    def path(self, key: str) -> Place:
        """The file that holds, or will hold, a result."""
        return self.folder / f"{key}.json"

    def get(self, key: str) -> Result | None:
        """None: it is not there, or not what `put` wrote."""
        try:
            stored = json.loads(self.path(key).read() or b"")["result"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return stored if isinstance(stored, dict) else None

    def put(self, key: str, run: Run, result: Result) -> None:
        self._write(self.path(key), json.dumps({"run": json.loads(encode(run)), "result": result}))
        self._failed(key).delete()

    def put_failure(self, key: str, error: str) -> None:
        """Not under the result's own name: the next attempt runs it again."""
        self._write(self._failed(key), error)

    def failure(self, key: str) -> str | None:
        """What the last attempt failed with."""
        try:
            content = self._failed(key).read()
        except OSError:
            return None
        return None if content is None else content.decode()

    def clear(self, key: str) -> None:
        """Forget what became of earlier attempts, and what cannot be read."""
        self.path(key).delete()
        self._failed(key).delete()

    def begun(self, key: str) -> Place:
        """Where attempts at a run leave a mark before they begin."""
        return self.folder / f"{key}.begun"

    def _failed(self, key: str) -> Place:
        return self.folder / f"{key}.failed"

    def _write(self, path: Place, text: str) -> None:
        try:
            path.put(text.encode())
        except OSError as error:
            raise TopicweaveError(
                f"cannot keep a result in {self.folder}: {error.strerror or error}; make room or choose another --runs"
            ) from error
