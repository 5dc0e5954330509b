"""What holds for every page: short lines, links that lead to pages and headings, all pages in the index, no history."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
CHANGELOG = ROOT / "CHANGELOG.md"
PAGES = [ROOT / "README.md", CHANGELOG, *sorted((ROOT / "examples").rglob("*.md")), *DOCS]
SHOWN_AS_TEXT = [ROOT / "README.md"]
"""Read in terminals and on package pages: here tables are as narrow as everything else."""
HISTORY = re.compile(
    r"\b(no longer|any longer|used to|formerly|previously|originally|recently|in an earlier|earlier code|old code"
    r"|code in which|(was|were) (not )?(rerun|measured anew)"
    r"|(was|were|has been|have been) (rewritten|renamed|reworked|replaced by)"
    r"|(has|have) been (changed|moved|added|removed|fixed))\b",
    re.IGNORECASE,
)


def numbered(page: Path) -> list[tuple[int, str]]:
    return list(enumerate(page.read_text(encoding="utf-8").splitlines(), start=1))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_is_readable(page: Path) -> None:
    """Lines fit; only a table's may be longer, whose cells cannot be broken."""
    long = [
        number
        for number, line in numbered(page)
        if len(line) > 119 and (page in SHOWN_AS_TEXT or not line.startswith("|"))
    ]
    assert long == []
    if page != CHANGELOG:
        assert [(number, line) for number, line in numbered(page) if HISTORY.search(line)] == []


@pytest.mark.parametrize(
    "line",
    [
        "The table was rewritten.",
        "It is in an earlier format, as it used to be.",
        "Nodes have been moved there.",
        "Previously a node waited.",
        "Its row was not rerun.",
    ],
)
def test_history_is_found(line: str) -> None:
    assert HISTORY.search(line)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [
        target for target in targets if "://" not in target and not (page.parent / target).resolve().exists()
    ]
    assert missing == []


def anchors(text: str) -> set[str]:
    """What a link may name in a page: its headings, as GitHub spells them."""
    headings = re.findall(
        r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def lost_anchors(page: Path) -> list[str]:
    targets = re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", page.read_text(encoding="utf-8"))
    return [
        f"{target}#{anchor}"
        for target, anchor in targets
        if "://" not in target
        and anchor not in anchors((page.parent / target if target else page).read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_into_a_page_name_one_of_its_headings(page: Path) -> None:
    assert lost_anchors(page) == []


def test_a_link_to_a_heading_that_is_not_there_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# The port (`a/b.py`)\n[here](#the-port-abpy) [gone](page.md#the-port)\n", encoding="utf-8"
    )
    assert lost_anchors(page) == ["page.md#the-port"]


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in DOCS if page.name != "README.md"]
    assert [page for page in pages if f"({page})" not in index] == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
