"""A comparison kept whole, so that its table and page can be made again without a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from topicweave.errors import BadInput
from topicweave.report.comparison import Comparison, Entry, Setting
from topicweave.report.constraints import Constraint
from topicweave.report.files import write_bytes
from topicweave.systems.presets import PAPER

FILE = "results.msgpack"
"""MessagePack and not JSON: what is infinite or no number stays so."""


def keep(comparison: Comparison, folder: Path) -> None:
    write_bytes(folder / FILE, msgspec.msgpack.encode(comparison))


def kept_comparison(folder: Path) -> Comparison:
    """What `keep` wrote. Raises `BadInput`."""
    path = folder / FILE
    try:
        told: dict[str, Any] = msgspec.msgpack.decode(path.read_bytes())
        return Comparison(
            workload=told["workload"],
            # One that names no preset ran with the systems' defaults.
            setting=msgspec.convert({"preset": PAPER, **told["setting"]}, Setting),
            entries=tuple(msgspec.convert(entry, Entry) for entry in told["entries"]),
            command=told["command"],
            cuts=tuple(told["cuts"]),
            constraints=tuple(msgspec.convert(one, Constraint) for one in told["constraints"]),
            notes=tuple(told["notes"]),
            prefer=told.get("prefer", ""),
        )
    except OSError as error:
        raise BadInput(
            f"{path}: {error.strerror}; name a folder that `topicweave compare` or `advise` wrote"
        ) from None
    except (msgspec.MsgspecError, KeyError, TypeError) as error:
        raise BadInput(f"{path}: not what `topicweave compare` writes ({error}); compare again") from None
