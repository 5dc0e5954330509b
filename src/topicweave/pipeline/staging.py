"""Folders of tables that appear only when they are whole, and are gone on with where they were left.

Everything is made in a hidden sibling, `.NAME.partial`. It keeps a note of what it is to become; the same command,
run again after a crash or Ctrl-C, finds the note and the parts that are finished, and makes only the rest. Any
other note is another plan's: then it is begun anew. The last step is a rename, which happens or does not.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from topicweave.errors import BadInput, TopicweaveError

ABOUT = "about.json"
_PLAN = "plan.json"
_TABLES = {
    f"{name}.parquet"
    for name in ("subscriptions", "topics", "churn", "hosts", "rejects", "rtt", "as_links", "ases")
}


class Staging:
    """The hidden folder while it is being filled."""

    def __init__(self, folder: Path, out: Path, resumed: bool) -> None:
        self.folder = folder
        self.out = out
        self.resumed = resumed
        """Whether an interrupted attempt at the same thing was found."""

    def table(self, name: str) -> Path:
        """Where a table of the result goes: a folder of part files."""
        return self.folder / f"{name}.parquet"

    def scratch(self, name: str) -> Path:
        """Where something goes that is needed on the way, and not part of the result."""
        return self.folder / f"_{name}"


@contextmanager
def staged(out: Path, plan: Mapping[str, Any], overwrite: bool) -> Iterator[Staging]:
    """A folder to fill; when the block ends without an error it becomes `out`.

    `plan` is all that the contents depend on. An `OSError` in the block becomes an error about the output.
    """
    out = out.absolute()
    refuse_losing(out, overwrite)
    folder = out.with_name(f".{out.name}.partial")
    note = json.dumps(plan, sort_keys=True, default=str)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(exist_ok=True)
        with only_one(folder):
            resumed = _prepare(folder, note)
            staging = Staging(folder, out, resumed)
            try:
                yield staging
            except BadInput:
                # The same input would be as bad the next time: there is nothing to go on with.
                shutil.rmtree(folder, ignore_errors=True)
                raise
            _commit(staging)
    except OSError as error:
        place = error.filename or out
        raise TopicweaveError(
            f"{place}: cannot be written ({error.strerror or error}); make room, or choose another --out"
        ) from error


def write_about(staging: Staging, about: Mapping[str, Any]) -> None:
    """What made the folder and what is in it, for people and for `describe`."""
    text = json.dumps(about, indent=2, ensure_ascii=False) + "\n"
    (staging.folder / ABOUT).write_text(text, encoding="utf-8")


def read_about(folder: Path) -> dict[str, Any]:
    """What `write_about` wrote; nothing if the folder was made otherwise."""
    try:
        about: dict[str, Any] = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise BadInput(f"{folder / ABOUT}: not readable ({error}); make the folder anew") from None
    return about


def refuse_losing(out: Path, overwrite: bool) -> None:
    """Raise if something is there that must not be replaced."""
    if not out.exists():
        return
    if not out.is_dir():
        raise BadInput(f"{out}: a file; the output is a folder, choose another name")
    found = sorted(entry.name for entry in out.iterdir())
    if found and not overwrite:
        raise BadInput(
            f"{out}: already there (it holds {found[0]!r}); choose another folder, or add --overwrite"
        )
    foreign = [name for name in found if name not in _TABLES and name != ABOUT]
    if foreign:
        raise BadInput(f"{out}: holds {foreign[0]!r}, which is no table of ours; choose another folder")


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Raise if another process is at work in a folder."""
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise TopicweaveError(
                f"{folder}: another process is writing it; wait for it or choose another --out"
            ) from None
        yield


def _prepare(folder: Path, note: str) -> bool:
    plan = folder / _PLAN
    if plan.exists() and plan.read_text(encoding="utf-8") == note:
        return True
    for entry in folder.iterdir():
        if entry.name == "lock":
            continue
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    partial = folder / f".{_PLAN}"
    partial.write_text(note, encoding="utf-8")
    partial.replace(plan)
    return False


def _commit(staging: Staging) -> None:
    for entry in staging.folder.iterdir():
        if entry.name.startswith(("_", ".")):
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    old = staging.out.with_name(f".{staging.out.name}.old")
    if old.exists():
        shutil.rmtree(old)
    if staging.out.exists():
        staging.out.rename(old)
    try:
        (staging.folder / _PLAN).unlink()
        (staging.folder / "lock").unlink()
        os.rename(staging.folder, staging.out)
    except BaseException:
        if old.exists() and not staging.out.exists():
            old.rename(staging.out)
        raise
    if old.exists():
        shutil.rmtree(old)
