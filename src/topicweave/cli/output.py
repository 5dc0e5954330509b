"""What commands leave behind: tables and JSON on stdout, whole files on disk."""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType

from topicweave.errors import BadInput


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


def json_text(value: Any) -> str:
    """JSON with a newline at its end; numbers that JSON does not have become null."""
    return json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def make_folder(folder: Path) -> None:
    """Before the work and not after it: that the disk refuses should not be news at the end."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(
            f"{folder}: cannot make this folder ({error.strerror}); choose another --out"
        ) from None


def write_whole(path: Path, text: str) -> None:
    """A reader finds the old file or the new one, never half of one."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
