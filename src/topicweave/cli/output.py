"""What commands print: tables and JSON on stdout."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console, RenderableType

from topicweave.report.files import json_text


def console() -> Console:
    """stdout; without marks of its own in our texts (names may hold brackets)."""
    return Console(markup=False, highlight=False)


def show(renderable: RenderableType) -> None:
    """Print a table. Where nobody watches (a file, a pipe) it takes the width it needs, so that nothing is cut."""
    out = console()
    if not out.is_terminal:
        out.width = max(out.width, 10_000)
        out.width = max(80, out.measure(renderable).maximum)
    out.print(renderable)


def print_json(value: Any) -> None:
    sys.stdout.write(json_text(value))
    sys.stdout.flush()
