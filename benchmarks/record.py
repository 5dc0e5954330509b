"""Results of a version, kept in benchmarks/results/VERSION.json, and this run beside them: what became dearer."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import msgspec
import psutil

from benchmarks.sheet import Column, Sheet

FOLDER = Path(__file__).parent / "results"
WORSE = 1.2
"""From here on a figure is pointed out: two runs on one machine differ by less."""


class Recorded(msgspec.Struct):
    title: str
    headings: list[str]
    rows: list[list[Any]]
    machine: str
    load: float
    """How many processes wanted a core when it was done (a minute's mean): above the cores, figures are too high."""


class Record(msgspec.Struct):
    version: str
    sheets: dict[str, Recorded] = {}
    """By the sheet's name; small sizes (`--quick`) under a name of their own."""


def machine() -> str:
    """What figures depend on: processor, memory, Python."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.partition(": ")[2] for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    memory = psutil.virtual_memory().total / 2**30
    return f"{os.cpu_count()} x {model}, {memory:.0f} GiB, {platform.system()}, Python {platform.python_version()}"


def name_of(sheet: Sheet, quick: bool) -> str:
    return f"{sheet.name} (quick)" if quick else sheet.name


def read(version: str, folder: Path = FOLDER) -> Record:
    file = folder / f"{version}.json"
    if not file.exists():
        known = ", ".join(sorted(one.stem for one in folder.glob("*.json"))) or "none"
        raise SystemExit(f"benchmarks: no results of version {version}; there are those of: {known}")
    return msgspec.json.decode(file.read_bytes(), type=Record)


def write(version: str, sheets: list[Sheet], quick: bool, folder: Path = FOLDER) -> Path:
    """Sheets that this run did not make stay as they were recorded."""
    file = folder / f"{version}.json"
    record = read(version, folder) if file.exists() else Record(version)
    for sheet in sheets:
        headings = [column.heading for column in sheet.columns]
        rows = [list(row) for row in sheet.rows]
        record.sheets[name_of(sheet, quick)] = Recorded(
            sheet.title, headings, rows, machine(), round(os.getloadavg()[0], 1)
        )
    record.sheets = dict(sorted(record.sheets.items()))
    folder.mkdir(exist_ok=True)
    file.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")
    return file


def against(record: Record, sheet: Sheet, quick: bool) -> Sheet | None:
    """Each figure as a multiple of the recorded one: above 1 is dearer or slower, whichever way the figure runs.

    None where the record has no such sheet, or one of another title: other sizes are no measure of these.
    """
    old = record.sheets.get(name_of(sheet, quick))
    if old is None or old.title != sheet.title:
        return None
    keys = sheet.columns[: sheet.keys]
    judged = [
        (at, column)
        for at, column in enumerate(sheet.columns)
        if column.better and column.heading in old.headings
    ]
    beside = Sheet(
        sheet.name,
        f"{sheet.title}: cost against {record.version}",
        sheet.keys,
        *keys,
        *(Column(column.heading, ".2f", "less") for _, column in judged),
        note=f"load {old.load} then, {os.getloadavg()[0]:.1f} now"
        + ("" if old.machine == machine() else f"; another machine then: {old.machine}"),
    )
    rows = {tuple(row[: sheet.keys]): row for row in old.rows}
    for row in sheet.rows:
        then = rows.get(tuple(sheet.key(row)))
        ratios = [
            _ratio(row[at], then[old.headings.index(column.heading)], column) if then else None
            for at, column in judged
        ]
        beside.add(*sheet.key(row), *ratios)
    return beside


def _ratio(now: float | None, then: float | None, column: Column) -> float | None:
    if not now or not then:
        return None
    return now / then if column.better == "less" else then / now


def worse(beside: Sheet) -> list[str]:
    """The figures that became worse, one line each."""
    return [
        f"{beside.name}: {', '.join(map(str, beside.key(row)))}: {column.heading} {ratio:.2f} times"
        for row in beside.rows
        for ratio, column in zip(row[beside.keys :], beside.columns[beside.keys :], strict=True)
        if ratio is not None and ratio > WORSE
    ]
