"""The page: whole, offline, safe against what users type, the same each time."""

import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from tests.report.comparisons import NAN, comparison, entry, without_events
from topicweave.report.constraints import Constraint
from topicweave.report.page import PlotlyMissing, comparison_page

pytest.importorskip("plotly")

TWO = comparison(entry("alpha"), entry("beta", {"k": 2}, hit_ratio=0.9, noise=NAN))


class Page(HTMLParser):
    """What a browser would make of the page, as far as these tests ask."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.style = ""
        self.text = ""
        self._inside: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self._inside.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._inside.pop() == tag, f"<{tag}> is closed out of turn"

    def handle_data(self, data: str) -> None:
        match self._inside[-1:]:
            case ["script"]:
                self.scripts[-1] += data
            case ["style"]:
                self.style += data
            case _:
                self.text += data

    @property
    def nested_properly(self) -> bool:
        return not self._inside


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(comparison_page(TWO))


def test_nothing_is_fetched_from_anywhere(page: Page) -> None:
    assert page.nested_properly
    assert not {tag for tag, _ in page.tags} & {"link", "img", "iframe", "object", "embed", "base", "form"}
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            elsewhere = name in ("src", "href", "srcset", "action", "data")
            assert not elsewhere or (value or "").startswith("#"), f"<{tag} {name}={value!r}>"
            assert "//" not in (value or ""), f"<{tag} {name}={value!r}>"
    assert "url(" not in page.style
    assert "@import" not in page.style
    policy = next(attributes["content"] for _, attributes in page.tags if attributes.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_the_library_is_in_it_once(page: Page) -> None:
    assert [script.startswith("/**\n* plotly.js") for script in page.scripts] == [False, True, False]


def test_it_names_every_system_and_how_to_get_it_again(page: Page) -> None:
    assert "alpha" in page.text
    assert "beta:k=2" in page.text
    assert TWO.command in page.text
    assert "seed 7" in page.text
    assert re.search(r"figures by plotly\.js \d+\.\d+", page.text)


def ids(page: Page) -> list[str | None]:
    return [attributes["id"] for _, attributes in page.tags if "id" in attributes]


def test_every_figure_has_its_place_and_can_be_saved(page: Page) -> None:
    data = json.loads(page.scripts[0])
    assert len(ids(page)) == len(set(ids(page)))
    plots = {attributes["id"] for _, attributes in page.tags if attributes.get("class") == "plot"}
    pictures = {attributes["id"] for _, attributes in page.tags if attributes.get("class") == "picture"}
    assert data["figures"].keys() == plots
    assert data["graphs"].keys() == pictures == {"overlay-1", "overlay-2"}
    assert len(plots) == 14
    buttons = {
        (attributes["data-figure"], attributes["data-format"])
        for _, attributes in page.tags
        if "data-format" in attributes
    }
    assert buttons == {(name, kind) for name in plots | pictures for kind in ("png", "svg", "csv")}
    assert page.text.count("The same figure again:") == len(plots | pictures)


def test_every_section_that_is_linked_to_is_there(page: Page) -> None:
    links = [attributes["href"] or "" for tag, attributes in page.tags if tag == "a"]
    assert len(links) == 6
    assert {link.removeprefix("#") for link in links} <= set(ids(page))


def test_what_the_budget_cut_and_who_keeps_to_what_is_on_the_first_screen() -> None:
    asked = Constraint("degree_max", "at most", 20.0, "--max-degree 20")
    cut = comparison(entry("alpha"), entry("beta", degree_max=90.0), cuts=("1 of 3 seeds",), asked=(asked,))
    text = Page(comparison_page(cut)).text
    first = text[: text.index("Press a heading to sort")]
    assert "this is 1 of 3 seeds" in first
    assert "Keep to --max-degree 20: alpha" in first


def test_intervals_stand_behind_their_values() -> None:
    spread = replace(entry("alpha"), results=({"degree_mean": 4.0, "hit_ratio": 1.0}, {"degree_mean": 5.0}))
    page = comparison_page(comparison(spread, entry("beta")))
    assert re.search(
        r'<td data-value="4.5"><span class="best" title="best">4.5</span><small>±6.4</small>', page
    )


@pytest.mark.parametrize(("membership", "oracle"), [("full", True), ("5%", True), ("directory", False)])
def test_a_report_made_with_an_oracle_says_so(membership: str, oracle: bool) -> None:
    page = Page(comparison_page(replace(TWO, setting=replace(TWO.setting, membership=membership))))
    assert f"{membership}: " in page.text
    assert ("an oracle" in page.text) == oracle


def test_every_heading_sorts_and_every_cell_has_a_value(page: Page) -> None:
    tags = [tag for tag, _ in page.tags]
    head = page.tags[tags.index("thead") : tags.index("tbody")]
    headings = [attributes for tag, attributes in head if tag == "th"]
    assert len(headings) == len([tag for tag, _ in head if tag == "button"])
    assert all(attributes["aria-sort"] == "none" for attributes in headings)
    cells = [attributes["data-value"] for tag, attributes in page.tags if tag == "td"]
    assert len(cells) == 2 * (len(headings) - 1)
    assert cells.count("") == 1  # beta's noise, which has none


def test_the_same_comparison_gives_the_same_bytes() -> None:
    assert comparison_page(TWO) == comparison_page(TWO)
    assert comparison_page(TWO) != comparison_page(comparison(entry("alpha")))


def test_what_users_type_stays_text() -> None:
    nasty = '</script><script>alert("1")</script>'
    page = Page(comparison_page(comparison(entry("alpha", {"note": nasty}), entry("beta"))))
    assert page.nested_properly
    assert len(page.scripts) == 3
    assert nasty in page.text
    assert json.loads(page.scripts[0])["figures"]["hops"]["traces"][0]["name"] == f"alpha:note={nasty}"


def test_without_events_there_is_still_a_page() -> None:
    page = Page(comparison_page(comparison(without_events("alpha"), events=0)))
    assert "Nobody is marked, because no delivery was expected." in page.text
    figures = json.loads(page.scripts[0])["figures"]
    assert figures.keys() == {"degrees", "links", "list-sizes", "popularity"}
    assert "No overlay was pictured" in page.text


def test_the_colours_follow_the_browser(page: Page) -> None:
    assert "prefers-color-scheme: dark" in page.style
    variables = set(re.findall(r"var\((--\w+)\)", page.style)) | set(
        re.findall(r"colour\('(--\w+)'\)", page.scripts[2])
    )
    light, dark = page.style.split("@media (prefers-color-scheme: dark)")[0:2]
    dark = dark[: dark.index("* {")]
    assert len(variables) > 8
    for variable in variables:
        assert f"{variable}:" in light
        assert f"{variable}:" in dark


def test_without_plotly_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(PlotlyMissing, match=r"pip install 'topicweave\[report\]'"):
        comparison_page(TWO)
