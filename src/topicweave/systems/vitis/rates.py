"""The publication rates that Eq. 1 weighs topics by: all equal, given, or measured by the node itself."""

from __future__ import annotations

import math
from collections.abc import Mapping

from topicweave.model.ids import Interest, TopicId
from topicweave.port import World
from topicweave.systems.vitis.rules import utility

_LOOKS_PER_MEMORY = 6


class EqualRates:
    """Every topic counts the same."""

    def utility(self, mine: Interest, theirs: Interest) -> float:
        return utility(mine, theirs)

    def event(self, topic: TopicId) -> None:
        """Nothing is measured."""

    def revise(self, mine: Interest) -> bool:
        return False


class GivenRates(EqualRates):
    """Rates known beforehand; a topic not named has none."""

    def __init__(self, rates: Mapping[TopicId, float]) -> None:
        self._rates = rates

    def utility(self, mine: Interest, theirs: Interest) -> float:
        return utility(mine, theirs, self._rates)


class MeasuredRates(EqualRates):
    """A decaying average of the events that the node itself receives.

    A node measures only what it takes, so a topic that only the other one wants counts as much as its own do on
    average. Every topic is taken to have had one event per `memory` beforehand: until events come all are
    equal, and a silent topic fades instead of vanishing.
    """

    def __init__(self, world: World, memory: float) -> None:
        self._world = world
        self._memory = memory
        self._averages: dict[TopicId, tuple[float, float]] = {}  # rate, as of when
        self._rates: dict[TopicId, float] = {}
        self._unknown = 0.0
        self._revised = world.now

    def event(self, topic: TopicId) -> None:
        self._averages[topic] = (self._now(topic) + 1.0 / self._memory, self._world.now)

    def _now(self, topic: TopicId) -> float:
        rate, as_of = self._averages.get(topic, (0.0, 0.0))
        return rate * math.exp((as_of - self._world.now) / self._memory)

    def revise(self, mine: Interest) -> bool:
        """Look at the averages again, a few times per `memory`; returns whether utilities may have changed."""
        if not self._averages or self._world.now - self._revised < self._memory / _LOOKS_PER_MEMORY:
            return False
        self._revised = self._world.now
        for topic in [topic for topic in self._averages if topic not in mine]:
            del self._averages[topic]
        self._rates = {topic: self._now(topic) + 1.0 / self._memory for topic in sorted(mine)}
        self._unknown = sum(self._rates.values()) / len(self._rates) if self._rates else 0.0
        return True

    def utility(self, mine: Interest, theirs: Interest) -> float:
        return utility(mine, theirs, self._rates, self._unknown) if self._rates else utility(mine, theirs)
