"""The scoreboard as a page to read."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence

from topicweave.papers.judging import STATES, ClaimVerdict, Judged, short
from topicweave.papers.results import Number
from topicweave.papers.scoreboard import PaperBoard
from topicweave.papers.smoke import Check

_SIGNS = {
    "holds": "✓",
    "seems to hold": "(✓) too few seeds.",
    "does not hold": "✗",
    "cannot be tested here": "–",
    "not run yet": "…",
}
WIDTH = 119
"""Of a line of prose."""
LONG = 800
"""Characters of a row from which on numbers are left out that the list of all has (`scoreboard.json`)."""
ROOM_FOR_OTHERS = 100
COUNTED = frozenset({"nodes", "topics", "friends", "subscribers", "feeds", "samples", "others"})
"""Axes whose names follow a number."""
_INTRODUCTION = """\
This page lists every claim of the five papers, in our words, beside what came out here, and says whether it
holds. `topicweave scoreboard` writes it from the [results](results)."""
_LEGEND = """\
✓ holds; (✓) seems to hold: a trend that shows, with fewer than three seeds; ✗ does not hold, with the miss;
– cannot be tested here; … has not been run. A number holds within 15 % of the paper's; all rules are in
[how a claim is judged](reproducing.md#how-a-claim-is-judged). A miss that is *better* is to the reader's good
(fewer links, less overhead, sooner) and a miss all the same: the paper's number did not come out."""


def markdown(boards: Sequence[PaperBoard], checks: Mapping[str, Check]) -> str:
    """The headline, what it rests on, and all claims of all papers; `checks`: how far it stands with later
    code, by study.
    """
    lines = ["# The papers' claims beside ours", "", _INTRODUCTION, "", *_headline(boards), ""]
    for board in boards:
        if board.paper.summary:
            lines += _wrapped(f"- **{board.paper.title}.** {board.paper.summary}")
    lines += ["", _LEGEND, ""]
    for board in boards:
        lines += [f"## {board.paper.title}", "", *_table(board.verdicts), "", *_reasons(board.verdicts)]
        lines += _choices(board)
        if board.checks:
            lines += ["Our own checks, which do not count:", "", *_table(board.checks), ""]
            lines += _reasons(board.checks)
        lines += ["Where the numbers come from:", "", *_origins(board, checks), ""]
    return "\n".join(lines).rstrip() + "\n"


def _headline(boards: Sequence[PaperBoard]) -> Iterator[str]:
    yield from _rows(("paper", "claims", *STATES), [])
    for board in boards:
        yield _row((board.paper.name, *board.headline().values()))
    if len(boards) > 1:
        sums = (sum(column) for column in zip(*(board.headline().values() for board in boards), strict=True))
        yield _row(("all", *sums))


def _origins(board: PaperBoard, checks: Mapping[str, Check]) -> Iterator[str]:
    """Where the numbers come from: how old they are, by which code they were made, in which world."""
    headings = ("study", "numbers", "seeds", "made on", "by code", "later code at smoke scale")
    yield from _rows((*headings, "latency, loss, membership"), [])
    by_study: dict[str, list[Number]] = {}
    for number in board.numbers:
        by_study.setdefault(number.study, []).append(number)
    for study, numbers in sorted(by_study.items()):
        codes = _listed(number.code for number in numbers)
        cells = (
            study,
            len(numbers),
            ", ".join(map(str, sorted({number.seed for number in numbers}))),
            _listed(number.made for number in numbers),
            codes,
            _later(codes, checks.get(study)),
            _listed(number.physics or "not recorded" for number in numbers),
        )
        yield _row(cells)


def _later(codes: str, check: Check | None) -> str:
    """What came out of other code, and of which."""
    if check is None or check.code != codes:
        return "not checked"
    return check.told if check.verdict == "same code" else f"{check.told} ({check.here}, {check.made})"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(set(names)))


def _table(verdicts: Sequence[ClaimVerdict]) -> Iterator[str]:
    yield from _rows(("claim", "paper", "ours", "seeds", "level", "verdict"), map(_cells, verdicts))


def _cells(verdict: ClaimVerdict) -> tuple[str, ...]:
    claim = verdict.claim
    data = f" On {claim.data}." if claim.data else ""
    choices = f" *Our choice: {', '.join(claim.choices)}.*" if claim.choices else ""
    cells = (
        f"**{claim.id}** ({claim.at}) {claim.says}{data}{choices}",
        "<br>".join(_papers(verdict.judged)),
        "",
        _seeds(verdict.seeds),
        ", ".join(verdict.levels),
        _remark(verdict),
    )
    room = LONG - sum(map(len, cells)) - 3 * len(cells)
    ours = "<br>".join(_ours(verdict.judged))
    if len(ours) > room:
        ours = "<br>".join(_in_short(verdict.judged, room))
    return (*cells[:2], ours, *cells[3:])


def _papers(judged: Sequence[Judged]) -> Iterator[str]:
    """What the paper has, each once, and for which settings if that differs."""
    settings: dict[str, list[str]] = {}
    for one in judged:
        if not one.beside:
            settings.setdefault(one.paper, []).append(one.name)
    for paper, names in settings.items():
        named = list(dict.fromkeys(filter(None, names)))
        if len(settings) == 1 or not named:
            yield paper
        else:
            yield f"{'; '.join(named) if len(named) <= 2 else f'{named[0]} … {named[-1]}'}: {paper}"


def _ours(judged: Sequence[Judged]) -> Iterator[str]:
    """One line per setting; where on the curve the numbers are stands above them if all have the same points."""
    where = {_where(one) for one in judged}
    once = where.pop() if len(where) == 1 else ""
    if once:
        yield f"*{once}*"
    yield from (_line(one, judged, points=not once) for one in judged)


