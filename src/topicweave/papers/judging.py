"""Whether a claim holds on the results at hand."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import correlation
from typing import Any, Literal, NamedTuple

import msgspec

from topicweave.errors import BadInput
from topicweave.measures.intervals import half_width, mean
from topicweave.papers.claims import FIT, Case, Claim
from topicweave.papers.results import REPLICATIONS, Number, text

State = Literal["holds", "seems to hold", "does not hold", "cannot be tested here", "not run yet"]
STATES: tuple[State, ...] = (
    "holds",
    "seems to hold",
    "does not hold",
    "cannot be tested here",
    "not run yet",
)
TRENDS = ("trend", "peak", "valley", "fits")
"""Judgements that chance can bring about: they hold with `ENOUGH` seeds, and with fewer seem to."""
ENOUGH = 3


class Value(NamedTuple):
    """What was measured at one point, over its replications."""

    at: str
    mean: float
    interval: float | None
    """Half of the 95 % confidence interval; None below three replications."""
    seeds: int
    each: Mapping[tuple[int, str], float]
    """By seed and sample, to be set beside another point's with the same."""


class Judged(msgspec.Struct, frozen=True):
    """One case of a claim beside what was measured."""

    name: str
    paper: str
    ours: str
    holds: bool
    miss: str
    """How it misses; empty if it holds."""
    beside: bool = False
    """Only shown beside the others."""
    points: tuple[str, ...] = ()
    """Where on a curve the numbers are, and what its axis is called."""
    axis: str = ""
    values: tuple[float, ...] = ()


class ClaimVerdict(msgspec.Struct, frozen=True):
    """What became of a claim."""

    claim: Claim
    state: State
    judged: tuple[Judged, ...] = ()
    seeds: tuple[int, ...] = ()
    levels: tuple[str, ...] = ()
    physics: tuple[str, ...] = ()
    """In which worlds, as far as it was recorded."""
    days: tuple[str, ...] = ()
    """When the numbers were made."""


def judge(claim: Claim, numbers: Sequence[Number]) -> ClaimVerdict:
    """All cases must hold; a claim of which only a part was run, and holds so far, is not run yet. A trend
    that shows with too few seeds only seems to hold.
    """
    if claim.cannot:
        return ClaimVerdict(claim, "cannot be tested here")
    judged, used, found = [], list[Number](), []
    for case in claim.cases:
        rows, values = _measured(claim, case, numbers)
        if values:
            judged.append(_judge(case, values, claim.better))
            used += rows
            found.append((case, values))
    whole = bool(claim.cases) and len(judged) == len(claim.cases)
    missed = any(not one.holds for one in judged)
    few = any(case.judgement in TRENDS and value.seeds < ENOUGH for case, values in found for value in values)
    state: State = "seems to hold" if few else "holds"
    if missed or not whole:
        state = "does not hold" if missed else "not run yet"
    seeds = tuple(sorted({value.seeds for _, values in found for value in values}))
    return ClaimVerdict(
        claim,
        state,
        tuple(judged),
        seeds,
        tuple(sorted({row.level for row in used})),
        tuple(sorted({row.physics for row in used if row.physics})),
        tuple(sorted({row.made for row in used if row.made})),
    )


def _select(
    case: Case, study: str, measure: str, where: Mapping[str, Any], part: int, numbers: Iterable[Number]
) -> list[Number]:
    needed = {
        name: [text(one) for one in (value if isinstance(value, list) else [value])]
        for name, value in where.items()
    }
    found = []
    for number in numbers:
        if (number.study, number.measure) != (study, measure) or (case.by != "part" and number.part != part):
            continue
        point = number.point()
        if all(point.get(name, "") in values for name, values in needed.items()):
            found.append(number)
    return found


def _points(claim: Claim, case: Case, rows: Iterable[Number]) -> dict[str, Value]:
    """Means over replications along an axis. Rows that differ in anything else are no replications of each other."""
    by_point: dict[str, list[Number]] = {}
    for row in rows:
        by_point.setdefault(_place(case, row), []).append(row)
    return {at: _value(claim, case.by, at, mine) for at, mine in by_point.items()}


