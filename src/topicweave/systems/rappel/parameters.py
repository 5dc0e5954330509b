"""The settings of Rappel: the paper's values, seconds unless said otherwise."""

from __future__ import annotations

from typing import Literal

import msgspec

from topicweave.blocks.vivaldi import DIMENSIONS
from topicweave.model.ids import NodeId, TopicId
from topicweave.systems.presets import SystemPace


class RappelParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Friends (§3), trees (§4), bootstrap (§5), coordinates (§6.1.4)."""

    alpha: int = 6
    """How many friends; twice as many fans are accepted, and 3 alpha^2 + 2 alpha candidates remembered."""
    utility: Literal["both", "interest", "distance"] = "both"
    """What makes a good friend; the parts alone are for §6.3's comparison."""
    hysteresis: float = 0.01
    """By which share a swap must improve the friends."""
    least_distance: float = 1e-3
    """Nobody counts as nearer than this: two nodes at one place would be worth more than all others together."""
    ping_period: float = 30.0
    ping_timeout: float = 15.0
    audit_pause: float = 1.0
    """Between audits while the node still has trees to join (§5.2: "continually"); later one per ping period."""
    neighbours_vote: bool = False
    """Whether fans, parents and children count as heard of with every ping and ack, or only when they are met."""
    candidate_memory: float = 300.0
    """A candidate nobody spoke of for so long is forgotten, also when there is room."""

    beta: int = 5
    """Children per tree."""
    rejoin_period: float = 600.0
    join_timeout: float = 5.0
    cache: int = 10
    """Updates per feed that a node keeps for those who missed them."""
    void_period: float = 30.0
    """How often a feed's root tells the newest sequence numbers down the tree, so that gaps are found (§4.1);
    0: never.
    """
    gap_patience: float = 2.0
    """An update that was overtaken is waited for so long before it is pulled."""

    stagger: float = 20.0
    """Between a new node's joins at publishers (§5.2)."""
    staggered_joins: int = 12

    dimensions: int = DIMENSIONS
    landmarks: tuple[NodeId, ...] = ()
    """Whom to measure for a coordinate; without any, a node measures the contacts it is given at its start."""
    landmark_rounds: int = 40
    """How often landmarks measure each other before their places are fixed."""
    probe_rounds: int = 4
    probe_pause: float = 0.5
    publishers: dict[TopicId, NodeId] = {}
    """The master publisher of each feed, as a feed's address names it. Feeds not listed here are led by the
    subscriber that the interest view shows first on the ring after the feed's identifier.
    """

    def __post_init__(self) -> None:
        if self.alpha < 1 or self.beta < 1 or self.cache < 1 or self.dimensions < 1 or self.probe_rounds < 1:
            raise ValueError("alpha, beta, cache, dimensions and probe_rounds must be at least 1")
        if not 0 < self.ping_timeout < self.ping_period:
            raise ValueError(
                f"need 0 < ping_timeout < ping_period, got {self.ping_timeout:g} and {self.ping_period:g}"
            )
        positive = (
            self.rejoin_period,
            self.join_timeout,
            self.stagger,
            self.probe_pause,
            self.audit_pause,
            self.least_distance,
        )
        if not all(0 < value < float("inf") for value in positive) or self.void_period < 0:
            raise ValueError("periods, pauses, time-outs and least_distance must be positive")

    @property
    def most_fans(self) -> int:
        return 2 * self.alpha

    @property
    def most_candidates(self) -> int:
        return 3 * self.alpha**2 + 2 * self.alpha

    @property
    def denied(self) -> float:
        """For so long one that has no part in a feed's tree is not taken for its publisher."""
        return 2.0 * self.ping_period

    @property
    def silence(self) -> float:
        """After this long without a ping a fan or child is taken for gone (§3.3)."""
        return self.ping_period + self.ping_timeout


def paced(ping: float) -> SystemPace:
    """The paper's times in their proportions to its ping of 30 s, which suits a network across the world and
    hours of uptime.

    On one machine or a local network a node that takes three such pings to know its neighbours, or that they
    are dead, seems broken.
    """
    times = {
        "ping_period": ping,
        "ping_timeout": ping / 2,
        "void_period": ping,
        "rejoin_period": 20 * ping,
        "stagger": ping * 2 / 3,
        "audit_pause": ping / 30,
        "probe_pause": ping / 60,
    }
    return SystemPace(times, settles_within=max(30.0, 4 * ping))
