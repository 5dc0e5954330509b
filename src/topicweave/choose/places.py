"""Where answers go: each data set has a folder of its own, and nobody's results are replaced by another's."""

from __future__ import annotations

import json
from itertools import chain, count
from pathlib import Path

from topicweave.errors import BadInput

OUT = Path("out")
RUNS = OUT / "runs"


def own_folder(kind: str, source: str | Path) -> Path:
    """`out/compare/my` for `data/my.csv`; with a number behind it if that holds the results of another file.

    >>> str(own_folder("compare", "data/soc-Epinions1.txt.xz"))
    'out/compare/soc-Epinions1'
    """
    path = Path(source)
    name = path.name.split(".")[0] or path.resolve().name or "subscriptions"
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(folder for one in names if not _foreign(folder := OUT / kind / one, path))


def refuse_foreign(out: Path, source: Path) -> None:
    """Raise if the folder holds the results of another file."""
    if other := _foreign(out, source):
        raise BadInput(
            f"{out}: holds the results of {other}; choose another --out, or remove {out / 'compare.json'}"
        )


def _foreign(folder: Path, source: Path) -> str | None:
    """Whose results are there, if they are somebody else's."""
    try:
        told = json.loads((folder / "compare.json").read_bytes())["workload"]["source"]
        return None if Path(told).resolve() == source.resolve() else str(told)
    except (OSError, ValueError, KeyError, TypeError):
        return None
