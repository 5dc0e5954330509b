"""GossipSub's settings, with the names and defaults of its specification (times in seconds)."""

from __future__ import annotations

from typing import Annotated

import msgspec

from topicweave.blocks.topic_beacons import BeaconParameters

Seconds = Annotated[float, msgspec.Meta(gt=0, le=1e9)]
Count = Annotated[int, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class GossipSubParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The mesh is kept between `d_low` and `d_high` peers per topic."""

    d: Count = 6
    d_low: Count = 5
    d_high: Count = 12
    d_out: Count = 2
    """Of a mesh that is cut back, so many stay that this node connected to by itself: nobody else can fill it."""
    d_lazy: Count = 6
    gossip_factor: Share = 0.25
    """Announcements go to this share of the peers outside of the mesh, and to `d_lazy` at least."""
    heartbeat_interval: Seconds = 1.0
    history_length: Count = 5
    history_gossip: Count = 3
    """Heartbeats that an event is kept for, and announced for."""
    fanout_ttl: Seconds = 60.0
    prune_backoff: Seconds = 60.0
    unsubscribe_backoff: Seconds = 10.0
    prune_peers: Count = 16
    """Peers named to somebody who is pruned (peer exchange)."""
    flood_publish: bool = True
    """Own events go to all known subscribers, not to the mesh alone."""
    gossip_retransmission: Count = 3
    max_ihave_length: Count = 5000
    suspect_after: Seconds = 4.0
    connect_timeout: Seconds = 3.0
    discovery_interval: Seconds = 10.0
    """How often a connection to somebody new is tried, also by nodes that lack none: so islands find together."""
    beacons: BeaconParameters = BeaconParameters(max_age=60.0, per_link=0.5)
    """Labels of the parts of topics; told where membership introduces parts to each other."""

    def __post_init__(self) -> None:
        if not self.d_low <= self.d <= self.d_high:
            raise ValueError(f"need d_low <= d <= d_high, got {self.d_low}, {self.d}, {self.d_high}")
        if self.d_out >= max(1, self.d_low) or self.d_out > self.d // 2:
            raise ValueError(f"d_out ({self.d_out}) must be below d_low and at most half of d")
        if self.history_gossip > self.history_length:
            raise ValueError("history_gossip must not be longer than history_length")
        if self.suspect_after <= self.heartbeat_interval:
            raise ValueError("suspect_after must be longer than heartbeat_interval")
