"""The pages in a real browser: what is drawn, sorted, saved, and whether it can be read."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest.importorskip("plotly")
pytest.importorskip("websockets")

from tests.report.browser import COMMAND, Browser
from tests.report.comparisons import comparison, entry
from topicweave.report.page import comparison_page
from topicweave.report.workload_page import workload_page

pytestmark = pytest.mark.skipif(COMMAND is None, reason="needs Chromium to look at pages")

NOISY = {
    "noise": 0.2,
    "noise_quantiles": [step / 200 for step in range(101)],
    "cost_by_likeness": [[0.02 * number, 10, 0.01 * number] for number in range(50)],
}
LONG = {"k": 2, "a_parameter.with_a_long_name": 1.25, "note": "and a value that goes on and on, too"}
SYSTEMS = [
    entry("alpha", degree_mean=12.0),
    entry("beta", LONG, degree_mean=7.0, **NOISY),
    entry("gamma", degree_mean=9.0, hit_ratio=0.9, repair_time=float("inf"), noise=float("nan")),
]
BETA = SYSTEMS[1].label
COMPARED = comparison(
    *(
        replace(
            one, results=(*one.results, {**one.results[0], "degree_mean": one.measure("degree_mean") + 1})
        )
        for one in SYSTEMS
    ),
    cuts=("a random sample of 400 of the 9,000 nodes",),
)
DESCRIBED = {
    "folder": "workloads/feeds",
    "nodes": 3,
    "popularity": {
        "ccdf": [[1, 1.0], [2, 0.5], [8, 0.1]],
        "exponent": {"tail": 3, "x_min": 1, "alpha": 2.0, "error": 0.1},
    },
    "list_sizes": {"ccdf": [[1, 1.0], [5, 0.3]]},
    "likeness": {"friends": [{"friends": 1, "coverage_mean": 0.4, "fully_covered": 0.1}]},
}

# For every text that can be seen: how far its colour is from what is behind it (WCAG 2.2, contrast ratio).
FAINTEST = """
(() => {
  const channels = text => text.match(/[\\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const [r, g, b, a = 1] = channels(getComputedStyle(at).backgroundColor);
      if (a === 1) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const texts = [...document.body.querySelectorAll('*')].filter(element =>
    element.checkVisibility() && !element.closest('.unseen, noscript, script')
    && [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim()));
  const rated = texts.map(element => {
    const style = getComputedStyle(element);
    const [a, b] = [luminance(channels(element.closest('svg') ? style.fill : style.color)), luminance(behind(element))];
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), `${element.tagName}: ${element.textContent.slice(0, 40)}`];
  });
  return [rated.length, rated.sort((a, b) => a[0] - b[0]).slice(0, 3)];
})()
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as one:
        yield one


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    texts = {"comparison": comparison_page(COMPARED), "workload": workload_page(DESCRIBED)}
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in texts}


def order(browser: Browser) -> list[str]:
    names: list[str] = browser.evaluate(
        "[...document.querySelectorAll('tbody th')].map(cell => cell.textContent)"
    )
    return names


