"""How many frames a second the dashboard draws of a recording of many simulated nodes, in Chromium.
docs/dashboard.md.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil

from benchmarks.measuring import measured
from benchmarks.sheet import Column, Sheet
from topicweave.live.swarm import draw_interests
from topicweave.runs.simulated_show import record_simulation

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ("--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu")
RATES = """(seconds) => new Promise((done) => {
  const rates = [];
  const page = document.documentElement;
  const look = setInterval(() => {
    rates.push(Number(page.dataset.framesPerSecond));
    if (rates.length >= seconds) { clearInterval(look); done(rates); }
  }, 1000);
})"""


def recorded(file: Path, nodes: int, seconds: float) -> int:
    return record_simulation("spidercast", draw_interests(nodes, 100, 10), 10.0, seconds, 0, file)


def browsers_time() -> float:
    """Processor seconds of all of Chromium."""
    processes = [one for one in psutil.Process().children(recursive=True) if "chrom" in one.name()]
    return sum(sum(one.cpu_times()[:2]) for one in processes)


def rates(file: Path, nodes: int, seconds: int) -> tuple[list[int], float]:
    """Frames in each of so many seconds, once all nodes are there, and processor seconds for a frame."""
    from playwright.sync_api import expect, sync_playwright

    play = [sys.executable, "-m", "topicweave.cli", "swarm", "--play", str(file)]
    with (
        subprocess.Popen(play, stdout=subprocess.PIPE, text=True) as playing,
        sync_playwright() as playwright,
    ):
        assert playing.stdout is not None
        try:
            url = playing.stdout.readline().split()[1]
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(url)
            expect(page.locator("#legend")).to_contain_text(f"{nodes} nodes", timeout=120_000)
            expect(page.locator("html[data-frames-per-second]")).to_be_attached(timeout=120_000)
            before = browsers_time()
            found: list[int] = page.evaluate(RATES, seconds)
            used = browsers_time() - before
            browser.close()
            return found, used / max(1, sum(found))
        finally:
            playing.terminate()


def run(quick: bool) -> list[Sheet]:
    sheet = Sheet(
        "show",
        "The dashboard plays a recording of simulated nodes, in Chromium",
        1,
        Column("nodes", ",d"),
        Column("recorded, s", ".0f"),
        Column("CPU s for that", ".0f", "less"),
        Column("file, MB", ".1f", "less"),
        Column("frames per s: median", ".0f", "more"),
        Column("least", ".0f", "more"),
        Column("CPU ms per frame", ".0f", "less"),
    )
    for nodes in (20,) if quick else (100, 500):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "recording.jsonl"
            seconds = 3 if quick else 30
            made = measured(recorded, file, nodes, float(seconds))
            size = file.stat().st_size / 1e6
            if CHROMIUM is None:
                sheet.add(nodes, seconds, made.cpu, size, None, None, None)
                continue
            found, used = rates(file, nodes, 2 if quick else 20)
            found.sort()
            sheet.add(nodes, seconds, made.cpu, size, found[len(found) // 2], found[0], 1000 * used)
    return [sheet]
