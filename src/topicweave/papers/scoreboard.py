"""The papers' scoreboard: every figure and claim, the paper's number, ours with its interval, and whether it holds."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

import topicweave
from topicweave.errors import BadInput
from topicweave.measures.intervals import half_width, mean
from topicweave.papers.study import Row, Scale


class Score(msgspec.Struct, frozen=True):
    """One figure or claim, over all seeds."""

    study: str
    where: dict[str, Any]
    measure: str
    paper: float | str | None
    measured: float | str | None
    """The mean over the seeds where it is a number; in words, the first seed's."""
    interval: float | None
    """Half of the 95 % confidence interval; None with one seed, and in words."""
    held: int
    """With how many seeds it held."""
    judged: int
    """With how many seeds it could be judged; 0 where the paper gives nothing to hold ours to."""
    tolerance: str = ""

    @property
    def holds(self) -> bool | None:
        """With every seed."""
        return self.held == self.judged if self.judged else None


class Origin(msgspec.Struct, frozen=True):
    """When, where and by what code a scoreboard was made."""

    date: str
    machine: str
    code: str
    """A fingerprint of all code that its runs can reach."""
    version: str = topicweave.__version__


class Scoreboard(msgspec.Struct, frozen=True):
    """All that was rerun in one place with the same code."""

    scale: Scale
    seeds: tuple[int, ...]
    scores: tuple[Score, ...]
    failures: dict[str, str]
    """Studies that could not be judged, or not with all seeds, and why."""
    origin: Origin

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = msgspec.to_builtins(self)
        for written, score in zip(told["scores"], self.scores, strict=True):
            written["holds"] = score.holds
        return told

    def papers(self) -> list[str]:
        return list(dict.fromkeys(score.study.split("/")[0] for score in self.scores))

    def tally(self, paper: str) -> tuple[int, int, int]:
        """(claims that hold, that do not, reported only) of a paper."""
        verdicts = [score.holds for score in self.scores if score.study.split("/")[0] == paper]
        return verdicts.count(True), verdicts.count(False), verdicts.count(None)


def read_scoreboard(path: Path) -> Scoreboard:
    """One that `topicweave reproduce` wrote."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Scoreboard)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise BadInput(f"{path} is no scoreboard of `topicweave reproduce`: {error}") from error


def latest(boards: Sequence[Scoreboard]) -> list[Scoreboard]:
    """The same, each study only in the last of those that judged it, or that tried if none did."""
    judged = {score.study: place for place, board in enumerate(boards) for score in board.scores}
    tried = {name: place for place, board in enumerate(boards) for name in board.failures}
    place_of = tried | judged
    return [
        msgspec.structs.replace(
            board,
            scores=tuple(score for score in board.scores if place_of[score.study] == place),
            failures={name: why for name, why in board.failures.items() if place_of[name] == place},
        )
        for place, board in enumerate(boards)
    ]


def combine(study: str, rows_by_seed: Sequence[Sequence[Row]]) -> list[Score]:
    """Rows of the same figure with different seeds become one."""
    by_place: dict[str, list[Row]] = {}
    for rows in rows_by_seed:
        for row in rows:
            # A seed is what replications differ in, so it does not tell figures apart.
            where = {name: value for name, value in row.where.items() if name != "seed"}
            key = json.dumps([where, row.measure], sort_keys=True, default=str)
            by_place.setdefault(key, []).append(row)
    return [_score(study, rows) for rows in by_place.values()]


def _score(study: str, rows: Sequence[Row]) -> Score:
    first = rows[0]
    numbers = [float(row.measured) for row in rows if isinstance(row.measured, int | float)]
    in_numbers = len(numbers) == len(rows)
    spread = half_width(numbers) if in_numbers else math.nan
    judged = [row.holds for row in rows if row.holds is not None]
    return Score(
        study=study,
        where={name: value for name, value in first.where.items() if name != "seed"},
        measure=first.measure,
        paper=first.paper,
        measured=mean(numbers) if in_numbers else first.measured,
        interval=spread if math.isfinite(spread) else None,
        held=judged.count(True),
        judged=len(judged),
        tolerance=first.tolerance,
    )
