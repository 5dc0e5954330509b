"""What grows with the data, on Spark: embedded in this process by default, on a cluster by its master's URL.

Importing this package does not import Spark; `topicweave.pipeline.session` does, when a session is started.

    from topicweave.pipeline import measure
    measures = measure(tables, subscriptions)       # DataFrames in, a DataFrame (run, measure, value) out
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from topicweave.pipeline.measuring.api import measure

__all__ = ["measure"]


def __getattr__(name: str) -> Any:
    if name != "measure":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from topicweave.pipeline.measuring.api import measure

    return measure
