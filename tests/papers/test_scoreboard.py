"""Results as data, claims judged on them, and the page that shows both."""

from __future__ import annotations

import csv
import itertools
import math
import re
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from topicweave.errors import BadInput
from topicweave.papers import STUDIES
from topicweave.papers.claims import Case, Claim, Paper, load_papers, parse
from topicweave.papers.judging import ClaimVerdict, judge, short
from topicweave.papers.physics import physics, world_of
from topicweave.papers.results import Batch, Number, add_results, as_numbers, merged, read_results, text
from topicweave.papers.scoreboard import PaperBoard, scoreboard
from topicweave.papers.scoreboard_page import markdown
from topicweave.papers.smoke import read_checks
from topicweave.papers.study import Row
from topicweave.runs.sources import GeneratedWorkload
from topicweave.runs.trial import Trial

DOCS = Path(__file__).parents[2] / "docs"
BATCH = Batch("paper/fig1", "paper", 0, "messages", 1, "c0de", "2026-01-01")


def claim(judgement: str, **changed: str) -> Claim:
    lines = {"study": "paper/fig1", "measure": "degree", **changed}
    told = "\n".join(f'{name} = "{value}"' for name, value in lines.items())
    source = f'title = "P"\n[[claim]]\nid = "one"\nat = "§1"\nsays = "So it is."\n{told}\n{judgement}'
    return parse("paper", source).claims[0]


def numbers(*points: tuple[dict[str, Any], float | str], seed: int = 0) -> list[Number]:
    batch = Batch("paper/fig1", "paper", seed, "messages")
    return as_numbers(batch, [Row(where, "degree", None, value) for where, value in points])


def state(verdict: ClaimVerdict) -> tuple[str, str]:
    return verdict.state, "; ".join(one.miss for one in verdict.judged)


# Results.


def test_two_numbers_of_one_place_and_seed_are_never_averaged() -> None:
    same = [Row({"nodes": 10}, "share", None, 0.028), Row({"nodes": 10}, "share", None, 0.0042)]
    with pytest.raises(BadInput, match=r"share at nodes=10 is both 0\.028 and 0\.0042"):
        as_numbers(BATCH, same)
    assert len(as_numbers(BATCH, [same[0], same[0]])) == 1


def test_a_row_in_words_gives_a_number_for_each_of_its_numbers() -> None:
    rows = [
        Row({"nodes": "rising"}, "degree", None, "10.8, -2, 3e+01"),
        Row({}, "cost", None, "magnet 380.8, strawman 1112.6"),
        Row({}, "calm", None, "True"),
        Row({}, "words", None, "a few of (3,1)x2"),
    ]
    found = as_numbers(BATCH, rows)
    assert [(one.measure, one.part, one.value) for one in found] == [
        ("degree", 1, 10.8),
        ("degree", 2, -2.0),
        ("degree", 3, 30.0),
        ("cost", 1, 380.8),
        ("cost", 2, 1112.6),
        ("calm", 0, 1.0),
        ("words", 1, 3.0),
        ("words", 2, 1.0),
    ]


def test_levels_samples_and_seeds_of_a_study_are_told() -> None:
    rows = [
        Row({"workload": "facebook 1K, sample 2", "level": "cycles", "alpha": 2.0}, "noise", None, 0.5),
        Row({"workload": "x"}, "saved", None, 0.5, deviation=0.1),
    ]
    batch = Batch("paper/fig1", "paper", 0, "messages", seeds=3)
    first, second = as_numbers(batch, rows)
    assert first.point() == {"workload": "facebook 1K", "alpha": "2", "sample": "2", "level": "bulk"}
    assert (second.level, second.seeds) == ("messages", 3)
    assert second.interval == pytest.approx(0.248, abs=0.001)


