"""The JavaScript client in Node.js and in a real browser: it publishes, subscribes, and comes back."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import topicweave
from tests.live.together import PROCESS_PATIENCE, eventually, kept_port, linked, local, processes, run
from tests.report.browser import COMMAND, FLAGS
from topicweave.live import LiveNode
from topicweave.live.settings import Limits

NODE_JS = shutil.which("node")
HTTP = "127.0.0.1:0"
SOON = 1000 * PROCESS_PATIENCE
"""Milliseconds."""
in_node_js = pytest.mark.skipif(NODE_JS is None, reason="Node.js is not installed")
in_browser = pytest.mark.skipif(COMMAND is None, reason="needs Chromium")


class Script:
    """The client in Node.js: what it was told to do, and what it said."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.said: list[dict[str, Any]] = []
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            self.said.append(json.loads(line))

    def do(self, *order: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order).encode() + b"\n")

    async def says(self, *lines: dict[str, Any]) -> None:
        await self.until(lambda: all(line in self.said for line in lines))

    async def until(self, condition: Callable[[], object]) -> None:
        await eventually(condition, f"it said {self.said}", PROCESS_PATIENCE)

    @property
    def events(self) -> list[str]:
        return [line["event"] for line in self.said if "event" in line]

    async def end(self) -> int:
        assert self._process.stdin is not None
        self._process.stdin.close()
        return await asyncio.wait_for(self._process.wait(), PROCESS_PATIENCE)


@cache
def websocket_flag(node_js: str) -> list[str]:
    """WebSocket is there by default from Node.js 22 on; 20 has it behind a flag."""
    has = subprocess.run(
        [node_js, "-p", "typeof WebSocket"], capture_output=True, text=True, check=True
    ).stdout
    return ["--experimental-websocket"] if has.strip() == "undefined" else []


