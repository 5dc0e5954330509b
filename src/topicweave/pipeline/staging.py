"""Folders of tables that are there when they are whole, and gone on with where they were left.

OUT/NAME.parquet/part-…     the tables' parts; which of them count is said by
OUT/about.json              what made the folder, and of every table the parts with their rows, bytes and hashes
OUT/_work/                  while it is being made: the plan, notes of finished parts and tables, what is needed
                            on the way

Writing about.json is the commit. Nothing is renamed, so that it holds on an object store too. Before it, a
folder has no tables, or the old ones; after it the new ones, and what is left of the old ones is deleted. The
same command, run again after a crash or Ctrl-C, finds its own plan and makes what is not finished. Any other
plan is begun anew.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from topicweave.data.places import Place
from topicweave.errors import BadInput, TopicweaveError, without_secrets
from topicweave.model.committed import ABOUT, WORK
from topicweave.pipeline import packing
from topicweave.pipeline.parts import Part, Target, note_of
from topicweave.pipeline.session import is_local
from topicweave.pipeline.workers import ask_all, described, here

_PLAN = "plan.json"
_MARK = "attempt"
_BEGUN = f".{ABOUT}."
_TABLES = {
    f"{name}.parquet"
    for name in (
        "subscriptions",
        "topics",
        "churn",
        "hosts",
        "rejects",
        "rtt",
        "as_links",
        "ases",
        "measures",
    )
}


class Staging:
    """A folder while it is being filled."""

    def __init__(self, out: Place, attempt: bytes, resumed: bool) -> None:
        self.out = out
        self.resumed = resumed
        """Whether an interrupted attempt at the same thing was found."""
        self.about: dict[str, Any] = {}
        self._attempt = attempt
        self._tables: dict[str, Target] = {}

    @property
    def work(self) -> Place:
        return self.out / WORK

    def table(self, name: str) -> Target:
        """A table of the result."""
        target = self._target(self.out / f"{name}.parquet", name)
        self._tables[f"{name}.parquet"] = target
        return target

    def scratch(self, name: str) -> Target:
        """Something that is needed on the way, and not part of the result."""
        return self._target(self.work / f"scratch-{name}", f"scratch-{name}")

    def _target(self, folder: Place, note: str) -> Target:
        return Target(folder, self.work / f"note-{note}", self.work / _MARK, self._attempt)

    def manifest(self) -> dict[str, Any]:
        """Of every table that was finished its rows and parts."""
        notes = {name: note_of(target) for name, target in sorted(self._tables.items())}
        return {name: note for name, note in notes.items() if note is not None}


@contextmanager
def staged(
    out: Path | Place, plan: Mapping[str, Any], overwrite: bool, parents: Mapping[str, str] | None = None
) -> Iterator[Staging]:
    """A folder to fill; when the block ends without an error, what is in it counts.

    `plan` is all that the contents depend on, beside the code; `parents` are the marks of the folders it is
    made from (`mark_of`). What a killed process began by the same plan, from the same parents and by the same
    code is gone on with. An `OSError` in the block becomes an error about the output.
    """
    out = Place(out) if isinstance(out, Path) else out
    refuse_losing(out, overwrite)
    full_plan = {**plan, "parents": dict(parents or {}), "code": packing.code_mark()}
    note = without_secrets(json.dumps(full_plan, sort_keys=True, default=str)).encode()
    try:
        with _only_one_at(out):
            staging = _prepared(out, note)
            try:
                _probe(staging)
                yield staging
            except BadInput:
                # The same input would be as bad the next time: there is nothing to go on with.
                _tidy(out)
                raise
            _commit(staging, parents or {})
    except OSError as error:
        place = error.filename or out
        raise TopicweaveError(
            f"{place}: cannot be written ({error.strerror or error}); make room, or choose another --out"
        ) from error


def write_about(staging: Staging, about: Mapping[str, Any]) -> None:
    """What made the folder and what is in it, for people and for `describe`."""
    staging.about = dict(about)


def read_about(folder: Path | Place) -> dict[str, Any]:
    """What stands in a folder's about.json; nothing if the folder was made otherwise."""
    place = Place(folder) if isinstance(folder, Path) else folder
    content = (place / ABOUT).read()
    if content is None:
        return {}
    try:
        about: dict[str, Any] = json.loads(content)
    except ValueError as error:
        raise BadInput(f"{place / ABOUT}: not readable ({error}); make the folder anew") from None
    return about


def table_files(folder: Path | Place, table: str) -> list[Place]:
    """The files of a folder's table: those that count, or of a folder not made by us all there are; none if
    there is no table.
    """
    place = Place(folder) if isinstance(folder, Path) else folder
    tables = read_about(place).get("tables")
    path = place / f"{table}.parquet"
    if tables is not None:
        return [path / part["name"] for part in tables.get(path.name, {"parts": []})["parts"]]
    if (place / WORK / _PLAN).exists():
        raise BadInput(f"{place}: not finished; run the command that makes it again")
    if path.is_file():
        return [path]
    return [path / name for name in path.names() if not name.startswith(("_", "."))]


