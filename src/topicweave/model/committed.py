"""Which part files of a table count, where the pipeline wrote the folder: about.json says so.

The pipeline adds parts while it works and names them in about.json when all are there. So a folder may hold parts of
an attempt that was stopped, or of tables that are being replaced; they are in no table.
"""

from __future__ import annotations

import json
from pathlib import Path

from topicweave.errors import BadInput

ABOUT = "about.json"
WORK = "_work"


def counted_parts(table: Path) -> list[Path] | None:
    """The parts of `table` (FOLDER/NAME.parquet) that count; None if nothing says which."""
    folder = table.parent
    try:
        about = json.loads((folder / ABOUT).read_bytes())
    except FileNotFoundError:
        if (folder / WORK / "plan.json").exists():
            raise BadInput(f"{folder}: not finished; run the command that makes it again") from None
        return None
    except (OSError, ValueError) as error:
        raise BadInput(f"{folder / ABOUT}: not readable ({error}); make the folder anew") from None
    tables = about.get("tables") if isinstance(about, dict) else None
    if not isinstance(tables, dict):
        return None
    return [table / part["name"] for part in tables.get(table.name, {"parts": []})["parts"]]
