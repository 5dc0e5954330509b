"""The highest degree in the overlay, as an epidemic maximum on heartbeats.

LowODA spares whoever has reached the maximum degree. With that maximum taken over the shadow set alone, hubs
grew faster than with that over all nodes (docs/systems/omen.md, measured); so each node passes on the highest
degree it lately heard of.

Rule kept: only the node that has a degree makes news of it; others pass it on older, and drop it when it is
too old. So the degree of a departed hub is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable

from topicweave.port import World

MAX_AGE = 30.0


class HighestDegree:
    """`own` gives this node's degree; nothing above `believable` is taken from others."""

    def __init__(self, world: World, own: Callable[[], int], believable: int) -> None:
        self._world = world
        self._own = own
        self._believable = believable
        self._heard = 0
        self._made = 0.0

    def tell(self) -> tuple[int, float]:
        """(degree, age) for a heartbeat."""
        own = self._own()
        age = self._world.now - self._made
        return (self._heard, age) if self._heard > own and age <= MAX_AGE else (own, 0.0)

    def hear(self, degree: int, age: float) -> None:
        if not 0 <= degree <= self._believable or not 0.0 <= age <= MAX_AGE:
            return
        made = self._world.now - age
        if degree == self._heard:
            self._made = max(self._made, made)
        elif degree > self.tell()[0]:
            self._heard, self._made = degree, made
