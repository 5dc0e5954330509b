"""What the papers claim, as data: each claim once, with what is measured for it and how that is judged.

Each paper's claims stand in a `claims.toml` beside its studies. A claim names rows of a study's results
(`study`, `measure`, `where`, `part`), along an axis (`by`) if it is on a curve, maybe set against other rows
(`against`, `how`), and says how they are judged: by one of `paper`, `range`, `below`, `above`, `trend`,
`peak`, `valley`, `alike` and `fits`, or that they are only shown (`beside`). What differs between the
settings that it is held in stands in its `cases`; it holds if it holds in all of them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any, Literal

import msgspec

from topicweave.errors import BadInput
from topicweave.runs.registry import PAPERS

WITHIN = 0.15
"""How far a number may be from the paper's."""
FIT = 0.95
"""How much of what points differ in a line must explain."""
JUDGEMENTS = ("paper", "range", "below", "above", "trend", "peak", "valley", "alike", "fits", "beside")


class Rows(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rows of a study's results."""

    study: str = ""
    measure: str = ""
    where: dict[str, Any] = {}
    part: int | None = None
    """Which number, if a row holds several; the same as ours if not given."""


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is measured in one setting, and how it is judged."""

    name: str = ""
    study: str = ""
    measure: str = ""
    where: dict[str, Any] = {}
    """What the rows have in common; "" stands for what they must not name."""
    part: int = 0
    """Which number, if a row holds several; 0 if it holds one."""
    by: str = ""
    """The axis of a curve: what its points differ in. `part`: the numbers of one row; `seed`: each seed by itself."""
    labels: list[Any] = []
    """What the numbers of one row stand for."""
    axis: str = ""
    """What to call the axis; its own name if not given."""
    points: list[Any] = []
    """The points, in their order; all that there are, by size, if not given."""
    reduce: Literal["", "max", "min", "mean"] = ""
    """All points become one number."""
    against: Rows | None = None
    how: Literal["ratio", "factor", "less by", "more by", "difference", "gap"] = "ratio"
    """What is made of ours (a) and the other (b): a / b, the larger of a / b and b / a, 1 - a / b, a / b - 1, a - b,
    the size of a - b.
    """
    paper: float | dict[str, float] | None = None
    """The paper's number, or one for each point."""
    within: float = WITHIN
    zero: float = 0.0
    """How far from 0 ours may be where the paper has 0, or from 1 where it has 1."""
    range: tuple[float, float] | None = None
    below: float | None = None
    above: float | None = None
    trend: Literal["", "falls", "rises"] = ""
    peak: Any = None
    """Rises up to this point, then falls."""
    valley: Any = None
    """Falls down to this point, then rises."""
    alike: float | None = None
    """No two points differ by more than this share of the larger; of shares, if one is above 0.9, of what is
    missing to 1.
    """
    fits: Literal["", "log", "exponential"] = ""
    """The points rise on a line over the axis' logarithm, or their logarithms fall on a line over the axis:
    R² is at least `FIT`.
    """
    beside: Literal[True] | None = None
    """Not judged: numbers of ours that help to read the others."""

    @property
    def judgement(self) -> str:
        """By which of the ways this is judged; nothing if by none or by several."""
        given = [way for way in JUDGEMENTS if getattr(self, way) not in (None, "")]
        return given[0] if len(given) == 1 else ""


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One claim of a paper, in our words."""

    id: str
    at: str
    """Section, figure or table."""
    says: str
    cases: tuple[Case, ...] = ()
    better: Literal["", "lower", "higher"] = ""
    data: str = ""
    """On which data ours is measured, if not on the paper's own."""
    cannot: str = ""
    """Why it cannot be tested here."""
    why: str = ""
    """What is known of why ours differs."""
    choices: tuple[str, ...] = ()
    """Choices of ours, made after numbers were seen, that this depends on."""

    @property
    def studies(self) -> set[str]:
        """All whose rows it is judged on."""
        rows = [rows for case in self.cases for rows in (case, case.against)]
        return {one.study for one in rows if one and one.study}


class Choice(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the paper leaves open and we decided after seeing numbers."""

    name: str
    what: str
    otherwise: str
    """What comes out with the other decision, as far as it was measured."""


class Paper(msgspec.Struct, frozen=True, kw_only=True):
    """All claims of one paper."""

    name: str
    title: str
    summary: str = ""
    """What does not hold, and mainly why, in one sentence."""
    claims: tuple[Claim, ...]
    checks: tuple[Claim, ...]
    """Ours: what must be so for the figures to mean anything. They never count."""
    choices: tuple[Choice, ...]


def load_papers(names: Iterable[str] = PAPERS) -> list[Paper]:
    return [
        parse(name, (files("topicweave.papers") / name / "claims.toml").read_text("utf-8")) for name in names
    ]


def parse(name: str, source: str) -> Paper:
    """A file of claims, checked."""
    try:
        told = tomllib.loads(source)
        claims, checks = (tuple(_claim(one) for one in told.get(kind, ())) for kind in ("claim", "check"))
        choices = tuple(msgspec.convert(one, Choice) for one in told.get("choice", ()))
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadInput(f"claims of {name}: {error}") from error
    paper = Paper(
        name=name,
        title=told["title"],
        summary=told.get("summary", ""),
        claims=claims,
        checks=checks,
        choices=choices,
    )
    _check(paper)
    return paper


def _claim(told: Mapping[str, Any]) -> Claim:
    """What stands beside the cases is common to them; what differs stands in them."""
    common = {key: value for key, value in told.items() if key in Case.__struct_fields__}
    own = {key: value for key, value in told.items() if key not in common and key != "cases"}
    cases = [
        {**common, **case, "where": {**common.get("where", {}), **case.get("where", {})}}
        for case in told.get("cases", [{}] if common else [])
    ]
    try:
        return msgspec.convert({**own, "cases": cases}, Claim)
    except msgspec.ValidationError as error:
        raise msgspec.ValidationError(f"{told.get('id')}: {error}") from error


def _check(paper: Paper) -> None:
    everything = [*paper.claims, *paper.checks]
    names = [claim.id for claim in everything]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BadInput(f"claims of {paper.name}: {twice[0]!r} is the id of two claims")
    known = {choice.name for choice in paper.choices}
    for claim in everything:
        if bool(claim.cases) == bool(claim.cannot):
            raise BadInput(f"claim {claim.id}: say either what is measured for it or why it cannot be tested")
        for case in claim.cases:
            if not case.judgement:
                raise BadInput(f"claim {claim.id}: judge it by one of {', '.join(JUDGEMENTS)}")
            if not (case.study and case.measure):
                raise BadInput(f"claim {claim.id}: name its study and measure")
        if claim.cases and all(case.beside for case in claim.cases):
            raise BadInput(f"claim {claim.id}: judge one case at least")
        unknown = set(claim.choices) - known
        if unknown:
            raise BadInput(f"claim {claim.id}: no choice is named {sorted(unknown)[0]!r}")
