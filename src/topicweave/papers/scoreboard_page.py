"""The scoreboard as a page to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from topicweave.papers.scoreboard import Score, Scoreboard
from topicweave.papers.study import Study

_SIGN = {True: "✓", False: "✗", None: "–"}


def markdown(boards: Sequence[Scoreboard], studies: Mapping[str, Study]) -> str:
    """A page of all scores, with what is known of why a claim does not hold."""
    lines = [
        "# The papers' figures beside ours",
        "",
        "Written by `topicweave reproduce`. Every number comes from a run; nothing here is written by hand but the reasons.",
        "",
        "✓ holds within the tolerance with every seed; ✗ does not; – the paper gives nothing to hold ours to.",
        "",
        "| paper | hold | do not | reported only | scale | seeds | made on | by | code |",
        "|---|---|---|---|---|---|---|---|---|",
        *(_summary(board, paper) for board in boards for paper in board.papers()),
        "",
    ]
    for board in boards:
        for name in dict.fromkeys([*(score.study for score in board.scores), *board.failures]):
            lines += list(_study_section(board, name, studies[name]))
    return "\n".join(lines).rstrip() + "\n"


def _summary(board: Scoreboard, paper: str) -> str:
    origin = board.origin
    made = (origin.date, origin.machine, f"{origin.version}, {origin.code[:12]}")
    cells = (
        paper,
        *map(str, board.tally(paper)),
        board.scale,
        ", ".join(map(str, board.seeds)),
        *made,
    )
    return f"| {' | '.join(cells)} |"


def _study_section(board: Scoreboard, name: str, study: Study) -> Iterator[str]:
    scores = [score for score in board.scores if score.study == name]
    yield f"## {name}: {study.title}"
    yield ""
    yield study.source
    yield ""
    if name in board.failures:
        how = "Not all of it" if scores else "Could not be judged"
        yield f"{how}: {board.failures[name]}"
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
