"""The pages in a real browser: what is drawn, sorted, saved, and whether it can be read."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

pytest.importorskip("plotly")
pytest.importorskip("playwright")

from playwright.sync_api import Browser, Page

from tests.report.browser import COMMAND, chromium, look_at, painted
from tests.report.comparisons import comparison, entry
from topicweave.report.page import comparison_page
from topicweave.report.workload_page import workload_page
from topicweave.systems.registry import SYSTEMS as SYSTEM_NAMES

pytestmark = pytest.mark.skipif(COMMAND is None, reason="needs Chromium to look at pages")

NOISY: dict[str, Any] = {
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
def browser() -> Iterator[Browser]:
    with chromium() as one:
        yield one


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    texts = {"comparison": comparison_page(COMPARED), "workload": workload_page(DESCRIBED)}
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in texts}


def order(page: Page) -> list[str]:
    names: list[str] = page.locator("tbody th").all_text_contents()
    return names


def test_what_a_page_says_or_fetches_is_noticed(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "bad.html"
    file.write_text(
        "<script>console.log('said'); fetch('http://127.0.0.1:9/'); throw Error('thrown')</script>"
    )
    _, complaints = look_at(browser, file)
    assert {"said", "thrown", "http://127.0.0.1:9/"} <= set(complaints)


@pytest.mark.parametrize(("name", "drawn"), [("comparison", 15 + 3), ("workload", 3)])
@pytest.mark.parametrize("width", [1280, 375])
def test_everything_is_drawn_without_a_complaint_and_fits(
    browser: Browser, pages: dict[str, Path], name: str, drawn: int, width: int
) -> None:
    page, complaints = look_at(browser, pages[name], width=width)
    assert complaints == []
    sizes = page.evaluate(
        "[...document.querySelectorAll('.plot, .picture')].map(place => {"
        " const {width, height, right} = place.querySelector('svg').getBoundingClientRect();"
        " return [width, height, right, place.id]; })"
    )
    assert len(sizes) == drawn
    for across, down, right, figure in sizes:
        assert across > 200, figure
        assert down > 150, figure
        assert right <= width, figure
    marks = page.evaluate(
        "[...document.querySelectorAll('.plot')].map(plot => plot.querySelectorAll('.trace').length)"
    )
    assert all(marks)
    overflow = page.evaluate("document.scrollingElement.scrollWidth - document.documentElement.clientWidth")
    assert overflow <= 0


# Texts of figures that stick out of their picture, or lie on another one.
SPOILT = """
(() => {
  const spoilt = [];
  for (const card of document.querySelectorAll('.plot, .picture')) {
    const frame = card.getBoundingClientRect();
    const texts = [...card.querySelectorAll('svg text')].filter(text => text.checkVisibility() && text.textContent.trim());
    const boxes = texts.map(text => [text.textContent, text.getBoundingClientRect()]).filter(([, box]) => box.width);
    for (const [text, box] of boxes)
      if (box.left < frame.left - 1 || box.right > frame.right + 1) spoilt.push(`cut off: ${text}`);
    boxes.forEach(([text, a], place) => {
      for (const [other, b] of boxes.slice(place + 1)) {
        const [wide, high] = [Math.min(a.right, b.right) - Math.max(a.left, b.left), Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)];
        if (wide > 2 && high > 4) spoilt.push(`${text} on ${other}`);
      }
    });
  }
  return [document.querySelectorAll('.plot text, .picture text').length, spoilt];
})()
"""


@pytest.mark.parametrize("width", [1280, 390])
def test_labels_of_fourteen_systems_neither_overlap_nor_are_cut_off(
    browser: Browser, tmp_path: Path, width: int
) -> None:
    many = [
        entry(
            name,
            degree_mean=5.0 + 3 * place,
            degree_max=20.0 * place,
            repair_time=39.0 / (place + 1),
            **NOISY,
        )
        for place, name in enumerate(SYSTEM_NAMES)
    ]
    assert len(many) >= 14
    file = tmp_path / "many.html"
    file.write_text(comparison_page(comparison(*many)), encoding="utf-8")
    texts, spoilt = look_at(browser, file, width=width).page.evaluate(SPOILT)
    assert texts > 100
    assert spoilt == []


def test_the_answer_is_on_the_first_screen(browser: Browser, pages: dict[str, Path]) -> None:
    page, _ = look_at(browser, pages["comparison"], height=720)
    bottom = "document.querySelector('{}').getBoundingClientRect().bottom"
    assert page.evaluate(bottom.format(".findings")) < 720
    assert page.evaluate(bottom.format(".caution")) < 720


def test_a_click_on_a_heading_sorts_and_another_turns_it_round(
    browser: Browser, pages: dict[str, Path]
) -> None:
    page, _ = look_at(browser, pages["comparison"])
    assert order(page) == ["alpha", BETA, "gamma"]
    for expected in ([BETA, "gamma", "alpha"], ["alpha", "gamma", BETA]):
        page.locator("thead button").nth(1).click()
        assert order(page) == expected
    for expected in (["alpha", BETA, "gamma"], [BETA, "alpha", "gamma"]):
        # Noise, which gamma has none of: it stays last either way.
        page.locator("thead th[title*='not wanted'] button").click()
        assert order(page) == expected


def test_the_keyboard_is_enough(browser: Browser, pages: dict[str, Path]) -> None:
    page, complaints = look_at(browser, pages["comparison"])

    def tab_to(selector: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate(f"document.activeElement.matches({selector!r})"):
                return
        pytest.fail(f"no way to {selector} by Tab")

    tab_to("thead th:nth-child(2) button")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert order(page) == [BETA, "gamma", "alpha"]
    assert page.evaluate("document.activeElement.closest('th').getAttribute('aria-sort')") == "ascending"
    tab_to(".legend button")
    page.keyboard.press("Space")
    painted(page)
    lines = "document.querySelectorAll('#hops .scatterlayer .trace').length"
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "false"
    assert page.evaluate(lines) == 2
    assert "alpha" not in page.evaluate("document.querySelector('#memory .yaxislayer-above').textContent")
    page.keyboard.press("Space")
    painted(page)
    assert page.evaluate(lines) == 3
    tab_to(".export button")
    assert complaints == []


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_can_be_read_in_both_modes(browser: Browser, pages: dict[str, Path], dark: bool) -> None:
    # Loaded in the other mode: the plots have to follow, too.
    page, complaints = look_at(browser, pages["comparison"], dark=not dark)
    ground = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(ground)
    page.emulate_media(color_scheme="dark" if dark else "light")
    painted(page)
    assert page.evaluate(ground) != before
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    texts, faintest = page.evaluate(FAINTEST)
    assert texts > 300
    assert faintest[0][0] >= 4.5, faintest
    assert complaints == []


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
    page, complaints = look_at(browser, pages["comparison"], dark=True)
    files = page.evaluate(SAVE_ALL)
    assert complaints == []
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
    page, complaints = look_at(browser, pages["comparison"])

    def saved(figure: str, file_format: str) -> Path:
        with page.expect_download() as download:
            page.locator(f"[data-figure={figure}][data-format={file_format}]").press("Enter")
        assert download.value.suggested_filename == f"feeds-{figure}.{file_format}"
        assert complaints == []
        return Path(download.value.path())

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
