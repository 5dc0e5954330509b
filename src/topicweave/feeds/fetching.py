"""Asking a source politely: only for changes, not against its robots.txt, not too often one host, and never
for too much.
"""

from __future__ import annotations

import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPMessage
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.robotparser import RobotFileParser

from topicweave import __version__
from topicweave.feeds.items import web_link

AGENT = f"Topicweave/{__version__} (feed reader; readers share polls)"
MOST_BYTES = 4 * 1024 * 1024
MOST_SECONDS = 30.0
ROBOTS_LAST = 86_400.0
MOST_HOSTS = 10_000
GAP = 1.0
"""Seconds between two requests to one host, unless its robots.txt asks for more."""
MOST_GAP = 60.0


class SourceAnswer(NamedTuple):
    """`body` is None if nothing has changed, or if there is trouble."""

    body: bytes | None
    content_type: str = ""
    etag: str = ""
    modified: str = ""
    trouble: str = ""
    wait: float = 0.0
    """Seconds that the source wants to be left alone."""


class _Host:
    """What is known of one."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.rules: RobotFileParser | None = None
        self.read_at = 0.0
        self.last = -MOST_GAP


class Fetcher:
    """Used from several threads; `requests` counts what it sent, robots.txt included."""

    def __init__(
        self, wall: Callable[[], float], gap: float = GAP, most_seconds: float = MOST_SECONDS
    ) -> None:
        self.requests = 0
        self._wall = wall
        self._closed = threading.Event()
        self._gap = gap
        self._most_seconds = most_seconds
        self._hosts: dict[str, _Host] = {}
        self._lock = threading.Lock()
        # Nothing but the web: no files, no FTP.
        self._opener = urllib.request.OpenerDirector()
        for handler in (
            urllib.request.ProxyHandler(),
            urllib.request.HTTPHandler(),
            urllib.request.HTTPSHandler(),
            urllib.request.HTTPDefaultErrorHandler(),
            urllib.request.HTTPRedirectHandler(),
            urllib.request.HTTPErrorProcessor(),
        ):
            self._opener.add_handler(handler)

    def close(self) -> None:
        """Whoever waits for its turn gives up."""
        self._closed.set()

    def fetch(self, url: str, etag: str = "", modified: str = "") -> SourceAnswer:
        """Never raises: what goes wrong is the answer's trouble."""
        if web_link(url) != url:
            return SourceAnswer(None, trouble="not an address of the web")
        parts = urlsplit(url)
        host = self._host(f"{parts.scheme}://{parts.netloc}")
        with host.lock:
            try:
                rules = self._rules(host, f"{parts.scheme}://{parts.netloc}/robots.txt")
                if rules is None:
                    return SourceAnswer(None, trouble="robots.txt cannot be had now")
                if not rules.can_fetch(AGENT, url):
                    return SourceAnswer(None, trouble="robots.txt forbids it")
                asked = {"If-None-Match": etag, "If-Modified-Since": modified}
                return self._get(host, url, {name: value for name, value in asked.items() if value})
            except urllib.error.HTTPError as error:
                return self._refused(error, etag, modified)
            except (OSError, HTTPException, ValueError) as error:
                return SourceAnswer(None, trouble=_reason(error))

    def _host(self, name: str) -> _Host:
        with self._lock:
            if len(self._hosts) >= MOST_HOSTS and name not in self._hosts:
                del self._hosts[next(iter(self._hosts))]
            return self._hosts.setdefault(name, _Host())

    def _rules(self, host: _Host, url: str) -> RobotFileParser | None:
        now = time.monotonic()
        if host.rules is not None and now - host.read_at < ROBOTS_LAST:
            return host.rules
        rules = RobotFileParser(url)
        try:
            answer = self._get(host, url, {})
            rules.parse((answer.body or b"").decode("utf-8", "replace").splitlines())
        except urllib.error.HTTPError as error:
            error.close()
            if error.code >= 500 or error.code == 429:
                return None
            rules.parse(["User-agent: *", "Disallow: /"] if error.code in (401, 403) else [])
        host.rules, host.read_at = rules, now
        return rules

    def _get(self, host: _Host, url: str, headers: dict[str, str]) -> SourceAnswer:
        asked = host.rules.crawl_delay(AGENT) if host.rules is not None else None
        gap = min(max(self._gap, float(asked or 0)), MOST_GAP)
        if self._closed.wait(max(0.0, host.last + gap - time.monotonic())):
            raise OSError("the reader ends")
        host.last = time.monotonic()
        with self._lock:
            self.requests += 1
        request = urllib.request.Request(url, headers={"User-Agent": AGENT, **headers})
        deadline = time.monotonic() + self._most_seconds
        with self._opener.open(request, timeout=self._most_seconds / 3) as response:
            body = bytearray()
            while piece := response.read1(65_536):
                body += piece
                if len(body) > MOST_BYTES:
                    return SourceAnswer(None, trouble=f"more than {MOST_BYTES >> 20} MiB")
                if time.monotonic() > deadline:
                    return SourceAnswer(None, trouble=f"not done after {self._most_seconds:.0f} s")
            said: HTTPMessage = response.headers
            return SourceAnswer(
                bytes(body),
                said.get("Content-Type", ""),
                said.get("ETag", "")[:300],
                said.get("Last-Modified", "")[:300],
            )

    def _refused(self, error: urllib.error.HTTPError, etag: str, modified: str) -> SourceAnswer:
        error.close()
        if error.code == 304:
            return SourceAnswer(None, "", etag, modified)
        trouble = "gone for good" if error.code == 410 else f"the source answers {error.code}"
        return SourceAnswer(
            None, trouble=trouble, wait=_seconds(error.headers.get("Retry-After", ""), self._wall())
        )


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, socket.timeout | TimeoutError):
        return "no answer in time"
    return (str(getattr(cause, "strerror", "") or cause) or type(cause).__name__)[:200]


def _seconds(retry_after: str, now: float) -> float:
    """What a source means by `Retry-After`: seconds, or a moment.

    >>> _seconds("120", 0.0), _seconds("soon", 0.0), _seconds("Thu, 01 Jan 1970 00:01:40 GMT", 40.0)
    (120.0, 0.0, 60.0)
    """
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - now)
    except (TypeError, ValueError):
        return 0.0
