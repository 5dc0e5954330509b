"""SpiderCast's settings."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from topicweave.blocks.broadcast_tree import BroadcastTreeParameters
from topicweave.blocks.topic_beacons import BeaconParameters
from topicweave.systems.presets import SystemPace

Seconds = Annotated[float, msgspec.Meta(gt=0, le=1e9)]
Count = Annotated[int, msgspec.Meta(ge=0)]


PACES = dict.fromkeys(("local", "lan"), SystemPace({"heartbeat_period": 2.0}))
"""Live nodes beat half as often: who is late is asked, so the dead are found as soon. The studies keep the default."""


class LinkParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How links are kept, whatever they are for: the times that the paper leaves open (seconds)."""

    margin: Count = 5
    """Links a task may keep beyond L^max before it refuses (§2.3 suggests 5)."""
    connect_timeout: Seconds = 0.25
    """Pause of a maintenance task after it asked for something."""
    answer_timeout: Seconds = 1.0
    """How long a task waits for the answer to a CONNECT before it asks somebody else."""
    heartbeat_period: Seconds = 1.0
    suspect_after: Seconds = 4.0
    """Silence after which a neighbour is taken for dead."""
    quarantine: Seconds = 5.0
    """How long a node that was asked is not asked again."""
    disconnect: Literal["agreed", "reached", "printed"] = "agreed"
    """Who is offered a link's end. `agreed`: only links that serve neither end (rules 2 to 4 of `task`). The
    other two are the paper's routine word by word, offers to neighbours that reached their target (§2.3.1) or
    are above it (Figure 3, line 11).
    """
    publisher_interest: Seconds = 60.0
    """How long a node stays part of a topic that it published on without wanting it."""
    tree: BroadcastTreeParameters = BroadcastTreeParameters()
    bridges: Count = 32
    """Links a node may keep to mend topics that came apart, until there is another way; or one per topic if it wants
    more topics. The bound is for peers that lie. 0 turns mending off, as in the paper.
    """
    beacons: BeaconParameters = BeaconParameters()

    def __post_init__(self) -> None:
        if self.suspect_after <= self.heartbeat_period:
            raise ValueError(
                f"suspect_after ({self.suspect_after:g}) must be longer than heartbeat_period ({self.heartbeat_period:g})"
            )


class SpiderCastParameters(LinkParameters, frozen=True, forbid_unknown_fields=True):
    """(K_g, K_r)-coverage."""

    k_greedy: Count = 3
    k_random: Count = 0
    adaptive: bool = False
    """Let each node raise its own K_r when its interests look too much like its neighbours' (§3.3.1)."""
    ties: Literal["random", "first"] = "random"
    """Which of several peers that cover the same a node asks: any (Figure 5), or the first in its view.
    `first` is for a study.
    """
