"""A web server on loopback with feeds of all kinds, which counts what it is asked for."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ITEM = "<item><title>{0} {1}</title><link>http://127.0.0.1/{0}/{1}</link><guid>{0}-{1}</guid></item>"
MALICIOUS = (
    "<item><title>&lt;script&gt;alert(1)&lt;/script&gt;free</title><link>javascript:alert(2)</link><guid>m</guid>"
    "<description>&lt;img src=x onerror=alert(3)&gt;gifts &quot;&gt;&lt;b&gt;</description></item>"
)


class Source:
    """`versions` counts the items of each good feed; those that are asked for as they were are answered with 304."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.unchanged: Counter[str] = Counter()
        self.items: dict[str, int] = {}
        self.robots = "User-agent: *\nDisallow: /private/\n"
        self.agents: set[str] = set()
        self.lock = threading.Lock()
        self.ending = threading.Event()
        self.url = ""

    def feed(self, name: str) -> str:
        return f"{self.url}/good/{name}"

    def keys(self, name: str) -> set[str]:
        return {f"{name}-{number}" for number in range(self.items.get(name, 3))}

    def document(self, name: str) -> bytes:
        count = self.items.get(name, 3)
        items = "".join(ITEM.format(name, number) for number in reversed(range(count)))
        if name == "malicious":
            items += MALICIOUS
        return f"<rss version='2.0'><channel><title>{name}</title>{items}</channel></rss>".encode()


class _Answering(BaseHTTPRequestHandler):
    server: "_Server"
    protocol_version = "HTTP/1.1"

    def log_message(self, *_words: object) -> None:
        pass

    def do_GET(self) -> None:
        source = self.server.source
        with source.lock:
            source.asked[self.path] += 1
            source.agents.add(self.headers.get("User-Agent", ""))
        kind, _, name = self.path.lstrip("/").partition("/")
        if kind == "robots.txt":
            self._answer(200, source.robots.encode(), "text/plain")
        elif kind in ("good", "private"):
            self._feed(name)
        elif kind == "moved":
            self._answer(301, b"", "text/plain", Location=f"/good/{name}")
        elif kind == "circle":
            self._answer(302, b"", "text/plain", Location=self.path)
        elif kind == "elsewhere":
            self._answer(302, b"", "text/plain", Location="file:///etc/passwd")
        elif kind == "busy":
            self._answer(429, b"", "text/plain", **{"Retry-After": "3600"})
        elif kind == "page":
            self._answer(200, b"<html><body>no feed</body></html>", "text/html")
        elif kind == "huge":
            self._endless(b"x" * 65_536, 0.0)
        elif kind == "slow":
            self._endless(b"<", 0.05)
        else:
            self._answer({"gone": 410, "broken": 500}.get(kind, 404), b"", "text/plain")

    def _feed(self, name: str) -> None:
        body = self.server.source.document(name)
        etag = f'"{len(body)}"'
        if self.headers.get("If-None-Match") == etag:
            with self.server.source.lock:
                self.server.source.unchanged[self.path] += 1
            self._answer(304, b"", "application/rss+xml", ETag=etag)
        else:
            self._answer(200, body, "application/rss+xml", ETag=etag)

    def _answer(self, status: int, body: bytes, kind: str, **more: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **more}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _endless(self, piece: bytes, pause: float) -> None:
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            while not self.server.source.ending.wait(pause):
                self.wfile.write(piece)
                self.wfile.flush()
        except OSError:
            pass  # The other end has had enough.


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, source: Source) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.source = source


@contextmanager
def serving() -> Iterator[Source]:
    source = Source()
    server = _Server(source)
    source.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield source
    finally:
        source.ending.set()
        server.shutdown()
        server.server_close()
        thread.join()
