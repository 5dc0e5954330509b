"""A headless Chromium, spoken to over its DevTools protocol: as much of it as the tests of pages need."""

from __future__ import annotations

import json
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from websockets.sync.client import ClientConnection, connect

COMMAND = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--remote-debugging-port=0",
)
PATIENCE = 30.0
"""Seconds without a word after which something must be wrong."""


class Browser:
    """One tab of a browser of its own; a context, at whose end the browser is gone."""

    def __init__(self, folder: Path) -> None:
        assert COMMAND is not None
        self.downloads = folder / "downloads"
        self.downloads.mkdir()
        self._process = subprocess.Popen(
            [COMMAND, *FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._opened = ExitStack()
        self._socket: ClientConnection | None = None
        self._session = ""
        self._sent = 0
        self.events: list[dict[str, Any]] = []
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        assert self._process.stderr is not None
        said = (line.strip() for line in self._process.stderr)
        prefix = "DevTools listening on "
        address = next(line.removeprefix(prefix) for line in said if line.startswith(prefix))
        self._socket = self._opened.enter_context(
            connect(address, max_size=None, compression=None, proxy=None)
        )
        [tab] = [
            target for target in self.call("Target.getTargets")["targetInfos"] if target["type"] == "page"
        ]
        attached = self.call("Target.attachToTarget", targetId=tab["targetId"], flatten=True)
        self.call(
            "Browser.setDownloadBehavior",
            behavior="allow",
            downloadPath=str(self.downloads),
            eventsEnabled=True,
        )
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """What the browser answers; events that come before the answer are kept."""
        assert self._socket is not None
        self._sent += 1
        message = {"id": self._sent, "method": method, "params": parameters}
        self._socket.send(json.dumps(message | ({"sessionId": self._session} if self._session else {})))
        while True:
            heard = self._hear()
            if heard.get("id") == self._sent:
                assert "error" not in heard, f"{method}: {heard['error']}"
                answer: dict[str, Any] = heard["result"]
                return answer

    def wait_for(self, method: str, **values: Any) -> dict[str, Any]:
        """The first event of this name, with these values, since `events` was last cleared."""

        def fits(event: dict[str, Any]) -> bool:
            return event.get("method") == method and values.items() <= event["params"].items()

        while True:
            for event in self.events:
                if fits(event):
                    found: dict[str, Any] = event["params"]
                    return found
            self._hear()

    def _hear(self) -> dict[str, Any]:
        assert self._socket is not None
        heard: dict[str, Any] = json.loads(self._socket.recv(PATIENCE))
        if "method" in heard:
            self.events.append(heard)
        return heard

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, or what its promise gives."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True, userGesture=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def look_at(self, page: Path, *, width: int = 1280, height: int = 800, dark: bool = False) -> None:
        """Load a page, and wait until it is painted."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.set_mode(dark=dark)
        self.events.clear()
        self.call("Page.navigate", url=page.as_uri())
        self.wait_for("Page.loadEventFired")
        self.painted()

    def set_mode(self, *, dark: bool) -> None:
        mode = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[mode])

    def painted(self) -> None:
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def press(self, key: str, code: int, text: str = "") -> None:
        """A key, as somebody at the keyboard would."""
        about = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="rawKeyDown", **about)
        if text:
            self.call("Input.dispatchKeyEvent", type="char", text=text, **about)
        self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def complaints(self) -> list[str]:
        """What stands in the console, exceptions among it, and what was fetched from anywhere but the page itself."""
        found = []
        for event in self.events:
            told = event.get("params", {})
            match event.get("method"):
                case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded":
                    found.append(json.dumps(told)[:500])
                case "Network.requestWillBeSent":
                    if not told["request"]["url"].startswith(("file:", "data:", "blob:")):
                        found.append(told["request"]["url"])
        return found

    def downloaded(self, selector: str) -> Path:
        """The file that pressing a button leads to. Chromium lets a page save ten, then it would ask somebody."""
        self.events.clear()
        self.evaluate(f"document.querySelector({selector!r}).focus()")
        self.press("Enter", 13, "\r")
        begun = self.wait_for("Browser.downloadWillBegin")
        self.wait_for("Browser.downloadProgress", guid=begun["guid"], state="completed")
        return self.downloads / str(begun["suggestedFilename"])

    def close(self) -> None:
        self._opened.close()
        self._process.terminate()
        self._process.wait()
        assert self._process.stderr is not None
        self._process.stderr.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