@asynccontextmanager
async def script(address: object, query: str = "", ping_every: int = 10_000) -> AsyncIterator[Script]:
    assert NODE_JS is not None
    process = await asyncio.create_subprocess_exec(
        *(NODE_JS, *websocket_flag(NODE_JS), str(Path(__file__).with_name("client_test.mjs"))),
        *(f"ws://{address}/events{query}", str(ping_every)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield Script(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def door(node: LiveNode) -> str:
    assert node.http is not None
    return str(node.http.address)


CONNECTED = {"state": {"connected": True, "why": ""}}


@in_node_js
def test_node_js_publishes_subscribes_and_comes_back() -> None:
    async def test() -> None:
        async with topicweave.connect(local(name="ann", subscribe=("news",))) as ann:
            settings: dict[str, Any] = {"name": "door", "http": address, "join": (str(ann.address),)}
            async with topicweave.connect(local(**settings)) as bob:
                client = script(address)
                js = await client.__aenter__()
                js.do("subscribe", "news")
                await js.says(CONNECTED, {"subscribe": None})
                await eventually(lambda: linked(ann, bob))
                js.do("publishBytes", "news", [255, 0])
                await js.says({"event": "\xff\x00"})
                js.do("publish", "news", "hällo", {"waitFor": 1, "timeout": 30})
                await js.until(lambda: len(js.events) == 2)
                await js.until(lambda: any("publish" in line for line in js.said))
                receipts = [line["publish"] for line in js.said if "publish" in line]
                assert receipts[0]["accepted"] == 1
                js.do("subscribe", "")
                await js.until(lambda: any("length" in str(line.get("error")) for line in js.said))
            await js.until(lambda: js.said[-1].get("state", {}).get("connected") is False)
            for number in range(3):
                await ann.publish("news", b"meanwhile %d" % number)
            js.do("publish", "news", "waited")
            async with topicweave.connect(local(**settings)) as bob:
                await js.until(lambda: js.said.count(CONNECTED) >= 2 and bob.subscriptions == ["news"])
                wanted = {"waited", *(f"meanwhile {number}" for number in range(3))}
                await js.until(lambda: wanted <= set(js.events))
                assert len(set(js.events)) == len(js.events) == 6, "nothing comes twice"
                js.do("unsubscribe", "news")
                await js.until(lambda: not bob.subscriptions)
                assert await js.end() == 0
            await client.__aexit__(None, None, None)

    with kept_port() as address:
        run(test)


@in_node_js
def test_node_js_subscribes_to_patterns() -> None:
    async def test() -> None:
        limits = Limits(pattern_topics=2)
        async with (
            topicweave.connect(local(http=HTTP, limits=limits)) as node,
            script(door(node)) as js,
        ):
            js.do("subscribe", ["zone/+/door", "zone/7/#"])
            await js.says(CONNECTED, {"subscribe": None})
            for name in ("zone/7/lamp", "zone/8/lamp", "zone/8/door"):
                await node.publish(name, name.encode())
            await js.says({"event": "zone/7/lamp"}, {"event": "zone/8/door"})
            await node.publish("zone/9/door", b"too many")
            await js.until(lambda: any("incomplete" in line for line in js.said))
            assert "zone/8/lamp" not in js.events

    run(test)


@in_node_js
def test_node_js_notices_a_node_that_stands_still() -> None:
    async def test() -> None:
        with processes() as start:
            node = start("--insecure", "--preset", "local", "--http", HTTP)
            address = (await asyncio.to_thread(node.where))["http"]
            async with script(address, ping_every=1000) as js:
                js.do("subscribe", ["news", "sport"])
                await js.says({"subscribe": None})
                node.process.send_signal(signal.SIGSTOP)
                js.do("publish", "news", "who knows")
                await js.says({"state": {"connected": False, "why": "the node does not answer"}})
                await js.until(lambda: any("nobody knows" in str(line.get("error")) for line in js.said))
                node.process.send_signal(signal.SIGCONT)
                await js.until(lambda: js.said.count(CONNECTED) >= 2)
                js.do("publish", "sport", "again")
                await js.says({"event": "again"})

    run(test)


@in_node_js
def test_node_js_is_told_why_it_may_not_come_in() -> None:
    async def test() -> None:
        async with topicweave.connect(local(http=HTTP, token="secret")) as node:
            async with script(door(node), "?token=guess") as js:
                js.do("subscribe", "news")
                await js.says({"error": "the token is missing or wrong"})
                assert await js.end() == 0, "it does not try for ever"
            async with script(door(node), "?token=secret") as js:
                js.do("subscribe", "news")
                await js.says({"subscribe": None})

    run(test)


@in_browser
def test_the_page_in_a_browser_comes_back() -> None:
    """A real browser uses the page at /, with a token; the node goes away and comes again."""
    from playwright.async_api import async_playwright, expect

    async def test() -> None:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=COMMAND, args=FLAGS)
            page = await browser.new_page()
            complaints: list[str] = []
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("console", lambda line: complaints.append(line.text) if "Policy" in line.text else None)
            async with topicweave.connect(local(http=address, token="secret")) as node:
                await page.goto(f"http://{address}/?token=secret")
                await expect(page.locator("#state")).to_have_text("connected", timeout=SOON)
                await page.click("#subscribe button")
                await eventually(lambda: node.subscriptions == ["news"], patience=PROCESS_PATIENCE)
                await page.fill("#text", "hello <b>")
                await page.click("#publish button")
                await expect(page.locator("#events li")).to_have_text(
                    [f"news · {node.name}: hello <b>"], timeout=SOON
                )
            await expect(page.locator("#state")).to_contain_text("not connected", timeout=SOON)
            async with topicweave.connect(local(http=address, token="secret")) as node:
                await eventually(
                    lambda: node.subscriptions == ["news"], "it subscribes again", PROCESS_PATIENCE
                )
                await node.publish("news", b"after")
                await expect(page.locator("#events li")).to_have_count(2, timeout=SOON)
            assert complaints == []
            await browser.close()

    with kept_port() as address:
        run(test)
