"""Windows of time, and how far a stream has come in them: plain data, one small note per batch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from topicweave.errors import BadInput

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


CONTROL = "control"
LISTS = "interests"
"""The table that says who wants what: its rows belong to all windows to come, and make none."""
_END = 1e12
"""Seconds; beyond it, on either side, no clock is right."""
_TOGETHER = 0.9
"""This share of the nodes tells what time it is: of the others clocks may be ahead."""
_IDLE = 1000
"""Batches without a row after which a run is over, if no window of it waits."""


class Windows(NamedTuple):
    """How time is cut, and when a piece of it is measured; all in seconds."""

    window: float
    """The length of a piece."""
    wait: float
    """How long after it was published an event may still arrive."""
    lateness: float
    """How far a node may be behind the others and still be waited for, and its rows behind it."""
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

    def first_waiting(self, slowest: float) -> int:
        """The first window that must still wait when the slowest node has come to this moment."""
        return math.floor((slowest - self.lateness - self.wait) / self.window)

    def last_possible(self, now: float) -> int:
        """The last window that rows may be of; beyond it a clock is wrong."""
        return math.floor((now + 2 * (self.wait + self.lateness) + self.window) / self.window)

    def place(self) -> Column:
        """The number of a row's window; null if a cell is missing or its time is no time."""
        from pyspark.sql import functions as sf

        time = sf.col("time")
        # A row of control traffic stands for the period that ends at its time.
        window = sf.when(sf.col("table") == CONTROL, sf.ceil(time / self.window) - 1).otherwise(
            sf.floor(time / self.window)
        )
        return sf.when(sf.col("whole") & time.between(-_END, _END), window)

    def counted(self, rows: DataFrame) -> DataFrame:
        """(run, node, place, rows, lists, latest), where place is null for rows that have none.

        `lists` are the rows that say who wants what, `rows` the others.
        """
        from pyspark.sql import functions as sf

        listed = sf.col("table") == LISTS
        return rows.groupBy("run", "node", self.place().alias("place")).agg(
            sf.count_if(~listed).alias("rows"),
            sf.count_if(listed).alias("lists"),
            sf.max("time").alias("latest"),
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
    last_possible: int = 0
    """The last window that rows may be of, as the nodes' clocks stand."""
    marks: dict[str, float] = {}
    """By node, the time of its newest row; rows from the future do not count."""
    rows: dict[int, int] = {}
    """How many there are of the windows that wait, and of those before that they may need."""
    late: int = 0
    """Rows that came when their window had been measured."""
    future: int = 0
    """Rows of a time that the others' clocks are far from."""
    idle: int = 0
    """Batches since its last row."""

    @property
    def is_over(self) -> bool:
        """Nothing came for long; what is left of it tells windows that were measured from others."""
        return not self.marks

    def now(self) -> float:
        """What time it is by most nodes' clocks; one that is ahead does not count where there are two."""
        times = sorted(self.marks.values())
        return times[math.floor(_TOGETHER * (len(times) - 1))] if times else -math.inf

    def slowest(self, lateness: float) -> float:
        """How far the slowest node has come of those that are alive: whoever is not further behind than `lateness`."""
        now = self.now()
        return min((time for time in self.marks.values() if time >= now - lateness), default=now)


class Progress(msgspec.Struct, frozen=True):
    """How far all runs have come."""

    runs: dict[str, StreamedRun] = {}
    unplaced: int = 0
    """Rows with a cell missing, or a time that is no time: left out."""

    def with_rows(self, found: Iterable[Mapping[str, Any]], windows: Windows) -> Progress:
        """After some more rows, as `Windows.counted` counts them."""
        by_run: dict[str, list[Mapping[str, Any]]] = {}
        unplaced = self.unplaced
        for row in found:
            if row["place"] is None:
                unplaced += row["rows"] + row["lists"]
            else:
                by_run.setdefault(row["run"], []).append(row)
        runs = {
            name: msgspec.structs.replace(run, idle=run.idle + 1) if name not in by_run else run
            for name, run in self.runs.items()
        }
        for name in sorted(by_run):
            # Whatever comes first of a run, no window of it has been measured.
            first = min(row["place"] for row in by_run[name])
            runs[name] = _with_rows(runs.get(name) or StreamedRun(len(runs), first), by_run[name], windows)
        return Progress(runs, unplaced)

    def first_waiting(self, windows: Windows) -> dict[str, int]:
        """By run, the first window that must wait for more rows."""
        return {
            name: max(run.first_waiting, windows.first_waiting(slowest))
            if (slowest := run.slowest(windows.lateness)) > -math.inf
            else run.first_waiting
            for name, run in self.runs.items()
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
            over = run.idle > _IDLE and not any(place >= first for place in rows)
            runs[name] = msgspec.structs.replace(
                run, first_waiting=first, rows={} if over else rows, marks={} if over else run.marks
            )
        return Progress(runs, self.unplaced)

    def left_out(self) -> int:
        """How many rows no window took."""
        return self.unplaced + sum(run.late + run.future for run in self.runs.values())

    def encoded(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def decoded(cls, text: bytes) -> Progress:
        return msgspec.json.decode(text, type=cls)


def _with_rows(run: StreamedRun, found: Iterable[Mapping[str, Any]], windows: Windows) -> StreamedRun:
    groups = sorted(found, key=lambda row: (str(row["node"]), row["place"]))
    marks = dict(run.marks)
    for row in groups:
        marks[row["node"]] = max(marks.get(row["node"], -math.inf), row["latest"])
    # What time it is, is asked of all; whoever is far ahead of it is not believed.
    last = max(run.last_possible, windows.last_possible(StreamedRun(0, 0, marks=marks).now()))
    marks, rows, late, future = dict(run.marks), dict(run.rows), run.late, run.future
    for row in groups:
        if row["place"] > last:
            future += row["rows"] + row["lists"]
            continue
        marks[row["node"]] = max(marks.get(row["node"], -math.inf), row["latest"])
        if row["place"] < run.first_waiting:
            late += row["rows"]
        elif row["rows"]:
            rows[row["place"]] = rows.get(row["place"], 0) + row["rows"]
    return msgspec.structs.replace(
        run, last_possible=last, marks=marks, rows=rows, late=late, future=future, idle=0
    )