def _place(case: Case, row: Number) -> str:
    """Where a row stands on the axis of a curve; nothing where there is none, or the row is not on it."""
    if case.by == "part":
        return text(case.labels[row.part - 1]) if case.labels else str(row.part)
    return str(row.seed) if case.by == "seed" else row.point().get(case.by, "")


def _value(claim: Claim, axis: str, at: str, rows: Sequence[Number]) -> Value:
    left_out = {*REPLICATIONS, axis}
    others = {
        tuple((name, value) for name, value in row.point().items() if name not in left_out)
        + ((row.part,) if axis != "part" else ())
        for row in rows
    }
    if len(others) > 1:
        listed = "; ".join(sorted(map(str, others))[:2])
        raise BadInput(f"claim {claim.id}: its rows at {at or 'its point'} are not of one place: {listed}")
    each = {(row.seed, row.point().get("sample", "")): row.value for row in rows}
    seeds = sum(row.seeds for row in rows)
    if len(rows) == 1:
        return Value(at, rows[0].value, rows[0].interval, seeds, each)
    return Value(at, mean(list(each.values())), _interval(each.values()), seeds, each)


def _interval(values: Iterable[float]) -> float | None:
    known = list(values)
    return half_width(known) if len(known) >= 3 else None


def _size(at: str) -> float:
    try:
        return float(at)
    except ValueError:
        return math.inf


def _measured(claim: Claim, case: Case, numbers: Sequence[Number]) -> tuple[list[Number], list[Value]]:
    """What came out along the axis, and the rows that this is made of; nothing if points are missing."""
    wanted = [text(one) for one in case.points or (case.paper if isinstance(case.paper, dict) else ())]

    def selected(study: str, measure: str, where: Mapping[str, Any], part: int) -> list[Number]:
        rows = _select(case, study, measure, where, part, numbers)
        return [
            row
            for row in rows
            if (_place(case, row) in wanted if wanted else _place(case, row) or not case.by)
        ]

    rows = selected(case.study, case.measure, case.where, case.part)
    points = _points(claim, case, rows)
    if case.against is not None:
        other = case.against
        beside = selected(
            other.study or case.study,
            other.measure or case.measure,
            {**case.where, **other.where},
            case.part if other.part is None else other.part,
        )
        others = _points(claim, case, beside)
        points = {
            at: _set_against(value, others[at], case.how) for at, value in points.items() if at in others
        }
        rows += beside
    if any(at not in points for at in wanted):
        return [], []  # a curve is judged at all its points
    order = wanted or [text(one) for one in case.labels]
    ordered = [at for at in order if at in points] or sorted(points, key=lambda at: (_size(at), at))
    values = [points[at] for at in ordered]
    used = [row for row in rows if _place(case, row) in ordered]
    if case.reduce and values:
        means = [value.mean for value in values]
        one = mean(means) if case.reduce == "mean" else max(means) if case.reduce == "max" else min(means)
        values = [Value("", one, None, min(value.seeds for value in values), {})]
    return used, values


def _set_against(mine: Value, other: Value, how: str) -> Value:
    """Seed by seed where both have the same ones."""
    common = mine.each.keys() & other.each.keys()
    each = {name: _made(mine.each[name], other.each[name], how) for name in sorted(common)}
    interval = _interval(each.values())
    if interval is None and mine.interval is not None and other.interval is not None:
        a, b = mine.mean, other.mean
        interval = math.hypot(mine.interval, other.interval)
        if how not in ("difference", "gap"):
            interval = abs(a / b) * math.hypot(mine.interval / a if a else 0.0, other.interval / b)
    made = mean(list(each.values())) if each else _made(mine.mean, other.mean, how)
    return Value(mine.at, made, interval, min(mine.seeds, other.seeds), each)


