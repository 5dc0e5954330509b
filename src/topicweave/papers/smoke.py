"""What small runs say of results that other code made.

The paper scale takes hours, so most results are of code that has changed since. Beside them lies what their
code gives at smoke scale. Where the code at hand gives the same, its changes do not reach these numbers as
far as small runs show: the paper scale may take other branches. Where it gives other numbers, the study has
to run again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, get_args

import msgspec

from topicweave.errors import BadInput
from topicweave.papers.reproducing import Reproduction
from topicweave.papers.results import Number

SAME = 1e-6
"""Two numbers are the same if they differ by no more than this share of the larger one."""

NOTHING = "nothing of its code is kept at smoke scale"
Verdict = Literal["same code", "same at smoke scale", "other at smoke scale", "unknown", "not checked"]


class Check(msgspec.Struct, frozen=True):
    """A study at smoke scale: by the code of its results, and by the code at hand on a day."""

    code: str
    """That made the results."""
    here: str
    """That was at hand."""
    made: str
    """The day."""
    kept: int = 0
    """How many numbers the results' code gave."""
    found: int = 0
    """How many of these the code at hand gives too, the same or not."""
    differ: int = 0
    most: float = 0.0
    """By how much at most, as a share of the larger number."""
    unknown: str = ""
    """Why nothing can be compared."""

    @property
    def verdict(self) -> Verdict:
        if self.code == self.here:
            return "same code"
        if self.unknown:
            return "unknown"
        return "other at smoke scale" if self.differ else "same at smoke scale"

    @property
    def told(self) -> str:
        """
        >>> Check("c0de", "abcd", "", kept=20, found=20).told
        'all 20 numbers the same'
        >>> Check("c0de", "abcd", "", kept=20, found=18, differ=3, most=0.0249).told
        '3 of 18 numbers differ, by at most 2.49%; 2 are not measured here'
        """
        if self.verdict == "same code":
            return "same code"
        if self.unknown:
            return f"unknown: {self.unknown}"
        gone = f"; {self.kept - self.found} are not measured here" if self.found < self.kept else ""
        if self.differ:
            return f"{self.differ} of {self.found} numbers differ, by at most {100 * self.most:.3g}%{gone}"
        return f"all {self.found} numbers the same{gone}"


def folder_of(results: Path) -> Path:
    """Where the numbers of the smoke scale lie, beside the results of the same code."""
    return results / "smoke"


def difference(one: float, other: float) -> float:
    """As a share of the larger number; 0 up to `SAME`.

    >>> difference(1.0, 1.0000001), difference(4.0, 5.0), difference(float("nan"), float("nan"))
    (0.0, 0.2, 0.0)
    """
    if math.isclose(one, other, rel_tol=SAME) or (math.isnan(one) and math.isnan(other)):
        return 0.0
    share = abs(one - other) / max(abs(one), abs(other))
    return share if math.isfinite(share) else 1.0


def check(
    again: Reproduction,
    numbers: Iterable[Number],
    kept: Iterable[Number],
    here: Iterable[Number],
    lost: Mapping[str, str],
    day: str,
) -> dict[str, Check]:
    """Each study that has results.

    numbers   the results
    kept      what their code gave at smoke scale
    here      what the code at hand gives, and why it gives nothing for some (lost)
    """
    earlier = {(number.batch, number.code, number.place): number.value for number in kept}
    later = {(number.batch, number.place): number.value for number in here}
    made_by = {number.batch: number.code for number in numbers}
    checks = {}
    for part in again.first():
        name, code = part.study.name, made_by.get((part.study.name, again.scale, part.seed))
        if code is None:
            continue
        small = (name, "smoke", part.seed)
        mine = {place: value for (batch, by, place), value in earlier.items() if (batch, by) == (small, code)}
        both = [(value, later[small, place]) for place, value in mine.items() if (small, place) in later]
        why = "its numbers are times of the processor" if part.study.clocked else lost.get(name, "")
        if not (why or both or code == part.code):
            why = f"none of its {len(mine)} numbers is measured here" if mine else NOTHING
        differ = [share for share in itertools.starmap(difference, both) if share]
        most = max(differ, default=0.0)
        checks[name] = Check(code, part.code, day, len(mine), len(both), len(differ), most, why)
    return checks


def of_other_code(
    again: Reproduction, numbers: Iterable[Number], checks: Mapping[str, Check]
) -> dict[str, list[str]]:
    """By verdict, the studies whose numbers were made by other code than the one at hand."""
    made_by = {number.study: number.code for number in numbers if number.scale == again.scale}
    said: dict[Verdict, list[str]] = {}
    for part in again.first():
        name, one = part.study.name, checks.get(part.study.name)
        if made_by.get(name, part.code) != part.code:
            known = one is not None and (one.code, one.here) == (made_by[name], part.code)
            said.setdefault(one.verdict if one and known else "not checked", []).append(name)
    return {verdict: said[verdict] for verdict in get_args(Verdict) if verdict in said}


def read_checks(results: Path) -> dict[str, Check]:
    """By study; nothing if none was made."""
    path = _file(results)
    if not path.exists():
        return {}
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Check])
    except (OSError, msgspec.DecodeError) as error:
        raise BadInput(f"{path} is no file of `topicweave reproduce --check`: {error}") from error


def add_checks(results: Path, later: Mapping[str, Check]) -> dict[str, Check]:
    """All that were made, those of now instead of earlier ones."""
    from topicweave.report.files import json_text, write_whole

    checks = {**read_checks(results), **later}
    write_whole(_file(results), json_text(msgspec.to_builtins(dict(sorted(checks.items())))))
    return checks


def _file(results: Path) -> Path:
    return results / "checks.json"
