"""The papers' scoreboard: every claim once, beside what was measured, and how many hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from topicweave.papers.claims import Paper, load_papers
from topicweave.papers.judging import STATES, ClaimVerdict, State, judge
from topicweave.papers.results import Number
from topicweave.runs.registry import PAPERS


class PaperBoard(msgspec.Struct, frozen=True):
    """One paper's claims, judged."""

    paper: Paper
    verdicts: tuple[ClaimVerdict, ...]
    checks: tuple[ClaimVerdict, ...]
    """Ours; they do not count."""
    numbers: tuple[Number, ...]

    def count(self, state: State) -> int:
        return sum(verdict.state == state for verdict in self.verdicts)

    def headline(self) -> dict[str, int]:
        return {"claims": len(self.verdicts), **{state: self.count(state) for state in STATES}}


def scoreboard(
    numbers: Sequence[Number], papers: Iterable[str] = PAPERS, scale: str = "paper"
) -> list[PaperBoard]:
    """All claims of these papers, judged on what was run at this scale."""
    boards = []
    for paper in load_papers(papers):
        mine = tuple(
            number for number in numbers if number.scale == scale and number.study.split("/")[0] == paper.name
        )
        claims = tuple(judge(claim, mine) for claim in paper.claims)
        checks = tuple(judge(claim, mine) for claim in paper.checks)
        boards.append(PaperBoard(paper, claims, checks, mine))
    return boards


def board_of(study: str, numbers: Sequence[Number]) -> PaperBoard | None:
    """The claims, and our checks, that rest on a study; None if it is of no paper."""
    for board in scoreboard(numbers, [paper for paper in PAPERS if study.startswith(f"{paper}/")]):
        claims, checks = (
            tuple(verdict for verdict in verdicts if study in verdict.claim.studies)
            for verdicts in (board.verdicts, board.checks)
        )
        return msgspec.structs.replace(board, verdicts=claims, checks=checks)
    return None


def to_json(boards: Iterable[PaperBoard]) -> dict[str, Any]:
    """The headline and every claim, for machines."""
    return {
        "headline": {board.paper.name: board.headline() for board in boards},
        "claims": [_told(verdict) for board in boards for verdict in board.verdicts],
        "checks": [_told(verdict) for board in boards for verdict in board.checks],
    }


def _told(verdict: ClaimVerdict) -> dict[str, Any]:
    claim = verdict.claim
    return {
        "id": claim.id,
        "at": claim.at,
        "says": claim.says,
        "state": verdict.state,
        "cases": msgspec.to_builtins(verdict.judged),
        "seeds": list(verdict.seeds),
        "levels": list(verdict.levels),
        "physics": list(verdict.physics),
        "made": list(verdict.days),
    }