def _made(a: float, b: float, how: str) -> float:
    if how in ("difference", "gap"):
        return abs(a - b) if how == "gap" else a - b
    if b == 0 or (a == 0 and how == "factor"):
        return math.nan
    if how == "factor":
        return max(a / b, b / a)
    return {"ratio": a / b, "less by": 1 - a / b, "more by": a / b - 1}[how]


def _judge(case: Case, values: list[Value], better: str) -> Judged:
    wanted, misses = _JUDGES[case.judgement](case, values, better)
    points = tuple(value.at for value in values) if len(values) > 1 else ()
    axis = case.axis if case.by == "part" else case.by
    return Judged(
        case.name,
        wanted,
        _listed(values),
        not misses,
        misses,
        bool(case.beside),
        points,
        _words(axis) if points else "",
        tuple(value.mean for value in values),
    )


def _words(axis: str) -> str:
    """
    >>> _words("table_size"), _words("b_p")
    ('table size', 'b_p')
    """
    return re.sub(r"(?<=\w\w)_(?=\w\w)", " ", axis)


def _beside(_case: Case, _values: list[Value], _better: str) -> tuple[str, str]:
    return "", ""


def _close(case: Case, values: list[Value], better: str) -> tuple[str, str]:
    papers = case.paper if isinstance(case.paper, dict) else {value.at: case.paper for value in values}
    named = {text(at): paper for at, paper in papers.items()}
    misses = []
    for value in values:
        paper = named[value.at]
        assert paper is not None
        if not is_close(value.mean, paper, case.within, case.zero):
            beside = f" at {value.at}" if len(values) > 1 else ""
            misses.append(f"{_sense(value.mean, paper, better)}{beside}")
    shown = ", ".join(
        short(paper)
        for paper in (named.values() if isinstance(case.paper, dict) else [case.paper])
        if paper is not None
    )
    return shown, "; ".join(misses)


def is_close(ours: float, paper: float, within: float, zero: float) -> bool:
    """Two-sided; shares of which either is above 0.9 by what is missing to 1; 0, and 1 of a share, by an
    absolute bound.

    >>> is_close(0.93, 0.91, 0.15, 0), is_close(0.92, 0.91, 0.15, 0), is_close(0.001, 0, 0.15, 0.01)
    (False, True, True)
    >>> is_close(0.97, 0.87, 0.15, 0), is_close(0.89, 0.87, 0.15, 0)
    (False, True)
    """
    if paper == 0 or (paper == 1 and zero):
        allowed = zero
    elif 0 < paper < 1 and max(paper, ours) > 0.9 and (ours <= 1 or paper > 0.9):
        allowed = within * (1 - paper)
    else:
        allowed = within * abs(paper)
    return abs(ours - paper) <= allowed + 1e-12


def _sense(ours: float, paper: float, better: str) -> str:
    if math.isnan(ours):
        return "no number"
    side = "higher" if ours > paper else "lower"
    return f"{'better' if side == better else 'worse'} ({side})" if better else side


def _between(case: Case, values: list[Value], better: str) -> tuple[str, str]:
    low = case.range[0] if case.range else case.above
    high = case.range[1] if case.range else case.below
    misses = []
    for value in values:
        beside = f" at {value.at}" if len(values) > 1 else ""
        if low is not None and not value.mean >= low:
            misses.append(f"{_sense(value.mean, low, better)}{beside}")
        elif high is not None and not value.mean <= high:
            misses.append(f"{_sense(value.mean, high, better)}{beside}")
    if low is not None and high is not None:
        return f"{short(low)} to {short(high)}", "; ".join(misses)
    return f"at most {short(high)}" if high is not None else f"at least {short(low or 0.0)}", "; ".join(
        misses
    )


def _trend(case: Case, values: list[Value], better: str) -> tuple[str, str]:
    sign = -1.0 if case.trend == "falls" else 1.0
    if not case.axis and any(_size(value.at) == math.inf for value in values):
        return f"{case.trend} from {' to '.join(value.at for value in values)}", _against_trend(values, sign)
    return f"{case.trend} with {_words(case.axis or case.by)}", _against_trend(values, sign)


