"""The Spark pipeline: work that grows with the data. Spark runs in this process by default, or on a cluster
by its master's URL.

Importing this package does not import Spark; `topicweave.pipeline.session` does, when a session is started. From a
notebook: `spark_session`; `tables_in`, `generated`, `imported` and `sampled`, which give DataFrames; and

    from topicweave.pipeline import measure
    measures = measure(tables, subscriptions)       # DataFrames in, a DataFrame (run, measure, value) out
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from topicweave.pipeline.frames import generated, imported, sampled, tables_in
    from topicweave.pipeline.measuring.api import measure
    from topicweave.pipeline.session import spark_session

__all__ = ["generated", "imported", "measure", "sampled", "spark_session", "tables_in"]

_WHERE = {
    "spark_session": "session",
    "tables_in": "frames",
    "generated": "frames",
    "imported": "frames",
    "sampled": "frames",
    "measure": "measuring.api",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
