"""Results of studies as data: one line per number, kept in files that later runs continue."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from topicweave.errors import BadInput
from topicweave.measures.intervals import half_width_of
from topicweave.papers.study import Row

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.])")
_SAMPLE = re.compile(r"^(.*), sample (\d+)$")
_LEVELS = {"cycles": "bulk", "arrays": "bulk"}
REPLICATIONS = ("seed", "sample")
"""What repeats a measurement and does not name another one."""


class Number(msgspec.Struct, frozen=True):
    """One measured number, and where it comes from."""

    study: str
    scale: str
    seed: int
    level: str
    """`messages`: every message was simulated; `bulk`: whole networks at once, as arrays; `data`: no network at all."""
    where: str
    """The point, as `name=value; name=value`."""
    measure: str
    part: int
    """Which number, if a measure gives several; 0 if it gives one."""
    value: float
    seeds: int = 1
    """Of how many seeds this is the mean."""
    interval: float | None = None
    """Half of the 95 % confidence interval over these."""
    code: str = ""
    """A fingerprint of the code that the study's runs could reach."""
    made: str = ""
    """The day."""
    physics: str = ""
    """Latency, loss, membership, and what nodes knew that the paper's do not; nothing if it was not recorded."""

    @property
    def place(self) -> tuple[str, str, str, int]:
        return self.level, self.where, self.measure, self.part

    @property
    def paper(self) -> str:
        return self.study.split("/")[0]

    @property
    def batch(self) -> tuple[str, str, int]:
        """What was run, and is replaced, in one go."""
        return self.study, self.scale, self.seed

    def point(self) -> dict[str, str]:
        """
        >>> Number("a/b", "paper", 0, "bulk", "nodes=10; system=x=y", "degree", 0, 1.0).point()
        {'nodes': '10', 'system': 'x=y', 'level': 'bulk'}
        """
        pairs = [pair.split("=", 1) for pair in self.where.split("; ")] if self.where else []
        return {**dict(pairs), "level": self.level}


def text(value: Any) -> str:
    """How a value of a point is written: the same for 2 and 2.0."""
    return f"{value:.10g}" if isinstance(value, float) else str(value).replace(";", ",")


class Batch(msgspec.Struct, frozen=True):
    """What was run, and is replaced, in one go."""

    study: str
    scale: str
    seed: int
    level: str
    """Where a row does not say it."""
    seeds: int = 1
    """How many seeds it ran by itself, and took the mean of."""
    code: str = ""
    made: str = ""
    physics: str = ""


def as_numbers(batch: Batch, rows: Iterable[Row]) -> list[Number]:
    """A study's rows as data.

    Each number of a row in words becomes one of its own. Two rows of one place must agree: which of two
    different numbers is meant nobody could tell later, and their mean is neither.
    """
    found: dict[tuple[str, str, str, int], Number] = {}
    for row in rows:
        where = dict(row.where)
        sample = _SAMPLE.match(str(where.get("workload", "")))
        if sample:
            where |= {"workload": sample[1], "sample": sample[2]}
        told = where.pop("level", batch.level)
        place = "; ".join(f"{name}={text(value)}" for name, value in where.items())
        several = row.deviation is not None and batch.seeds > 1
        for part, value in _numbers(row.measured):
            number = Number(
                study=batch.study,
                scale=batch.scale,
                seed=batch.seed,
                level=_LEVELS.get(str(told), str(told)),
                where=place,
                measure=row.measure,
                part=part,
                value=value,
                seeds=batch.seeds,
                interval=half_width_of(row.deviation or 0.0, batch.seeds) if several else None,
                code=batch.code,
                made=batch.made,
                physics=batch.physics,
            )
            earlier = found.setdefault(number.place, number)
            if repr(earlier.value) != repr(value):  # nan is nan here
                raise BadInput(
                    f"{batch.study}: {row.measure} at {place or 'its only point'} is both {earlier.value} and {value}"
                )
            if several:
                found[number.place] = number
    return list(found.values())


def _numbers(measured: float | str | None) -> list[tuple[int, float]]:
    if measured is None:
        return []
    if not isinstance(measured, str):
        return [(0, float(measured))]
    if measured in ("True", "False"):
        return [(0, float(measured == "True"))]
    return [(part, float(one)) for part, one in enumerate(_NUMBER.findall(measured), start=1)]


def merged(earlier: Iterable[Number], later: Sequence[Number]) -> list[Number]:
    """Both, but what was run again only as it came out last; and of a study at one scale nothing by other
    code than that.
    """
    again = {number.batch for number in later}
    code = {number.batch[:2]: number.code for number in later}
    kept = [
        number
        for number in earlier
        if number.batch not in again and code.get(number.batch[:2], number.code) == number.code
    ]
    return sorted([*kept, *later], key=lambda number: number.batch)


def read_results(folder: Path) -> list[Number]:
    """All that a folder holds; nothing if there is none."""
    found = []
    for path in sorted(folder.glob("*.csv")):
        try:
            with path.open(encoding="utf-8", newline="") as lines:
                found += [_number(line) for line in csv.DictReader(lines)]
        except (msgspec.ValidationError, KeyError, UnicodeDecodeError) as error:
            raise BadInput(f"{path} is no file of results of `topicweave reproduce`: {error}") from error
    return found


def _number(line: Mapping[str, str]) -> Number:
    given = {name: value for name, value in line.items() if name != "interval" or value}
    return msgspec.convert(given, Number, strict=False)


def csv_text(numbers: Iterable[Number]) -> str:
    """A file of results: one line per number."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    fields = Number.__struct_fields__
    writer.writerow(fields)
    for number in numbers:
        cells = (getattr(number, name) for name in fields)
        writer.writerow(
            "" if cell is None else f"{cell:.10g}" if isinstance(cell, float) else cell for cell in cells
        )
    return lines.getvalue()


def add_results(folder: Path, later: Sequence[Number]) -> list[Number]:
    """All that the folder holds then: one file per paper.

    Another command may have added to them since this one began. So they are read again, and files of other
    papers are left alone.
    """
    from topicweave.report.files import make_folder, write_whole

    numbers = merged(read_results(folder), later)
    if later:
        make_folder(folder)
    for paper in dict.fromkeys(number.paper for number in later):
        write_whole(folder / f"{paper}.csv", csv_text(number for number in numbers if number.paper == paper))
    return numbers
