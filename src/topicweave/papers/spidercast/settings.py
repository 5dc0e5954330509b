"""What the studies of SpiderCast share: the sizes, and the setting of §3."""

from __future__ import annotations

from typing import Any

from topicweave.papers.study import Scale
from topicweave.runs.overlay import SettledOverlay
from topicweave.runs.sources import GeneratedWorkload

PAPER_SIZES = (1000, 2000, 4000, 6000, 8000, 10_000)
SMOKE_SIZES = (200, 400)
DISTRIBUTIONS = ("uniform", "rss", "zipf1", "nyse")

SETTLED = 10.0
"""Virtual seconds after which the overlay no longer changes: all coverage is reached within 4, trimming within 8."""


def sizes_of(scale: Scale) -> tuple[int, ...]:
    return PAPER_SIZES if scale == "paper" else SMOKE_SIZES


def settled(
    nodes: int,
    seed: int,
    system: str = "spidercast",
    parameters: dict[str, Any] | None = None,
    *,
    topics: int = 100,
    popularity: str = "rss",
    lists: tuple[int, int] = (10, 10),
    **more: Any,
) -> SettledOverlay:
    """A run in the paper's setting: 100 topics, RSS popularity, 10 topics per node, unless said otherwise."""
    workload = GeneratedWorkload(nodes, topics, popularity, *lists, seed=seed)
    return SettledOverlay(
        system=system,
        parameters={"bridges": 0, **(parameters or {})},
        workload=workload,
        seed=seed,
        settle=more.pop("settle", SETTLED),
        **more,
    )
