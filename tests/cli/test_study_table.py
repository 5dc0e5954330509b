"""A study in the terminal."""

import io

from rich.console import Console
from rich.table import Table

from topicweave.cli.tables import claims_table, study_table
from topicweave.papers import Row, StudyResult
from topicweave.papers.claims import load_papers
from topicweave.papers.judging import judge


def printed(table: Table, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(table)
    return out.getvalue()


def test_a_study_shows_our_numbers_beside_the_papers() -> None:
    rows = [
        Row({"nodes": 100, "system": "x"}, "degree_mean", 12.0, 11.98765),
        Row({"nodes": 100}, "hops_max", "below 6", 9.0),
        Row({}, "tdi_20", None, 0.5),
    ]
    lines = printed(study_table(StudyResult("s", "smoke", 0, rows)), 200).splitlines()
    assert lines[2].split() == ["nodes=100,", "system=x", "degree_mean", "12", "11.99"]
    assert lines[3].split() == ["nodes=100", "hops_max", "below", "6", "9"]
    assert lines[4].split() == ["tdi_20", "–", "0.5"]


def test_a_claim_that_needs_other_studies_says_so() -> None:
    (paper,) = load_papers(["vitis"])
    claims = [judge(claim, []) for claim in paper.claims if claim.id in ("vt-hit", "vt-11-708")]
    shown = " ".join(printed(claims_table(claims, "vitis/fig4"), 200).split())
    assert "needs vitis/fig6, vitis/fig7 too" in shown
    assert "vt-11-708 (§IV-E)" in shown
