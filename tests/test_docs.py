"""What holds for every page: short lines, links that lead somewhere, all pages in the index, no history."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
GENERATED = ROOT / "docs" / "reproduction.md"
HISTORY = re.compile(
    r"\b(no longer|used to be|previously|was rewritten|in an earlier version)\b", re.IGNORECASE
)


def prose(page: Path) -> list[tuple[int, str]]:
    """Lines with their numbers, without tables and code."""
    lines, code = [], False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        code ^= line.lstrip().startswith("```")
        if not code and not line.startswith("|"):
            lines.append((number, line))
    return lines


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_is_readable(page: Path) -> None:
    if page != GENERATED:
        assert [number for number, line in prose(page) if len(line) > 119] == []
    assert [(number, line) for number, line in prose(page) if HISTORY.search(line)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [
        target for target in targets if "://" not in target and not (page.parent / target).resolve().exists()
    ]
    assert missing == []


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES[1:] if page.name != "README.md"]
    assert [page for page in pages if f"({page})" not in index] == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