def test_files_of_results_are_continued(tmp_path: Path) -> None:
    first = numbers(({"nodes": 10}, 1.0), ({"nodes": 20}, 2.0))
    other = as_numbers(Batch("other/fig2", "paper", 0, "bulk"), [Row({}, "noise", None, 0.25)])
    add_results(tmp_path, first)
    untouched = (tmp_path / "paper.csv").stat().st_mtime_ns
    assert sorted(add_results(tmp_path, other), key=str) == sorted([*first, *other], key=str)
    assert (tmp_path / "paper.csv").stat().st_mtime_ns == untouched
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.csv", "paper.csv"]
    assert sorted(read_results(tmp_path), key=str) == sorted([*first, *other], key=str)
    again = numbers(({"nodes": 10}, 5.0))
    more = numbers(({"nodes": 10}, 7.0), seed=1)
    assert {(one.seed, one.value) for one in merged(read_results(tmp_path), [*again, *more])} == {
        (0, 5.0),
        (1, 7.0),
        (0, 0.25),
    }
    newer = as_numbers(
        Batch("paper/fig1", "paper", 1, "messages", code="new"), [Row({}, "degree", None, 7.0)]
    )
    assert [(one.code, one.value) for one in merged(first, newer)] == [("new", 7.0)]
    (tmp_path / "broken.csv").write_text("study\nx\n")
    with pytest.raises(BadInput, match="no file of results"):
        read_results(tmp_path)


def test_two_seeds_of_a_study_share_no_run() -> None:
    """Else their interval would say more than was measured."""
    for name in ("magnet/fig2", "omen/fig6", "spidercast/fig14", "vitis/fig5"):
        one, two = ({repr(run) for run in STUDIES[name].plan("paper", seed).runs.values()} for seed in (0, 1))
        assert not one & two, name


# Judgements.


@pytest.mark.parametrize(
    ("judgement", "value", "expected"),
    [
        ("paper = 10", 11.4, ("holds", "")),
        ("paper = 10", 8.0, ("does not hold", "lower")),
        ('paper = 10\nbetter = "lower"', 8.0, ("does not hold", "better (lower)")),
        ('paper = 10\nbetter = "lower"', 12.0, ("does not hold", "worse (higher)")),
        ("paper = 0.91", 0.92, ("holds", "")),
        ("paper = 0.91", 0.97, ("does not hold", "higher")),
        ("paper = 0.87", 0.97, ("does not hold", "higher")),
        ("paper = 0.87", 0.89, ("holds", "")),
        ("paper = 0", 0.0, ("holds", "")),
        ("paper = 0", 0.001, ("does not hold", "higher")),
        ("paper = 0\nzero = 0.01", 0.001, ("holds", "")),
        ("paper = 1\nzero = 0.001", 0.9995, ("holds", "")),
        ("paper = 1\nzero = 0.001", 0.99, ("does not hold", "lower")),
        ("range = [2, 4]", 2.0, ("holds", "")),
        ("range = [2, 4]", 1.9, ("does not hold", "lower")),
        ("range = [2, 4]", 4.1, ("does not hold", "higher")),
        ("below = 12", 11.0, ("holds", "")),
        ("below = 12", 13.0, ("does not hold", "higher")),
        ("above = 0.5", 0.4, ("does not hold", "lower")),
        ("paper = 10", float("nan"), ("does not hold", "no number")),
    ],
)
def test_numbers_are_judged_to_both_sides(judgement: str, value: float, expected: tuple[str, str]) -> None:
    assert state(judge(claim(judgement), numbers(({}, value)))) == expected


def test_a_curve_is_one_claim_judged_at_all_its_points() -> None:
    curve = claim("paper = { 10 = 1, 20 = 2 }", by="nodes")
    points = [({"nodes": 20}, 2.1), ({"nodes": 10}, 1.0), ({"nodes": 30}, 9.0)]
    assert state(judge(curve, numbers(*points))) == ("holds", "")
    assert state(judge(curve, numbers(({"nodes": 10}, 1.0), ({"nodes": 20}, 3.0)))) == (
        "does not hold",
        "higher at 20",
    )
    assert judge(curve, numbers(({"nodes": 10}, 1.0))).state == "not run yet"


def test_a_trend_with_one_seed_must_show_at_every_step() -> None:
    falls = claim('trend = "falls"', by="nodes")
    assert (
        judge(falls, numbers(*(({"nodes": n}, v) for n, v in ((1, 3.0), (2, 2.0), (10, 1.0))))).state
        == "seems to hold"
    )
    verdict = judge(falls, numbers(*(({"nodes": n}, v) for n, v in ((1, 3.0), (2, 3.1), (10, 1.0)))))
    assert state(verdict) == ("does not hold", "not from 1 to 2")
    assert verdict.seeds == (1,)


