"""The dashboard in a real Chromium: what one node sees, a swarm of processes and the buttons that hurt and
heal it, a recording of many nodes.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright")

from playwright.async_api import Page, async_playwright, expect

import topicweave
from tests.live.together import PROCESS_PATIENCE, eventually, linked, local, run
from tests.report.browser import COMMAND, FLAGS
from topicweave.live.dashboard.figures import parts
from topicweave.live.dashboard.picture import Picture
from topicweave.live.dashboard.recording import FrameFile
from topicweave.live.dashboard.watch import key_of
from topicweave.live.dashboard.words import Frame, Hop, NodeTick
from topicweave.model.ids import ring_id

pytestmark = pytest.mark.skipif(COMMAND is None, reason="needs Chromium to look at pages")
SOON = 300_000
"""Milliseconds: far beyond what anything takes."""
expect.set_options(timeout=SOON)

PAINTED = """() => {
  const canvas = document.querySelector("#canvas");
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let count = 0;
  for (let at = 3; at < data.length; at += 4) if (data[at]) count++;
  return count;
}"""


async def painted(page: Page, more_than: int) -> None:
    """Return when so many points of the picture are painted: text may be there a moment sooner."""
    while await page.evaluate(PAINTED) <= more_than:
        await asyncio.sleep(0.05)


@asynccontextmanager
async def browser_page(url: str, **context: Any) -> AsyncIterator[Page]:
    """A page that must not complain, nor fetch anything from elsewhere."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=COMMAND, args=FLAGS)
        page = await (await browser.new_context(**context)).new_page()
        complaints: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda line: complaints.append(line.text))
        home = url.split("?", maxsplit=1)[0].rsplit("/", 1)[0]

        def asked(address: str) -> None:
            if not address.startswith((home, home.replace("http", "ws"), "data:")):
                complaints.append(address)

        page.on("request", lambda request: asked(request.url))
        await page.goto(url)
        await expect(page.locator("#state")).to_have_text("connected")
        try:
            yield page
            assert complaints == []
        finally:
            await browser.close()


