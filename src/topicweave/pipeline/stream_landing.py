"""A stream's rows on their way to their windows: in files that are counted, kept until no window needs them.

OUT/landed/batch=N/part-…         rows of one table, run and window each
OUT/landed/batch=N/landed.json    which of these files count, and what is in them: written when the driver has
                                  seen them all
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from topicweave.data.places import Place
from topicweave.errors import BadInput, TopicweaveError
from topicweave.pipeline.parts import Part, Target, look_at_all, write_numbered
from topicweave.pipeline.stream_progress import LISTS, Span, Windows
from topicweave.pipeline.workers import described
from topicweave.telemetry.schema import RECORDED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NOTE = "landed.json"
_TABLES = list(RECORDED)


class Group(NamedTuple):
    """Where rows belong: a run by its number, and a window by its own."""

    number: int
    place: int


class Landed(NamedTuple):
    """A file of rows of one table and group."""

    table: str
    number: int
    place: int
    part: Part


class Landing:
    """All that has landed, by batch. One process at a time writes there; who comes later takes over."""

    def __init__(self, out: Place) -> None:
        self._folder = out / "landed"
        self._mark = out / "attempt"
        self._attempt = f"{os.uname().nodename} {os.getpid()} {secrets.token_hex(8)}".encode()
        self._mark.put(self._attempt)
        self._batches = {
            name: _read(self._folder / name / _NOTE)
            for name in self._folder.names()
            if name.startswith("batch=")
        }

    def target(self, folder: Place) -> Target:
        """For tasks that write into a folder beside it."""
        return Target(folder, folder, self._mark, self._attempt)

    def land(self, rows: DataFrame, batch: int, expected: Mapping[Group, tuple[int, int]]) -> None:
        """Write the rows of a batch, in the order in which `measure` would read them.

        `expected`: of each group how many rows there are, and how many of them say who wants what; counted before.
        """
        from pyspark.sql import functions as sf

        name, spark = f"batch={batch:08d}", rows.sparkSession
        target = self.target(self._folder / name)
        groups = sorted(expected)
        numbered = spark.createDataFrame(
            pa.table(
                {
                    "number": pa.array([group.number for group in groups], pa.int32()),
                    "place": pa.array([group.place for group in groups], pa.int64()),
                    "part": pa.array([at * len(_TABLES) for at in range(len(groups))], pa.int32()),
                }
            )
        )
        table = sf.array_position(sf.lit(_TABLES), sf.col("table")).cast("int") - 1
        placed = rows.join(sf.broadcast(numbered), ["number", "place"])
        laid_out = (
            placed.withColumn("part", sf.col("part") + table)
            .repartition("part")
            .sortWithinPartitions("part", "file", "order")
            .drop("table", "number", "place", "file", "order")
        )
        with described(spark, f"land batch {batch}"):
            parts = write_numbered(laid_out, target) if groups else []
        look_at_all(target, parts)
        landed = [
            Landed(_TABLES[part.number % len(_TABLES)], *groups[part.number // len(_TABLES)], part)
            for part in parts
        ]
        _refuse_loss(landed, expected, batch)
        (self._folder / name / _NOTE).put(json.dumps([_plain(one) for one in landed]).encode())
        self._batches[name] = landed

    def files(self, span: Span, windows: Windows, table: str) -> list[str]:
        """The files with the rows of a table that a window needs, in the order in which they came."""
        reach = windows.reach if table == "deliveries" else 0
        near = range(span.place - reach, span.place + reach + 1)
        return [
            str(self._folder / batch / one.part.name)
            for batch, landed in sorted(self._batches.items())
            for one in sorted(landed, key=lambda one: one.place)
            if (one.table, one.number) == (table, span.number)
            and (one.place <= span.place if table == LISTS else one.place in near)
        ]

    def lists(self, number: int) -> int:
        """How many rows say what the nodes of a run want."""
        every = (one for landed in self._batches.values() for one in landed)
        return sum(one.part.rows for one in every if (one.table, one.number) == (LISTS, number))

    def tidy(self, first: Mapping[int, int], over: Collection[int]) -> None:
        """Delete what no window to come needs: by run, what is before its first; and who wants what in runs
        that are over.
        """
        for batch, landed in list(self._batches.items()):
            kept = [
                one
                for one in landed
                if (
                    one.number not in over
                    if one.table == LISTS
                    else one.place >= first.get(one.number, one.place)
                )
            ]
            if not kept:
                (self._folder / batch).delete()
                del self._batches[batch]
                continue
            for one in set(landed) - set(kept):
                (self._folder / batch / one.part.name).delete()
            self._batches[batch] = kept


def _refuse_loss(landed: Iterable[Landed], expected: Mapping[Group, tuple[int, int]], batch: int) -> None:
    found = {group: [0, 0] for group in expected}
    for one in landed:
        found[Group(one.number, one.place)][one.table == LISTS] += one.part.rows
    for group, (rows, lists) in expected.items():
        if found[group] != [rows, lists]:
            raise TopicweaveError(
                f"batch {batch}: {rows:,} + {lists:,} rows were counted for a window, {found[group][0]:,} + "
                f"{found[group][1]:,} landed; a file changed meanwhile, run the same command again"
            )


def _plain(one: Landed) -> dict[str, object]:
    return {**one._asdict(), "part": one.part._asdict()}


def _read(note: Place) -> list[Landed]:
    content = note.read()
    if content is None:  # killed on the way: the batch is done again
        return []
    try:
        return [Landed(**{**row, "part": Part(**row["part"])}) for row in json.loads(content)]
    except (ValueError, TypeError, KeyError) as error:
        raise BadInput(f"{note}: cannot be read ({error}); begin anew in another --out") from None