def test_from_three_seeds_on_chance_is_told_from_a_trend() -> None:
    falls = claim('trend = "falls"', by="nodes")

    def seeds(*curves: tuple[float, ...]) -> list[Number]:
        return [
            number
            for seed, curve in enumerate(curves)
            for number in numbers(*(({"nodes": n}, v) for n, v in enumerate(curve)), seed=seed)
        ]

    wavering = seeds((3.0, 3.2, 1.0), (3.0, 2.9, 1.1), (3.0, 3.0, 0.9))
    assert state(judge(falls, wavering)) == ("holds", "")
    assert judge(falls, wavering).seeds == (3,)
    back = seeds((3.0, 3.2, 1.0), (3.0, 3.21, 1.1), (3.0, 3.19, 0.9))
    assert state(judge(falls, back)) == ("does not hold", "not from 0 to 1")
    flat = seeds((3.0, 3.1), (3.0, 2.8), (3.0, 3.0))
    assert state(judge(falls, flat)) == ("does not hold", "not by more than the intervals")


def test_turns_and_sameness() -> None:
    points = [({"nodes": n}, v) for n, v in ((10, 1.0), (15, 2.0), (20, 1.5))]
    assert judge(claim("peak = 15", by="nodes"), numbers(*points)).state == "seems to hold"
    assert state(judge(claim("peak = 20", by="nodes"), numbers(*points))) == (
        "does not hold",
        "not from 15 to 20",
    )
    assert judge(claim("valley = 15", by="nodes"), numbers(*points)).state == "does not hold"
    assert judge(claim("alike = 0.5", by="nodes"), numbers(*points)).state == "holds"
    assert state(judge(claim("alike = 0.15", by="nodes"), numbers(*points))) == (
        "does not hold",
        "differ by 50%",
    )


def test_shares_above_nine_tenths_are_the_same_by_what_is_missing() -> None:
    same = claim("alike = 0.15", by="nodes")
    assert judge(same, numbers(({"nodes": 1}, 0.95), ({"nodes": 2}, 0.953))).state == "holds"
    assert state(judge(same, numbers(({"nodes": 1}, 0.947), ({"nodes": 2}, 0.974)))) == (
        "does not hold",
        "differ by 51%",
    )
    assert judge(same, numbers(({"nodes": 1}, 1.0), ({"nodes": 2}, 1.0))).state == "holds"
    assert state(judge(same, numbers(({"nodes": 1}, 0.88), ({"nodes": 2}, 0.98)))) == (
        "does not hold",
        "differ by 83%",
    )


def test_each_seed_may_be_a_point() -> None:
    each = claim("range = [4, 12]", by="seed")
    found = [
        number for seed, value in enumerate((7.0, 18.0, 8.0)) for number in numbers(({}, value), seed=seed)
    ]
    assert state(judge(each, found)) == ("does not hold", "higher at 1")


def test_a_trend_of_one_case_with_too_few_seeds_only_seems_to_hold() -> None:
    two = claim('cases = [{ name = "most", below = 9 }, { name = "falls", trend = "falls" }]', by="nodes")
    seeds = [
        [
            number
            for seed in range(count)
            for number in numbers(({"nodes": 1}, 3.0), ({"nodes": 2}, 2.0), seed=seed)
        ]
        for count in (2, 3)
    ]
    assert [judge(two, found).state for found in seeds] == ["seems to hold", "holds"]


def test_what_is_shown_beside_is_not_judged() -> None:
    beside = claim(
        'cases = [{ name = "judged", paper = 3, where = { nodes = 1 } }, '
        '{ name = "shown", beside = true, where = { nodes = 2 } }]'
    )
    verdict = judge(beside, numbers(({"nodes": 1}, 3.0), ({"nodes": 2}, 99.0)))
    assert verdict.state == "holds"
    assert [(one.ours, one.paper, one.beside) for one in verdict.judged] == [
        ("3", "3", False),
        ("99", "", True),
    ]
    missed = judge(beside, numbers(({"nodes": 1}, 9.0), ({"nodes": 2}, 99.0)))
    board = PaperBoard(Paper(name="p", title="P", claims=(), checks=(), choices=()), (missed,), (), ())
    page = markdown([board], {})
    assert "| judged: 9 ✗<br>shown: 99 |" in page
    assert "Holds in" not in page  # one setting is judged