def _against_trend(values: list[Value], sign: float) -> str:
    """Where a trend is broken: with intervals, by more than these; with one seed, at all."""
    if len(values) < 2:
        return "one point makes no trend"
    for earlier, later in pairwise(values):
        step, noise = _step(earlier, later, sign)
        if step < -noise or (step <= 0 and not noise):
            return f"not from {earlier.at} to {later.at}"
    step, noise = _step(values[0], values[-1], sign)
    return "" if step > noise else "not by more than the intervals"


def _step(earlier: Value, later: Value, sign: float) -> tuple[float, float]:
    """How far it goes, and what of that may be chance: nothing is known of that below three replications."""
    change = _set_against(later, earlier, "difference")
    return sign * change.mean, change.interval or 0.0


def _turn(case: Case, values: list[Value], better: str) -> tuple[str, str]:
    at, sign = (text(case.peak), 1.0) if case.peak is not None else (text(case.valley), -1.0)
    turn = next((place for place, value in enumerate(values) if value.at == at), None)
    wanted = f"rises up to {at}, then falls" if sign > 0 else f"falls down to {at}, then rises"
    if turn is None:
        return wanted, f"nothing at {at}"
    return wanted, _against_trend(values[: turn + 1], sign) or _against_trend(values[turn:], -sign)


def _alike(case: Case, values: list[Value], better: str) -> tuple[str, str]:
    low, high = min(value.mean for value in values), max(value.mean for value in values)
    share, told = case.alike or 0.0, f"the same within {case.alike or 0.0:.0%}"
    if 0 <= low <= 1 and 0.9 < high <= 1:  # shares: by what is missing
        low, high, told = 1 - high, 1 - low, f"{told} of what is missing to 1"
    return told, "" if high - low <= share * abs(high) else f"differ by {1 - low / high:.0%}"


def _fits(case: Case, values: list[Value], better: str) -> tuple[str, str]:
    """Whether the values grow along a line over log x, or their logarithms fall along one over x; at three
    points and more.
    """
    decays, axis = case.fits == "exponential", _words(case.axis or case.by)
    wanted = f"falls exponentially with {axis}" if decays else f"grows with log({axis})"
    if len(values) < 3:
        return wanted, f"{len(values)} points make no line"
    if decays and min(value.mean for value in values) <= 0:
        return wanted, "is 0 somewhere"
    scales = (float, math.log) if decays else (math.log, float)
    xs = [scales[0](_size(value.at)) for value in values]
    ys = [scales[1](value.mean) for value in values]
    sign = -1 if decays else 1
    if max(ys) == min(ys) or sign * correlation(xs, ys) <= 0:
        return wanted, "does not fall" if decays else "does not grow"
    explained = correlation(xs, ys) ** 2
    return wanted, "" if explained >= FIT else f"R² is {short(explained)}"


_JUDGES: dict[str, Callable[[Case, list[Value], str], tuple[str, str]]] = {
    "paper": _close,
    "range": _between,
    "below": _between,
    "above": _between,
    "trend": _trend,
    "peak": _turn,
    "valley": _turn,
    "alike": _alike,
    "fits": _fits,
    "beside": _beside,
}


def _listed(values: Sequence[Value]) -> str:
    """Up to ten values; of more, the ends."""
    shown = [shown_value(value) for value in values]
    return ", ".join(shown) if len(shown) <= 10 else f"{shown[0]} … {shown[-1]} ({len(shown)} points)"


def shown_value(value: Value) -> str:
    return short(value.mean) + (f" ± {short(float(f'{value.interval:.1g}'))}" if value.interval else "")


def short(number: float) -> str:
    """
    >>> short(0.004219), short(1112.6), short(3.0), short(0.99963)
    ('0.00422', '1113', '3', '0.9996')
    """
    if abs(number) >= 1000:
        return f"{number:.0f}"
    return f"{number:.4g}" if 0.99 < number < 1 else f"{number:.3g}"