@pytest.mark.parametrize(("name", "drawn"), [("comparison", 15 + 3), ("workload", 3)])
@pytest.mark.parametrize("width", [1280, 375])
def test_everything_is_drawn_without_a_complaint_and_fits(
    browser: Browser, pages: dict[str, Path], name: str, drawn: int, width: int
) -> None:
    browser.look_at(pages[name], width=width)
    assert browser.complaints() == []
    sizes = browser.evaluate(
        "[...document.querySelectorAll('.plot, .picture')].map(place => {"
        " const {width, height, right} = place.querySelector('svg').getBoundingClientRect();"
        " return [width, height, right, place.id]; })"
    )
    assert len(sizes) == drawn
    for across, down, right, figure in sizes:
        assert across > 200, figure
        assert down > 150, figure
        assert right <= width, figure
    marks = browser.evaluate(
        "[...document.querySelectorAll('.plot')].map(plot => plot.querySelectorAll('.trace').length)"
    )
    assert all(marks)
    overflow = browser.evaluate(
        "document.scrollingElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert overflow <= 0


def test_the_answer_is_on_the_first_screen(browser: Browser, pages: dict[str, Path]) -> None:
    browser.look_at(pages["comparison"], height=720)
    bottom = "document.querySelector('{}').getBoundingClientRect().bottom"
    assert browser.evaluate(bottom.format(".findings")) < 720
    assert browser.evaluate(bottom.format(".caution")) < 720


def test_a_click_on_a_heading_sorts_and_another_turns_it_round(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.look_at(pages["comparison"])
    assert order(browser) == ["alpha", BETA, "gamma"]
    where = browser.evaluate(
        "(() => { const {x, y, width, height} = document.querySelectorAll('thead button')[1].getBoundingClientRect();"
        " return [x + width / 2, y + height / 2]; })()"
    )
    for expected in ([BETA, "gamma", "alpha"], ["alpha", "gamma", BETA]):
        for kind in ("mousePressed", "mouseReleased"):
            browser.call(
                "Input.dispatchMouseEvent", type=kind, x=where[0], y=where[1], button="left", clickCount=1
            )
        assert order(browser) == expected
    for expected in (["alpha", BETA, "gamma"], [BETA, "alpha", "gamma"]):
        # Noise, which gamma has none of: it stays last either way.
        browser.evaluate("document.querySelector('thead th[title*=\"not wanted\"] button').click()")
        assert order(browser) == expected


def test_the_keyboard_is_enough(browser: Browser, pages: dict[str, Path]) -> None:
    browser.look_at(pages["comparison"])

    def tab_to(selector: str) -> None:
        for _ in range(60):
            browser.press("Tab", 9)
            if browser.evaluate(f"document.activeElement.matches({selector!r})"):
                return
        pytest.fail(f"no way to {selector} by Tab")

    tab_to("thead th:nth-child(2) button")
    assert browser.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.press("Enter", 13, "\r")
    assert order(browser) == [BETA, "gamma", "alpha"]
    assert browser.evaluate("document.activeElement.closest('th').getAttribute('aria-sort')") == "ascending"
    tab_to(".legend button")
    browser.press(" ", 32, " ")
    browser.painted()
    lines = "document.querySelectorAll('#hops .scatterlayer .trace').length"
    assert browser.evaluate("document.activeElement.getAttribute('aria-pressed')") == "false"
    assert browser.evaluate(lines) == 2
    assert "alpha" not in browser.evaluate("document.querySelector('#memory .yaxislayer-above').textContent")
    browser.press(" ", 32, " ")
    browser.painted()
    assert browser.evaluate(lines) == 3
    tab_to(".export button")
    assert browser.complaints() == []


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_can_be_read_in_both_modes(browser: Browser, pages: dict[str, Path], dark: bool) -> None:
    # Loaded in the other mode: the plots have to follow, too.
    browser.look_at(pages["comparison"], dark=not dark)
    ground = "getComputedStyle(document.body).backgroundColor"
    before = browser.evaluate(ground)
    browser.set_mode(dark=dark)
    browser.painted()
    assert browser.evaluate(ground) != before
    browser.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    texts, faintest = browser.evaluate(FAINTEST)
    assert texts > 300
    assert faintest[0][0] >= 4.5, faintest
    assert browser.complaints() == []


# Presses every button, and keeps what would be saved: Chromium lets a page save ten files, then it asks somebody.
SAVE_ALL = """
(async () => {
  const files = {};
  let arrived;
  let made;  // The last one before the click: images are made by way of others.
  const make = URL.createObjectURL.bind(URL);
  URL.createObjectURL = blob => { made = blob; return make(blob); };
  HTMLAnchorElement.prototype.click = function () { arrived([this.download, made]); };
  for (const button of document.querySelectorAll('.export button')) {
    const saved = new Promise(resolve => { arrived = resolve; });
    button.click();
    const [name, blob] = await saved;
    const image = blob.type === 'image/png' && await createImageBitmap(blob);
    files[name] = image ? [image.width, image.height] : await blob.text();
  }
  return files;
})()
"""


def test_every_figure_can_be_saved(browser: Browser, pages: dict[str, Path]) -> None:
    browser.look_at(pages["comparison"], dark=True)
    files = browser.evaluate(SAVE_ALL)
    assert browser.complaints() == []
    assert len(files) == 3 * (15 + 3)
    for name, content in files.items():
        match name.rpartition(".")[2]:
            case "csv":
                header, *rows = csv.reader(content.splitlines())
                assert len(rows) > 1, name
                assert all(len(row) == len(header) for row in rows), name
            case "svg":
                assert ElementTree.fromstring(content).tag == "{http://www.w3.org/2000/svg}svg", name
                assert "var(--" not in content, name
            case "png":
                assert min(content) > 700, name


def test_figures_arrive_as_files_that_hold_what_is_drawn(browser: Browser, pages: dict[str, Path]) -> None:
    browser.look_at(pages["comparison"])

    def saved(figure: str, file_format: str) -> Path:
        path = browser.downloaded(f"[data-figure={figure}][data-format={file_format}]")
        assert path.name == f"feeds-{figure}.{file_format}"
        assert browser.complaints() == []
        return path

    for figure in ("hops", "overlay-2"):
        assert saved(figure, "png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    header, first, *_ = csv.reader(saved("links-hits", "csv").read_text(encoding="utf-8").splitlines())
    assert header[:3] == ["series", "links per node (mean)", "hit ratio"]
    assert first[:3] == ["alpha", "12.5", "1"]
    low, high = float(first[3]), float(first[4])
    assert (low, high) == pytest.approx((12.5 - 12.7062 / 2, 12.5 + 12.7062 / 2), rel=1e-4)
    _, first, *rest = csv.reader(saved("overlay-1", "csv").read_text(encoding="utf-8").splitlines())
    assert first == ["ann", "news & weather", "", "bob", "news & weather", "relay"]
    assert len(rest) == 3
