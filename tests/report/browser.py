"""The system's own Chromium, driven by Playwright: what the tests of pages share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, Page, sync_playwright

COMMAND = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
# Root may not use Chromium's sandbox; containers have little shared memory.
FLAGS = ("--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu")


class Looked(NamedTuple):
    """A page that is painted, and what it complained of."""

    page: Page
    complaints: list[str]
    """What stands in the console, exceptions among it, and what was fetched from anywhere but the page itself."""


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=COMMAND, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


def look_at(
    browser: Browser, file: Path, *, width: int = 1280, height: int = 800, dark: bool = False
) -> Looked:
    """Load a page in a tab that nobody used, and wait until it is painted."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        is_mobile=width < 600,
        color_scheme="dark" if dark else "light",
    )
    page, complaints = context.new_page(), []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))

    def asked(url: str) -> None:
        if not url.startswith(("file:", "data:", "blob:")):
            complaints.append(url)

    page.on("request", lambda request: asked(request.url))
    page.goto(file.as_uri())
    painted(page)
    return Looked(page, complaints)


def painted(page: Page) -> None:
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