@asynccontextmanager
async def command(*arguments: str) -> AsyncIterator[str]:
    """`topicweave swarm` in a process of its own; where its page is."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "topicweave.cli", "swarm", *arguments),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        line = (await process.stdout.readline()).decode()
        assert line.startswith("dashboard: "), line
        yield line.split()[1]
        process.send_signal(signal.SIGTERM)
        rest, _ = await asyncio.wait_for(process.communicate(), PROCESS_PATIENCE)
        assert (process.returncode, rest) == (0, b"stopped\n")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def log_has(page: Page, pattern: str, kind: str = "") -> None:
    lines = page.locator(f"#log li{'.' + kind if kind else ''}")
    await expect(lines.filter(has_text=re.compile(pattern)).first).to_be_attached(timeout=SOON)


def test_a_nodes_own_page_shows_what_it_sees() -> None:
    async def test() -> None:
        async with (
            topicweave.connect(local(name="ann", subscribe=("news",))) as ann,
            topicweave.connect(
                local(
                    name="bob",
                    subscribe=("news", "<b>"),
                    http="127.0.0.1:0",
                    token="a/secret?",
                    join=(str(ann.address),),
                )
            ) as bob,
        ):
            await eventually(lambda: linked(ann, bob))
            assert bob.http is not None
            assert bob.world.observers == []
            url = f"http://{bob.http.address}/dashboard?token=a/secret%3F"
            async with browser_page(url) as page:
                await expect(page.locator("#title")).to_contain_text("bob")
                await expect(page.locator("#legend")).to_contain_text("2 nodes")
                await expect(page.locator("#orders")).to_be_hidden()
                await ann.publish("news", b"hello")
                await expect(page.locator("#following")).to_contain_text("an event on news")
                await painted(page, 100)
                await page.fill("#find", "bo")
                await page.press("#find", "Enter")
                await expect(page.locator("#about dd").first).to_have_text("bob")
                await expect(page.locator("#about .topic")).to_have_text(["<b>", "news"])
                hit = page.locator("[data-figure=hit_ratio] output")
                await expect(hit).to_have_text("not known")
            await eventually(lambda: bob.world.observers == [], "it is looked at only while a page looks")

    run(test)


def test_the_page_of_a_swarm_kills_stops_divides_and_heals() -> None:
    """Real processes are killed and stopped; one sees who is gone, and that the rest repairs itself."""

    async def test() -> None:
        options = ("--nodes", "6", "--topics", "3", "--topics-per-node", "2", "--rate", "20")
        async with command("--dashboard", *options) as url, browser_page(url) as page:
            for number in range(6):
                await log_has(page, f"node-00{number} joined", "join")
            await expect(page.locator("[data-figure=nodes] output")).to_have_text("6.00")
            await expect(page.locator("[data-figure=topics_apart] output")).to_have_text("0.00")
            await expect(page.locator("#following")).to_contain_text("receptions")
            await page.click("button[name=kill]")
            await expect(page.locator("#answer")).to_have_text("choose the nodes to kill")

            await chosen(page, "node-003")
            await page.click("button[name=kill]")
            await log_has(page, "node-003 is gone", "loss")
            await expect(page.locator("#about")).to_contain_text("killed")
            await expect(page.locator("[data-figure=nodes] output")).to_have_text("5.00")
            await page.click("button[name=restart]")
            await log_has(page, "node-003 is back", "join")

            await chosen(page, "node-001")
            await page.click("button[name=stop]")
            await expect(page.locator("#about")).to_contain_text("stopped")
            await log_has(page, r"connections lost", "loss")
            await page.click("button[name=restart]")
            await log_has(page, "node-001 goes on", "join")

            await page.focus("#canvas")
            await page.press("#canvas", "Escape")
            await page.click("button[name=partition]")
            await log_has(page, "partition: node-", "order")
            in_parts = page.locator("[data-figure=parts] output")
            await expect(in_parts).to_have_text("2.00")
            await page.click("button[name=heal]")
            await log_has(page, "heal: node-", "order")
            await expect(in_parts).to_have_text("1.00")
            await log_has(page, "all topics are in one part again", "repair")

    run(test)


async def chosen(page: Page, name: str) -> None:
    await page.fill("#find", name)
    await page.press("#find", "Enter")
    await expect(page.locator("#about dd").first).to_have_text(name)


def test_when_the_swarm_ends_all_its_processes_do() -> None:
    async def test() -> None:
        async with command("--dashboard", "--nodes", "3", "--rate", "0") as url, browser_page(url) as page:
            for name in ("node-001", "node-002"):
                await log_has(page, f"{name} joined")
            await chosen(page, "node-001")
            await page.click("button[name=stop]")
            await expect(page.locator("#about")).to_contain_text("stopped")
            # Their parent is the process that this test started.
            assert len(nurseries()) >= 4
        await eventually(lambda: not nurseries(), "stopped ones, too", patience=PROCESS_PATIENCE)

    def nurseries() -> list[str]:
        """The processes of swarms that this test's own children started."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                    environment = (entry / "environ").read_bytes()
                except OSError:
                    continue
                if b"topicweave.live.dashboard.nursery" in words and mark.encode() in environment:
                    found.append(entry.name)
        return found

    if not Path("/proc").is_dir():
        pytest.skip("needs /proc to see processes")
    mark = f"DASHBOARD_TEST={os.getpid()}"
    os.environ["DASHBOARD_TEST"] = str(os.getpid())
    try:
        run(test)
    finally:
        del os.environ["DASHBOARD_TEST"]


def record(file: Path, nodes: int, seconds: int, quiet: int = 0) -> None:
    """Made up: a ring with chords, and an event that goes round; then little happens for a while."""
    shown = Picture("made up", whole_swarm=True)
    keys = [key_of(ring_id(f"node-{number}")) for number in range(nodes)]
    topic = key_of(ring_id("topic-1"))
    with FrameFile(file, shown.whole(1000.0)) as recording:
        for step in range(seconds * 5):
            time = 1000.0 + step / 5
            for number, key in enumerate(keys):
                tick = NodeTick(key, f"node-{number}", time)
                if step == 0:
                    tick.topics = [f"topic-{number % 7}", f"topic-{number % 11}"]
                    tick.links = sorted(
                        (keys[(number + far) % nodes], kind)
                        for far, kind in ((1, "ring"), (7, "greedy"), (61, "greedy"), (127, "random"))
                    )
                if number % 5 == step % 5:
                    sender, event = keys[number - 1], f"{step // 10}"
                    tick.hops = [Hop(event, topic, sender, key, 1 + number % 8, True, True, time)]
                shown.take(tick)
            recording.add(shown.frame(time))
        for later in range(1, quiet + 1):
            hop = Hop(f"later {later}", topic, keys[0], keys[1], 1, True, True, time + later)
            recording.add(Frame(time + later, hops=[hop]))