def test_what_is_set_against_another_is_so_seed_by_seed() -> None:
    both = [
        number
        for seed, (a, b) in enumerate(((1.0, 2.0), (30.0, 40.0), (8.0, 8.0)))
        for number in numbers(({"system": "a"}, a), ({"system": "b"}, b), seed=seed)
    ]
    ratio = claim(
        'where = { system = "a" }\nagainst = { where = { system = "b" } }\npaper = 0.75\nwithin = 0.01'
    )
    assert judge(ratio, both).state == "holds"
    less = claim(
        'where = { system = "a" }\nagainst = { where = { system = "b" } }\nhow = "less by"\npaper = 0.25'
    )
    assert judge(less, both).state == "holds"


def test_where_numbers_come_from_is_told_of_those_that_are_judged() -> None:
    def made(nodes: int, level: str, day: str) -> list[Number]:
        batch = Batch("paper/fig1", "paper", nodes, level, made=day, physics=f"world of {day}")
        return as_numbers(batch, [Row({"nodes": nodes, "system": "a"}, "degree", None, 1.0)])

    found = [*made(1, "bulk", "Monday"), *made(2, "bulk", "Tuesday"), *made(3, "messages", "Friday")]
    verdict = judge(claim("alike = 0.15\npoints = [1, 2]", by="nodes"), found)
    assert (verdict.levels, verdict.days) == (("bulk",), ("Monday", "Tuesday"))
    assert verdict.physics == ("world of Monday", "world of Tuesday")
    ratio = claim("where = { nodes = 1 }\nagainst = { where = { nodes = 3 } }\npaper = 1")
    assert judge(ratio, found).levels == ("bulk", "messages")


def test_how_far_two_are_apart_does_not_hang_on_which_is_larger() -> None:
    factor = claim(
        'by = "alpha"\nwhere = { net = "x" }\nagainst = { where = { net = "y" } }\nhow = "factor"\ntrend = "falls"'
    )
    found = numbers(
        *(({"net": "x", "alpha": at}, x) for at, x in ((1, 2.0), (2, 0.4))),
        *(({"net": "y", "alpha": at}, 1.0) for at in (1, 2)),
    )
    assert state(judge(factor, found)) == ("does not hold", "not from 1 to 2")


def test_a_claim_in_two_settings_holds_only_in_both() -> None:
    twice = claim(
        'paper = 1\ncases = [{ name = "x", where = { net = "x" } }, { name = "y", where = { net = "y" } }]'
    )
    assert judge(twice, numbers(({"net": "x"}, 1.0), ({"net": "y"}, 1.0))).state == "holds"
    assert state(judge(twice, numbers(({"net": "x"}, 1.0), ({"net": "y"}, 2.0)))) == (
        "does not hold",
        "; higher",
    )
    assert judge(twice, numbers(({"net": "x"}, 1.0))).state == "not run yet"
    assert judge(twice, numbers(({"net": "x"}, 2.0))).state == "does not hold"


def test_rows_of_different_places_are_not_taken_for_replications() -> None:
    with pytest.raises(BadInput, match="not of one place"):
        judge(claim("paper = 1"), numbers(({"nodes": 1}, 1.0), ({"nodes": 2}, 2.0)))
    with pytest.raises(BadInput, match="not of one place"):
        judge(
            claim('paper = 1\nwhere = { net = "x" }'),
            numbers(({"net": "x"}, 1.0), ({"net": "x", "at": 5}, 2.0)),
        )
    only = claim('paper = 1\nwhere = { net = "x", at = "" }')
    assert judge(only, numbers(({"net": "x"}, 1.0), ({"net": "x", "at": 5}, 2.0))).state == "holds"


# The page.


def test_the_page_is_what_the_results_and_claims_make_it() -> None:
    written = markdown(scoreboard(read_results(DOCS / "results")), read_checks(DOCS / "results"))
    assert (DOCS / "reproduction.md").read_text(encoding="utf-8") == written, (
        "run `topicweave scoreboard --out docs/reproduction.md`"
    )


def many(*values: float) -> ClaimVerdict:
    """Of a claim in many settings, with long names."""
    cases = "".join(
        f'{{ name = "{"long " * 20}{at}", where = {{ nodes = {at} }}, paper = 1 }}, '
        for at in range(len(values))
    )
    return judge(claim(f"cases = [{cases}]"), numbers(*(({"nodes": at}, v) for at, v in enumerate(values))))


