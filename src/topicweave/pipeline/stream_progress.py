"""Windows of time, and how far a stream has come in them: plain data, one small note per batch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from topicweave.errors import BadInput

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


_END = 1e12
"""Seconds; beyond it, on either side, no clock is right."""


class Windows(NamedTuple):
    """How time is cut, and when a piece of it is measured; all in seconds."""

    window: float
    """The length of a piece."""
    wait: float
    """How long after it was published an event may still arrive."""
    lateness: float
    """How much older than the newest row a row may be when it comes."""
    grace: float = 0.0
    """How long newcomers have to settle."""

    def check(self) -> None:
        if not 1e-3 <= self.window < math.inf:
            raise BadInput(f"window {self.window:g}: choose a number of seconds, a millisecond or more")
        for name in ("wait", "lateness", "grace"):
            if not 0 <= getattr(self, name) < math.inf:
                raise BadInput(f"{name} {getattr(self, name):g}: choose a number of seconds, 0 or more")

    @property
    def reach(self) -> int:
        """So many windows before and after it a window's receptions may stand in."""
        return math.ceil(self.wait / self.window)

    def first_waiting(self, latest: float) -> int:
        """The first window that must still wait when the newest row is from this moment."""
        return math.floor((latest - self.lateness - self.wait) / self.window)

    def place(self) -> Column:
        """The number of a row's window; null if a cell is missing or its time is no time."""
        from pyspark.sql import functions as sf

        time = sf.col("time")
        return sf.when(sf.col("whole") & time.between(-_END, _END), sf.floor(time / self.window))

    def counted(self, rows: DataFrame) -> DataFrame:
        """(run, place, rows, latest), where place is null for rows that have none."""
        from pyspark.sql import functions as sf

        return rows.groupBy("run", self.place().alias("place")).agg(
            sf.count("*").alias("rows"), sf.max("time").alias("latest")
        )


class Span(NamedTuple):
    """One window of one run."""

    run: str
    number: int
    """The run's."""
    place: int
    """The window's."""
    start: float
    end: float
    rows: int
    """It takes no more rows than this to measure it."""


class StreamedRun(msgspec.Struct, frozen=True):
    """How far one run has come."""

    number: int
    """Runs are numbered as they come; their names may hold anything."""
    first_waiting: int
    """The first window that has not been measured."""
    latest: float = -math.inf
    """The time of the newest row."""
    rows: dict[int, int] = {}
    """How many there are of the windows that wait, and of those before that they may need."""
    late: int = 0
    """Rows that came when their window had been measured."""


class Progress(msgspec.Struct, frozen=True):
    """How far all runs have come."""

    runs: dict[str, StreamedRun] = {}
    unplaced: int = 0
    """Rows with a cell missing, or a time that is no time: left out."""

    def with_rows(self, found: Iterable[Mapping[str, Any]]) -> Progress:
        """After some more rows, as `Windows.counted` counts them."""
        runs, unplaced = dict(self.runs), self.unplaced
        for row in sorted((one for one in found), key=lambda one: (str(one["run"]), one["place"] or 0)):
            name, place, rows = row["run"], row["place"], row["rows"]
            if place is None:
                unplaced += rows
                continue
            run = runs.get(name) or StreamedRun(number=len(runs), first_waiting=place)
            if name not in self.runs:  # whatever comes first, no window of it has been measured
                run = msgspec.structs.replace(run, first_waiting=min(run.first_waiting, place))
            if place < run.first_waiting:
                runs[name] = msgspec.structs.replace(run, late=run.late + rows)
                continue
            counts = {**run.rows, place: run.rows.get(place, 0) + rows}
            runs[name] = msgspec.structs.replace(run, latest=max(run.latest, row["latest"]), rows=counts)
        return Progress(runs, unplaced)

    def first_waiting(self, windows: Windows) -> dict[str, int]:
        """By run, the first window that must wait for more rows."""
        return {
            name: max(run.first_waiting, windows.first_waiting(run.latest)) for name, run in self.runs.items()
        }

    def none_waiting(self) -> dict[str, int]:
        """The same, if no more rows will come."""
        return {name: 1 + max(run.rows, default=run.first_waiting - 1) for name, run in self.runs.items()}

    def due(self, until: Mapping[str, int], windows: Windows) -> list[Span]:
        """The windows before `until` that have not been measured; those without a row are none."""
        spans = []
        for name, run in self.runs.items():
            for place in sorted(run.rows):
                if run.first_waiting <= place < until[name]:
                    near = range(place - windows.reach, place + windows.reach + 1)
                    rows = sum(run.rows.get(one, 0) for one in near)
                    start, end = place * windows.window, (place + 1) * windows.window
                    spans.append(Span(name, run.number, place, start, end, rows))
        return spans

    def moved_on(self, until: Mapping[str, int], windows: Windows) -> Progress:
        """When those have been measured."""
        runs = {}
        for name, run in self.runs.items():
            first = until[name]
            rows = {place: count for place, count in run.rows.items() if place >= first - windows.reach}
            runs[name] = msgspec.structs.replace(run, first_waiting=first, rows=rows)
        return Progress(runs, self.unplaced)

    def encoded(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def decoded(cls, text: bytes) -> Progress:
        return msgspec.json.decode(text, type=cls)