def mark_of(folder: Path | Place) -> str:
    """Changes when a folder's tables do: a hash of their parts' hashes, or, where there are none, of sizes
    and times.
    """
    place = Place(folder) if isinstance(folder, Path) else folder
    digest = hashlib.sha256()
    tables = read_about(place).get("tables")
    if tables is not None:
        for name, table in sorted(tables.items()):
            digest.update(json.dumps([name, [part["sha256"] for part in table["parts"]]]).encode())
    else:
        for name, size, changed in place.marks(".parquet"):
            digest.update(f"{name} {size} {changed}".encode())
    return digest.hexdigest()


def refuse_losing(out: Path | Place, overwrite: bool) -> None:
    """Raise if something is there that must not be replaced."""
    place = Place(out) if isinstance(out, Path) else out
    if place.local is not None and place.local.exists() and not place.local.is_dir():
        raise BadInput(f"{place}: a file; the output is a folder, choose another name")
    # What a killed process had only begun to write is in nobody's way.
    found = [name for name in place.names() if not name.startswith(_BEGUN)]
    # Without an about.json, tables beside our work are those that it has begun.
    begun = WORK in found and ABOUT not in found and (place / WORK / _PLAN).exists()
    mine = {WORK, ABOUT, *_TABLES}
    held = [name for name in found if name != WORK and not (begun and name in mine)]
    if held and not overwrite:
        raise BadInput(
            f"{place}: already there (it holds {held[0]!r}); choose another folder, or add --overwrite"
        )
    foreign = [name for name in found if name not in mine]
    if foreign:
        raise BadInput(f"{place}: holds {foreign[0]!r}, which is no table of ours; choose another folder")


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


@contextmanager
def _only_one_at(out: Place) -> Iterator[None]:
    """On a disk a lock. Elsewhere whoever comes last has the right: others find its mark, and stop."""
    if out.local is None:
        yield
        return
    work = out.local / WORK
    work.mkdir(parents=True, exist_ok=True)
    with only_one(work):
        yield


def _prepared(out: Place, note: bytes) -> Staging:
    work = out / WORK
    plan = work / _PLAN
    resumed = plan.read() == note
    if not resumed:
        plan.delete()
        for name in work.names():
            if name != "lock":
                (work / name).delete()
    attempt = f"{os.uname().nodename} {os.getpid()} {secrets.token_hex(8)}".encode()
    (work / _MARK).put(attempt)
    if not resumed:
        plan.put(note)
    return Staging(out, attempt, resumed)


def _probe(staging: Staging) -> None:
    """Raise if an executor does not see the output, or the driver not what it writes there."""
    spark = _running_session()
    if spark is None or is_local(spark.sparkContext.master):
        return
    target = staging.scratch("probe")

    def look(_numbers: Iterator[int]) -> Iterator[str]:
        name = here()
        try:
            target.check()
            digest = hashlib.sha256(name.encode()).hexdigest()[:12]
            (target.folder / digest).put(name.encode())
        except (TopicweaveError, OSError) as error:
            yield f"!{error}"
        else:
            yield name

    with described(spark, f"look at {staging.out} from every worker"):
        answers = ask_all(spark, look)
    for answer in sorted(answers):
        if answer.startswith("!"):
            raise TopicweaveError(answer[1:])
        digest = hashlib.sha256(answer.encode()).hexdigest()[:12]
        if (target.folder / digest).read() != answer.encode():
            raise TopicweaveError(
                f"worker {answer}: what it writes under {staging.out} is not seen here; "
                "the output must be one place for all machines"
            )


def _running_session() -> Any:
    if "pyspark" not in sys.modules:
        return None
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate() if SparkContext._active_spark_context is not None else None


def _commit(staging: Staging, parents: Mapping[str, str]) -> None:
    about = {**staging.about, "made": made_now(parents), "tables": staging.manifest()}
    text = without_secrets(json.dumps(about, indent=2, ensure_ascii=False)) + "\n"
    next(iter(staging._tables.values())).check()  # of two commands on an object store, the later one's goes
    (staging.out / ABOUT).put(text.encode())
    _tidy(staging.out)


def made_now(parents: Mapping[str, str]) -> dict[str, Any]:
    """Where a table comes from: version and fingerprint of the code, time, Spark, and what it was made from."""
    import topicweave

    spark = _running_session()
    moment = time.gmtime(time.time())  # noqa: TID251 -- when it was really made
    return {
        "version": topicweave.__version__,
        "code": packing.code_mark(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", moment),
        "spark": spark.version if spark is not None else None,
        "parents": dict(parents),
    }


def _tidy(out: Place) -> None:
    """Delete whatever about.json does not name, of what is ours; without one, all of it."""
    tables = read_about(out).get("tables", {})
    for name in out.names():
        if name.startswith(_BEGUN):
            (out / name).delete()
        if name not in _TABLES:
            continue
        kept = {Part(**part).name for part in tables.get(name, {"parts": []})["parts"]}
        place = out / name
        if not kept:
            place.delete()
            continue
        for part in place.names():
            if part not in kept:
                (place / part).delete()
    (out / WORK).delete()
    if out.local is not None and not tables and out.local.is_dir() and not any(out.local.iterdir()):
        out.local.rmdir()