def row_of(verdict: ClaimVerdict) -> str:
    board = PaperBoard(Paper(name="p", title="P", claims=(), checks=(), choices=()), (verdict,), (), ())
    return next(line for line in markdown([board], {}).splitlines() if line.startswith("| **"))


def test_a_long_row_shows_misses_and_how_far_the_others_go() -> None:
    short_row = row_of(many(1.0, 2.0, 1.1))
    assert "long 0: 1<br>" in short_row
    assert "long 1: 2 ✗<br>" in short_row
    row = row_of(many(1.0, 2.0, *[1.1] * 10))
    assert "long 1: 2 ✗<br>the other 11 that hold: from 1 to 1.1 |" in row
    assert row_of(many(*[1.0, 1.1] * 6)).count("| all 12 hold: from 1 to 1.1 |") == 1
    all_miss = row_of(many(*range(3, 15)))
    assert "more misses ✗: from" in all_miss
    assert len(all_miss) <= 850


def test_the_points_of_a_curve_are_named_once() -> None:
    curve = claim("below = 9", by="nodes")
    assert "| *1,000 … 4,000 nodes*<br>1, 2, 3, 4 |" in row_of(
        judge(curve, numbers(*(({"nodes": 1000 * n}, float(n)) for n in (1, 2, 3, 4))))
    )


def test_reasons_stand_below_the_table() -> None:
    missed = judge(claim('paper = 3\nwhy = "Nobody knows."'), numbers(({}, 9.0)))
    board = PaperBoard(
        Paper(name="p", title="P", summary="Nothing holds.", claims=(), checks=(), choices=()),
        (missed,),
        (),
        (),
    )
    page = markdown([board], {})
    assert "- **P.** Nothing holds." in page
    assert "| ✗ higher. |" in page
    assert "- `one`: Nobody knows." in page


def test_the_headline_counts_every_claim_once() -> None:
    page = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    for board in scoreboard(read_results(DOCS / "results")):
        counts = board.headline()
        assert sum(counts.values()) == 2 * counts["claims"]
        assert f"| {board.paper.name} | {' | '.join(map(str, counts.values()))} |" in page
        for verdict in (*board.verdicts, *board.checks):
            assert page.count(f"**{verdict.claim.id}**") == 1


Kept = list[tuple[dict[str, str], dict[tuple[str, str], float]]]
"""Rows of one study and measure: each place, and what came out there by seed and sample."""


def kept_rows() -> dict[tuple[str, str], Kept]:
    found: dict[tuple[str, str], dict[str, dict[tuple[str, str], float]]] = {}
    for path in (DOCS / "results").glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as lines:
            for line in csv.DictReader(lines):
                sample = re.search(r"sample=\d+", line["where"])
                where = re.sub(r"(; )?sample=\d+", "", line["where"]).removeprefix("; ")
                place = "; ".join([f"part={line['part']}", f"level={line['level']}", *filter(None, [where])])
                values = found.setdefault((line["study"], line["measure"]), {}).setdefault(place, {})
                values[line["seed"], sample[0] if sample else ""] = float(line["value"])
    return {
        name: [
            (dict(pair.split("=", 1) for pair in place.split("; ")), values)
            for place, values in places.items()
        ]
        for name, places in found.items()
    }


MADE: dict[str, Callable[[float, float], float]] = {
    "ratio": lambda a, b: a / b if b else math.nan,
    "factor": lambda a, b: max(a / b, b / a) if a and b else math.nan,
    "less by": lambda a, b: 1 - a / b if b else math.nan,
    "more by": lambda a, b: a / b - 1 if b else math.nan,
    "difference": lambda a, b: a - b,
    "gap": lambda a, b: abs(a - b),
}