def test_what_is_chosen_outlasts_the_end_of_a_recording(tmp_path: Path) -> None:
    """It begins anew, without nodes at first."""
    file = tmp_path / "short.jsonl"
    record(file, 3, 2)
    # At a moment at which there are nodes: it has none again and again.
    choose = """() => new Promise((done) => {
        const legend = document.querySelector("#legend"), sought = document.querySelector("#find");
        const watch = new MutationObserver(look);
        function look() {
            if (!legend.textContent.includes("3 nodes")) return;
            watch.disconnect();
            sought.value = "node-1";
            sought.dispatchEvent(new Event("input"));
            document.querySelector("#search").requestSubmit();
            done();
        }
        watch.observe(legend, { childList: true, subtree: true, characterData: true });
        look();
    })"""
    anew = """() => new Promise((done) => new MutationObserver(() => {
        const text = document.querySelector("#legend").textContent;
        if (text.includes("0 nodes")) window.was_empty = true;
        else if (window.was_empty) done(document.querySelector("#about").textContent);
    }).observe(document.querySelector("#legend"), { childList: true, subtree: true, characterData: true }))"""

    async def test() -> None:
        async with command("--play", str(file)) as url, browser_page(url) as page:
            await page.evaluate(choose)
            await page.evaluate(anew)
            await expect(page.locator("#about dd").first).to_have_text("node-1")

    run(test)


def test_a_recording_of_many_nodes_in_the_dark_on_a_phone(tmp_path: Path) -> None:
    file = tmp_path / "many.jsonl"
    # It must not begin anew, with no nodes at first, while keys are pressed.
    record(file, 500, 10, quiet=600)

    async def test() -> None:
        phone = {
            "viewport": {"width": 390, "height": 800},
            "is_mobile": True,
            "has_touch": True,
            "color_scheme": "dark",
        }
        async with command("--play", str(file)) as url, browser_page(url, **phone) as page:
            await expect(page.locator("#title")).to_have_text("made up (recorded)")
            await expect(page.locator("#legend")).to_contain_text("500 nodes")
            await expect(page.locator("#legend")).to_contain_text("greedy (1000)")
            await expect(page.locator("#following")).to_contain_text("topic-1")
            assert await page.evaluate("document.documentElement.scrollWidth") == 390, "nothing sticks out"
            back = "getComputedStyle(document.body).backgroundColor"
            dark = await page.evaluate(back)
            await page.emulate_media(color_scheme="light")
            assert await page.evaluate(back) != dark
            await page.focus("#canvas")
            await page.press("#canvas", "ArrowRight")
            await expect(page.locator("#about dd").first).to_have_text("node-0")
            await page.press("#canvas", "Shift+ArrowRight")
            await expect(page.locator("#about")).to_contain_text("2 nodes: node-0, node-1")
            await page.press("#canvas", "Escape")
            await expect(page.locator("#about")).to_have_text("nothing")
            await page.fill("#find", "topic-3")
            await page.press("#find", "Enter")
            wanting = {str(number) for number in range(500) if 3 in (number % 7, number % 11)}
            links = {
                str(number): [str((number + far) % 500) for far in (1, 7, 61, 127)] for number in range(500)
            }
            about = page.locator("#about dd")
            await expect(about.nth(1)).to_have_text(str(len(wanting)))
            await expect(about.nth(2)).to_have_text(str(parts(wanting, links)))
            rate = page.locator("html[data-frames-per-second]")
            await expect(rate).to_be_attached(timeout=SOON)
            await painted(page, 1000)

    run(test)
