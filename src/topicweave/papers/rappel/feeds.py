"""Rappel's own run: feeds over a network with true distances, behind figures 7 to 11.

Updates are published while nodes fail, return or come and go, and everything the figures need is written down.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from topicweave.data.networks import NetworkSpec
from topicweave.model.event import EventId
from topicweave.papers.rappel.following import FOLLOW_EVERY, Followed
from topicweave.papers.rappel.friend_measures import coordinate_error, coverage, friends
from topicweave.papers.rappel.traffic_measures import control_traffic, data_traffic, rejoins
from topicweave.papers.rappel.tree_measures import final, observed, tree_stretch, update_row
from topicweave.papers.rappel.workloads import FeedsWorkload
from topicweave.papers.rappel.world import FeedWorld
from topicweave.runs.run import OnSystem, Result


class Failure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A share of the subscribers stops at once and comes back, with what they knew (Fig. 7)."""

    share: float
    start: float
    end: float
    returning: float = 1.0
    """Which share of them comes back; the others stay away."""
    keeps_memory: bool = True
    """Whether they know their friends of before; else they are new (§5.2)."""


class ContinuousChurn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Subscribers follow hosts of a real availability trace, its time stretched so that so many join per
    minute (Fig. 8b).
    """

    data_sets: ClassVar[tuple[str, ...]] = ("gnutella",)
    joins_per_minute: float
    observers: int = 10
    """The first subscribers stay up."""


class Feeds(OnSystem, frozen=True, kw_only=True, tag="feeds"):
    """What happens, and what to write down."""

    system: Literal["rappel", "scribe"] = "rappel"
    workload: FeedsWorkload
    network: NetworkSpec = NetworkSpec()
    duration: float = 14_400.0
    window: float = 600.0
    """Within which the subscribers start."""
    update_every: float = 60.0
    """Each feed publishes so often; 0: not at all."""
    update_from: float = 0.0
    last_update_of_all: bool = False
    """One update of every feed at the end."""
    failure: Failure | None = None
    churn: ContinuousChurn | None = None
    control: bool = False
    """Count control messages, over the last third of the run."""
    series_every: float = 0.0
    """Follow the friends' coverage over time."""
    follow: float = 0.0
    """Follow those who come back after the failure for so many seconds, one by one."""

    @property
    def knows(self) -> str:
        """Whom its nodes know at first, if not what a membership tells them."""
        return "nodes know the publishers of their feeds" if self.system == "rappel" else ""

    def run(self) -> Result:
        world = FeedWorld(self, self.workload.load())
        simulation = world.simulation
        result: Result = {"updates": [], "coverage": []}
        counted_from = self.duration * 2 / 3
        stretches: dict[EventId, Result] = {}
        followed: Followed | None = None
        for moment, _, what in self._moments(counted_from):
            simulation.run(min(moment, self.duration))
            if what == "update":
                stretches |= _update_all(world)
            elif what == "before":
                followed = Followed(world)
            elif what == "follow" and followed is not None:
                followed.look()
            elif what == "coverage":
                result["coverage"].append({"time": simulation.now, **coverage(world)})
            else:
                simulation.flush_control()
                world.rejoins_before = rejoins(world)
        simulation.run(self.duration)
        if self.control:
            result["control"] = control_traffic(world, self.duration - counted_from)
        if self.last_update_of_all:
            world.receptions[:] = 0
            world.sends[:] = 0
            stretches |= _update_all(world)
            simulation.run(simulation.now + 60.0)
            result |= data_traffic(world)
        else:
            simulation.run(simulation.now + 60.0)
        if world.feeds == 1:
            result["updates"] = [update_row(world, name, stretches[name]) for name in world.published]
            result["final"] = final(world, next(reversed(world.published)) if world.published else None)
        if self.churn is not None or world.feeds == 1:
            result["observed"] = observed(world)
        if followed is not None:
            result["followed"] = followed.told()
        result["noise"] = world.noise
        result["kernel_events"] = simulation.kernel.events
        result["nodes"] = world.workload.nodes
        result["churn_operations"] = simulation.churn_operations
        if world.is_rappel:
            result["friends"] = friends(world)
            result["coordinates"] = coordinate_error(world)
        return result

    def _moments(self, counted_from: float) -> list[tuple[float, int, str]]:
        """When something is due: updates, looks at coverage, and the beginning of the count of control messages."""
        moments: list[tuple[float, int, str]] = []
        if self.update_every > 0:
            count = int((self.duration - self.update_from) / self.update_every)
            moments += [(self.update_from + (n + 1) * self.update_every, n, "update") for n in range(count)]
        if self.series_every > 0:
            looks = range(int(self.duration / self.series_every))
            moments += [((n + 1) * self.series_every, n, "coverage") for n in looks]
        if self.control:
            moments.append((counted_from, 0, "count"))
        if self.failure is not None and self.follow:
            moments.append((self.failure.start - 1.0, 0, "before"))
            looks = range(int(self.follow / FOLLOW_EVERY) + 1)
            moments += [(self.failure.end + FOLLOW_EVERY * n, n, "follow") for n in looks]
        return sorted(moments)


def _update_all(world: FeedWorld) -> dict[EventId, Result]:
    """One update of each feed; of a single feed, what its tree looks like at that moment."""
    stretches = {}
    for feed in range(world.feeds):
        event = world.publish(feed)
        if event is not None and world.feeds == 1:
            stretches[event.id] = tree_stretch(world, feed)
    return stretches
