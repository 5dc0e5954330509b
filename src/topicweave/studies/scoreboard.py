"""The papers' scoreboard: every figure and claim, the paper's number, ours with its interval, and whether it holds."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

import topicweave
from topicweave.measures.intervals import half_width, mean
from topicweave.studies.study import Row, Scale, Study


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


@dataclass(frozen=True)
class Scoreboard:
    """All that was rerun."""

    scale: Scale
    seeds: tuple[int, ...]
    scores: tuple[Score, ...]
    failures: Mapping[str, str]
    """Studies that could not be judged, and why."""

    def to_json(self) -> dict[str, Any]:
        return {
            "version": topicweave.__version__,
            "scale": self.scale,
            "seeds": list(self.seeds),
            "scores": [{**msgspec.to_builtins(score), "holds": score.holds} for score in self.scores],
            "failures": dict(self.failures),
        }

    def papers(self) -> list[str]:
        return list(dict.fromkeys(score.study.split("/")[0] for score in self.scores))

    def tally(self, paper: str) -> tuple[int, int, int]:
        """(claims that hold, that do not, reported only) of a paper."""
        verdicts = [score.holds for score in self.scores if score.study.split("/")[0] == paper]
        return verdicts.count(True), verdicts.count(False), verdicts.count(None)


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


_SIGN = {True: "✓", False: "✗", None: "–"}


def markdown(board: Scoreboard, studies: Mapping[str, Study], date: str) -> str:
    """A page of all scores, with what is known of why a claim does not hold."""
    lines = [
        "# The papers' figures beside ours",
        "",
        f"Made by `topicweave reproduce --scale {board.scale} --seeds {len(board.seeds)}`, version {topicweave.__version__}, on {date}; "
        f"seeds {', '.join(map(str, board.seeds))}; {_machine()}. Every number comes from a run; nothing here is written by hand but the reasons.",
        "",
        "✓ holds within the tolerance with every seed; ✗ does not; – the paper gives nothing to hold ours to.",
        "",
        "| paper | hold | do not | reported only |",
        "|---|---|---|---|",
        *(f"| {paper} | {' | '.join(map(str, board.tally(paper)))} |" for paper in board.papers()),
        "",
    ]
    for name in dict.fromkeys([*(score.study for score in board.scores), *board.failures]):
        lines += list(_study_section(board, name, studies[name]))
    return "\n".join(lines).rstrip() + "\n"


def _study_section(board: Scoreboard, name: str, study: Study) -> Iterator[str]:
    scores = [score for score in board.scores if score.study == name]
    yield f"## {name}: {study.title}"
    yield ""
    yield study.source
    yield ""
    if name in board.failures:
        yield f"Could not be judged: {board.failures[name]}"
        yield ""
    if scores:
        yield "| where | measure | paper | ours | tolerance | holds |"
        yield "|---|---|---|---|---|---|"
        for score in scores:
            where = ", ".join(f"{key} {_text(value)}" for key, value in score.where.items())
            cells = (where, score.measure, _text(score.paper), ours(score), score.tolerance, verdict(score))
            yield f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
        yield ""
    if study.remarks and any(score.holds is False for score in scores):
        yield f"Why not: {study.remarks}"
        yield ""


def ours(score: Score) -> str:
    """Our number, with its interval where several seeds give one."""
    text = _text(score.measured)
    return text if score.interval is None else f"{text} ± {score.interval:.2g}"


def verdict(score: Score) -> str:
    """Whether it holds; and where seeds disagree, with how many."""
    sign = _SIGN[score.holds]
    return f"{sign} {score.held}/{score.judged}" if score.holds is False and score.held else sign


def _text(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _machine() -> str:
    import os

    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
