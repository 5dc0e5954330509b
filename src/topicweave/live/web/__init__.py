"""The pages of a node's HTTP port, with their scripts and styles. A node serves these files unchanged; they
load nothing from other servers.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

PAGES = {"/": "index.html", "/dashboard": "dashboard.html"}
ASSETS = {
    f"/{name}": name
    for name in (
        *("client.js", "index.js", "page.css"),
        *("dashboard.js", "dashboard.css", "drawing.js", "layout.js", "series.js"),
    )
}
"""They say nothing of the node, and a page's address, with its token, does not reach them: open to everybody."""
KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
# The browser itself keeps the promise that nothing comes from elsewhere, and nothing goes there.
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
}


def page_file(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _route(path: str, name: str) -> Route:
    async def serve(_request: Request) -> Response:
        return Response(page_file(name), headers=HEADERS, media_type=KINDS[name.rpartition(".")[2]])

    return Route(path, serve)


def routes(pages: Mapping[str, str] = PAGES) -> list[Route]:
    return [_route(path, name) for path, name in {**pages, **ASSETS}.items()]