def numbers_of(case: Case, rows: dict[tuple[str, str], Kept]) -> set[str]:
    """All numbers that rows of the case's study and measure give in its way, whatever its `where` says."""
    mine = rows.get((case.study, case.measure), [])
    if case.by == "seed":
        return {short(value) for _, values in mine for value in values.values()}
    made: list[tuple[str, str, float]] = []
    """What is common to the points of a curve; the point; the number."""

    def rest(place: dict[str, str]) -> str:
        return str(sorted(pair for pair in place.items() if pair[0] != case.by))

    if case.against is None:
        made = [(rest(place), place.get(case.by, ""), fmean(values.values())) for place, values in mine]
    else:
        name = case.against.study or case.study, case.against.measure or case.measure
        make = MADE[case.how]
        for (place, one), (beside, other) in itertools.product(mine, rows.get(name, [])):
            if case.by in ("", "part") or place.get(case.by) == beside.get(case.by):
                common = one.keys() & other.keys()
                number = (
                    fmean(make(one[name], other[name]) for name in sorted(common))
                    if common
                    else make(fmean(one.values()), fmean(other.values()))
                )
                made.append((rest(place) + rest(beside), place.get(case.by, ""), number))
    if case.reduce == "mean":
        points = {text(point) for point in case.points}
        curves: dict[str, list[float]] = {}
        for curve, point, number in made:
            if not points or point in points:
                curves.setdefault(curve, []).append(number)
        return {short(fmean(curve)) for curve in curves.values()}
    return {short(number) for _, _, number in made}


def test_every_number_of_ours_on_the_page_is_in_the_data() -> None:
    """By another way than the judges go: read from the files, averaged over seeds and samples by hand."""
    rows = kept_rows()
    cells = {
        found[1]: line.split(" | ")[2]
        for line in (DOCS / "reproduction.md").read_text(encoding="utf-8").splitlines()
        if (found := re.match(r"\| \*\*([\w-]+)\*\*", line))
    }
    looked_at = 0
    for board in scoreboard(read_results(DOCS / "results")):
        for verdict in (*board.verdicts, *board.checks):
            if not verdict.judged:
                continue
            known = set().union(*(numbers_of(case, rows) for case in verdict.claim.cases))
            for part in cells[verdict.claim.id].split("<br>"):
                if re.fullmatch(r"\*[^*]+\*", part):
                    continue  # the points of a curve
                shown = re.sub(r" ± [\d.e-]+| \(\d+ points\)| ✗|^from ", "", part.split(": ")[-1])
                for number in re.split(r", | … | to ", shown):
                    assert number in known, f"{verdict.claim.id}: {number}"
                    looked_at += 1
    assert looked_at > 1000


STUDY = re.compile(r"`(\w+/\w+)`")
OF_ROWS = "worked out of rows of two studies, or of one row and the next"
OF_THE_PAPER = "worked out of the paper's own numbers"
NOT_IN_ROWS = {
    ("sc-8a-largest-share", "3.1"): OF_ROWS,
    ("sc-45", "16.3"): OF_THE_PAPER,
    ("rp-11a-falls", "0.47"): OF_ROWS,
    ("rp-11a-falls", "0.37"): OF_ROWS,
    ("rp-11a-falls", "0.82"): OF_ROWS,
    ("rp-11d", "0.133"): "four messages in 30 s, the timers' settings",
    ("vt-10b-43", "0.72"): OF_THE_PAPER,
    ("om-9-355", "2.3"): OF_THE_PAPER,
    ("om-7-samples", "41.7"): OF_THE_PAPER,
    ("rp-three-failures", "0.0125"): OF_THE_PAPER,
    ("rp-three-failures", "0.00008"): OF_THE_PAPER,
}
"""Decimals in a claim's reason or a choice that no row holds, and why."""