def _line(one: Judged, judged: Sequence[Judged], points: bool) -> str:
    several = len(judged) > 1
    where = _where(one) if points else ""
    name = f"{one.name if several else ''}{f' *({where})*' if where else ''}".strip()
    return f"{name}: {one.ours}".removeprefix(": ") + (" ✗" if several and not one.holds else "")


def _in_short(judged: Sequence[Judged], room: int) -> Iterator[str]:
    """The misses, as many as there is room for, and of the others from where to where their numbers go."""
    told: list[Judged] = []
    room -= ROOM_FOR_OTHERS
    for one in judged:
        length = len(_line(one, judged, points=True)) + len("<br>")
        if not one.holds and (length <= room or not told):
            told.append(one)
            room -= length
    where = {_where(one) for one in told}
    once = where.pop() if len(where) == 1 else ""
    if once:
        yield f"*{once}*"
    yield from (_line(one, judged, points=not once) for one in told)
    groups: dict[tuple[str, str], list[Judged]] = {}
    for one in judged:
        if one not in told:
            kind = "shown beside" if one.beside else "that hold" if one.holds else "more misses ✗"
            groups.setdefault((kind, "" if one.beside else one.paper), []).append(one)
    kinds = [kind for kind, _ in groups]
    for (kind, paper), rest in groups.items():
        other = "the other " if told and kind == "that hold" and kinds.count(kind) == 1 else ""
        which = f" ({paper})" if kinds.count(kind) > 1 else ""
        if len(rest) == len(judged):
            other, kind = "all ", kind.removeprefix("that ")
        values = [value for one in rest for value in one.values]
        yield f"{other}{len(rest)} {kind}{which}: from {short(min(values))} to {short(max(values))}"


def _where(one: Judged) -> str:
    """
    >>> _where(Judged("", "", "", True, "", points=("1000", "2000", "10000"), axis="nodes"))
    '1,000, 2,000, 10,000 nodes'
    >>> _where(Judged("", "", "", True, "", points=("15", "20", "25", "30"), axis="table size"))
    'table size 15 … 30'
    >>> _where(Judged("", "", "", True, "", points=("random", "high"), axis="workload"))
    'random, high'
    """
    if not one.points:
        return ""
    try:
        numbers = [float(point) for point in one.points]
    except ValueError:
        between = "; " if any(", " in point for point in one.points) else ", "
        return between.join(one.points) if len(one.points) <= 6 else f"{one.points[0]} … {one.points[-1]}"
    told = [f"{number:,.10g}" for number in numbers]
    listed = ", ".join(told) if len(told) <= 3 else f"{told[0]} … {told[-1]}"
    axis = {"from": "from second"}.get(one.axis, one.axis)
    return f"{listed} {axis}" if axis in COUNTED else f"{axis} {listed}".strip()


def _seeds(counts: Sequence[int]) -> str:
    """
    >>> _seeds([1]), _seeds([1, 2, 3]), _seeds([3])
    ('one seed', '1 to 3', '3')
    """
    if not counts:
        return ""
    least, most = counts[0], counts[-1]
    return f"{least} to {most}" if least < most else "one seed" if most == 1 else str(most)


def _remark(verdict: ClaimVerdict) -> str:
    said = [_SIGNS[verdict.state]]
    missed = [one for one in verdict.judged if not one.holds]
    if missed:
        said.append(f"{_misses([one.miss for one in missed])}.")
    settings = sum(not one.beside for one in verdict.judged)
    if 0 < len(missed) < settings:
        said.append(f"Holds in {settings - len(missed)} of {settings} settings.")
    if verdict.state == "not run yet" and verdict.claim.cases:
        said.append("Only in part." if verdict.judged else "The study is there.")
    return " ".join(said)


def _reasons(verdicts: Iterable[ClaimVerdict]) -> Iterator[str]:
    """Why claims do not hold or cannot be tested, as far as it is known."""
    told = []
    for verdict in verdicts:
        why = verdict.claim.cannot or (verdict.claim.why if verdict.state == "does not hold" else "")
        if why:
            told += _wrapped(f"- `{verdict.claim.id}`: {why}")
    if told:
        yield from ("Why not, as far as it is known:", "", *told, "")


def _wrapped(item: str) -> list[str]:
    return textwrap.wrap(item, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _misses(misses: Sequence[str]) -> str:
    """The ways in which cases miss, each once; by point only if there are few."""
    ways = list(dict.fromkeys(part.split(" at ")[0] for miss in misses for part in miss.split("; ")))
    points = list(dict.fromkeys(part for miss in misses for part in miss.split("; ")))
    told = "; ".join(points if len(points) <= 3 else ways)
    return re.sub(r"\b\d{4,}\b", lambda number: f"{int(number[0]):,}", told)


def _choices(board: PaperBoard) -> Iterator[str]:
    """What was decided after numbers were seen, and which claims that touches."""
    for choice in board.paper.choices:
        touched = [verdict.claim.id for verdict in board.verdicts if choice.name in verdict.claim.choices]
        said = f"- **Choice: {choice.name}.** {choice.what} Otherwise: {choice.otherwise} Touches {', '.join(touched)}."
        yield from _wrapped(said)
    if board.paper.choices:
        yield ""


def _rows(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    yield _row(headings)
    yield "|" + "---|" * len(headings)
    yield from (_row(cells) for cells in rows)


def _row(cells: Sequence[object]) -> str:
    return f"| {' | '.join(str(cell).replace('|', '/').replace(chr(10), ' ') for cell in cells)} |"
