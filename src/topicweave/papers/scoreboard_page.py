"""The scoreboard as a page to read."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence

from topicweave.papers.judging import STATES, ClaimVerdict
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
_LEGEND = """\
This page lists every claim of the five papers, the number that we got, and whether the claim holds.
`topicweave scoreboard` writes it. All numbers come from the [results](results), which `topicweave reproduce`
continues. Claims are in `src/topicweave/papers/*/claims.toml`, each once and in our words, with our choices
and with what is known about a miss. These words are written by hand.

How a claim is judged:

- A claim on a curve is one claim, judged at all its points. A claim in several settings holds only if it
  holds in all of them.
- A number holds if it is within 15 % of the paper's. For a share that is above 0.9 on either side that is 15 %
  of what is missing to 1; zero has a bound of its own. If the paper gives a range or a bound, that counts
  instead. "The same" is within 15 %, too, and if either is above 0.9 by what is missing to 1.
- A trend must show at every step. From three seeds on, a step back within the 95 % intervals is forgiven, and
  the whole way must be longer than they are. With fewer seeds nothing is known of chance: such a trend only
  seems to hold, and is counted by itself. The column *seeds* says how many there are (samples of a graph count
  as seeds).
- "Grows with log(x)" holds if a line over log(x) explains 95 % of the variance.

✓ holds; (✓) seems to hold: a trend that shows, with fewer than three seeds; ✗ does not hold, with the miss;
– cannot be tested here, with the reason; … has not been run.

*Level* says how the runs were made: `messages`, every message simulated; `bulk`, whole networks as arrays;
`data`, no network at all. Numbers of 2026-11-15 are of version 0.1.0. The last table of each paper says which
code made the numbers of each study, and in which world.

*Later code at smoke scale*: most results come from other code than the present. For each such study
`topicweave reproduce --check` ran the smoke scale with the present code, whose fingerprint and day are in
brackets, and compared it with what the results' code gives there. "The same" means that small runs give the
same numbers (they differ by at most a millionth). It does not prove that paper scale does, because large runs
may take other branches of the code. If numbers differ, the study has to run again. "Not measured here": the
study has other rows with the present code. Processor times differ with every run and are not compared."""


def markdown(boards: Sequence[PaperBoard], checks: Mapping[str, Check]) -> str:
    """The headline, what it rests on, and all claims of all papers; `checks`: how far it stands with later
    code, by study.
    """
    lines = [
        "# The papers' claims beside ours",
        "",
        _LEGEND,
        "",
        *_headline(boards),
        "",
    ]
    for board in boards:
        lines += [f"## {board.paper.title}", "", *_table(board.verdicts), ""]
        lines += _choices(board)
        if board.checks:
            lines += ["Our own checks, which do not count:", "", *_table(board.checks), ""]
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
    yield from _rows(("claim", "paper", "ours", "seeds", "level, day", "verdict"), map(_cells, verdicts))


def _cells(verdict: ClaimVerdict) -> tuple[str, ...]:
    claim = verdict.claim
    data = f" On {claim.data}." if claim.data else ""
    papers = list(dict.fromkeys(one.paper for one in verdict.judged if not one.beside))
    several = len(verdict.judged) > 1
    named = [f"{one.name}: " if several and one.name else "" for one in verdict.judged]
    same = len(papers) == 1
    return (
        f"**{claim.id}** ({claim.at}) {claim.says}{data}",
        papers[0]
        if same
        else "<br>".join(
            name + one.paper for name, one in zip(named, verdict.judged, strict=True) if not one.beside
        ),
        "<br>".join(
            name + one.ours + (" ✗" if several and not one.holds else "")
            for name, one in zip(named, verdict.judged, strict=True)
        ),
        _seeds(verdict.seeds),
        "<br>".join((", ".join(verdict.levels), *verdict.days)),
        _remark(verdict),
    )


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
    claim = verdict.claim
    said = [_SIGNS[verdict.state]]
    missed = [one for one in verdict.judged if not one.holds]
    if missed:
        said.append(f"{_misses([one.miss for one in missed])}.")
    settings = sum(not one.beside for one in verdict.judged)
    if 0 < len(missed) < settings:
        said.append(f"Holds in {settings - len(missed)} of {settings} settings.")
    if verdict.state == "not run yet" and claim.cases:
        said.append("Only in part." if verdict.judged else "The study is there.")
    if claim.cannot:
        said.append(claim.cannot)
    if missed and claim.why:
        said.append(claim.why)
    if claim.choices:
        said.append(f"Our choice: {', '.join(claim.choices)}.")
    return " ".join(said)


def _misses(misses: Sequence[str]) -> str:
    """The ways in which cases miss, each once; by point only if there are few."""
    ways = list(dict.fromkeys(part.split(" at ")[0] for miss in misses for part in miss.split("; ")))
    points = list(dict.fromkeys(part for miss in misses for part in miss.split("; ")))
    return "; ".join(points if len(points) <= 3 else ways)


def _choices(board: PaperBoard) -> Iterator[str]:
    """What was decided after numbers were seen, and which claims that touches."""
    for choice in board.paper.choices:
        touched = [verdict.claim.id for verdict in board.verdicts if choice.name in verdict.claim.choices]
        said = f"- **Choice: {choice.name}.** {choice.what} Otherwise: {choice.otherwise} Touches {', '.join(touched)}."
        yield from textwrap.wrap(
            said, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
    if board.paper.choices:
        yield ""


def _rows(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    yield _row(headings)
    yield "|" + "---|" * len(headings)
    yield from (_row(cells) for cells in rows)


def _row(cells: Sequence[object]) -> str:
    return f"| {' | '.join(str(cell).replace('|', '/').replace(chr(10), ' ') for cell in cells)} |"