def test_every_decimal_in_a_reason_or_choice_is_in_the_results() -> None:
    """In those of the studies that it names, of the claims that it names, or of its own claim or claims."""
    rows, values = kept_rows(), dict[str, set[float]]()
    for (study, _), places in rows.items():
        known = values.setdefault(study, set())
        for place, several in places:
            known |= {*several.values(), fmean(several.values())}
            known |= {float(found) for found in re.findall(r"\d+\.\d+", str(place))}
    unused, looked_at, missing = set(NOT_IN_ROWS), 0, []
    for paper in load_papers():
        claims = {claim.id: claim for claim in (*paper.claims, *paper.checks)}
        told = [(claim.id, f"{claim.why} {claim.cannot}", [claim]) for claim in claims.values()]
        told.append((paper.name, paper.summary, list(claims.values())))
        for choice in paper.choices:
            touched = [claim for claim in claims.values() if choice.name in claim.choices]
            told.append((choice.name, f"{choice.what} {choice.otherwise}", touched))
        for name, reason, own in told:
            cases = [case for claim in own for case in claim.cases]
            cases += [case for other in claims if other in reason for case in claims[other].cases]
            studies = {case.study for case in cases} | {
                case.against.study for case in cases if case.against and case.against.study
            }
            papers = {number for case in cases for number in of_the_paper(case)}
            made: set[float] | None = None
            for sentence in re.split(r"(?<=[.;:]) (?=[A-Z\d])", reason):
                named = set(STUDY.findall(sentence) or STUDY.findall(reason))
                here = papers.union(*(values.get(study, set()) for study in (*named, *studies)))
                for found in re.findall(r"(?<![\w.,])-?\d+\.\d+(?![\w.])", sentence):
                    looked_at += 1
                    if (name, found) in NOT_IN_ROWS:
                        unused.discard((name, found))
                    elif not any(is_rounded(found, value, sentence) for value in here):
                        made = made or {float(one) for case in cases for one in numbers_of(case, rows)}
                        if not any(is_rounded(found, value, sentence) for value in made):
                            missing.append((name, found))
    assert not missing, "\n".join(map(str, missing))
    assert not unused
    assert looked_at > 300


def of_the_paper(case: Case) -> set[float]:
    """What the paper has there."""
    papers = case.paper.values() if isinstance(case.paper, dict) else [case.paper]
    given = {*papers, *(case.range or ()), case.below, case.above}
    return {float(number) for number in given if number is not None}


def is_rounded(told: str, value: float, sentence: str) -> bool:
    """Also in hundredths and thousandths, where the sentence speaks of % and of ms."""
    digits = len(told.partition(".")[2])
    factors = [1, *([100] if "%" in sentence else []), *([1000] if " ms" in sentence else [])]
    return any(abs(value * factor - float(told)) <= 0.5000001 * 10**-digits for factor in factors)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((1.0, 2.0, 3.0), ("seems to hold", "")),
        ((3.0, 2.0, 1.0), ("does not hold", "does not grow")),
        ((2.0, 2.0, 2.0), ("does not hold", "does not grow")),
        ((1.0, 1.1, 5.0), ("does not hold", "R² is 0.769")),
    ],
)
def test_growth_with_a_logarithm(values: tuple[float, ...], expected: tuple[str, str]) -> None:
    found = numbers(*zip(({"nodes": 10}, {"nodes": 100}, {"nodes": 1000}), values, strict=True))
    assert state(judge(claim('by = "nodes"\nfits = "log"'), found)) == expected
    two = numbers(({"nodes": 10}, 1.0), ({"nodes": 100}, 2.0))
    assert state(judge(claim('by = "nodes"\nfits = "log"'), two))[1] == "2 points make no line"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((8.0, 4.0, 2.0), ("seems to hold", "")),
        ((2.0, 4.0, 8.0), ("does not hold", "does not fall")),
        ((8.0, 1.0, 0.9), ("does not hold", "R² is 0.786")),
        ((8.0, 4.0, 0.0), ("does not hold", "is 0 somewhere")),
    ],
)
def test_an_exponential_fall(values: tuple[float, ...], expected: tuple[str, str]) -> None:
    found = numbers(*zip(({"height": 1}, {"height": 2}, {"height": 3}), values, strict=True))
    assert state(judge(claim('by = "height"\nfits = "exponential"'), found)) == expected


def test_numbers_say_in_which_world_they_were_made() -> None:
    study = STUDIES["spidercast/fig10"]
    told = world_of(study, study.plan("smoke", 0))
    assert "no loss" in told
    assert "views of 25% by decree" in told
    assert "views by gossip of 20" in told
    magnet = STUDIES["magnet/fig3a"]
    assert "; an oracle: " in world_of(magnet, magnet.plan("smoke", 0))
    batch = Batch("paper/fig1", "paper", 0, "messages", physics=told)
    (number,) = as_numbers(batch, [Row({}, "degree", None, 1.0)])
    assert judge(claim("above = 0"), [number]).physics == (told,)


def test_a_lossy_run_says_so() -> None:
    lossy = Trial(system="spidercast", workload=GeneratedWorkload(10), loss=0.01, latency="10-100ms")
    assert physics(lossy) == "10-100ms one way, 0.01 of all messages lost, every node knows all others"
