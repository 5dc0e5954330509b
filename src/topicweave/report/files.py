"""What is left on disk: whole files, and JSON that every reader takes."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from topicweave.errors import BadInput, TopicweaveError


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
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise TopicweaveError(
            f"{path}: cannot write it ({error.strerror}); make room or choose another folder"
        ) from error
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
