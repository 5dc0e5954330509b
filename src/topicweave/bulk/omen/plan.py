"""What a round-based experiment is asked for, and what one churn event took."""

from __future__ import annotations

from typing import Literal

import msgspec

from topicweave.bulk.omen.churn import ChurnSource, data_sets
from topicweave.designs import DEFAULT_RHO


class Mending(msgspec.Struct, frozen=True):
    """A run of churn events, each handled before the next (OMen §6: Google's come minutes apart)."""

    rounds: int
    churn: ChurnSource = "random"
    concurrent: int = 1
    """How many departures come at a time; joins always come alone."""
    looks: int = 10
    """How often the overlay is looked at, besides the start."""
    resilience: int = 1
    coverage: int = 5
    rho: float = DEFAULT_RHO
    builder: Literal["primal-dual", "greedy"] = "primal-dual"
    covers: Literal["repeated", "multi"] = "repeated"
    global_view: bool = False
    candidates: int = 0
    """Choose backups among so many random nodes instead of among what gossip brings together."""
    components: Literal["beacons", "spread", "shadow"] = "beacons"
    """As in `OMenParameters`."""
    ceiling: Literal["all", "shadow"] = "all"
    """Whether the maximum degree is taken over all nodes or over the shadow set."""
    samples: int = 30
    """Random nodes in a gossip buffer, as in `OMenParameters`."""
    warm_up: int = 15
    """Gossip cycles before the first event."""
    gossip_every: int = 20
    """Events between two cycles of everybody; those whose predecessors or backups change gossip at once."""
    start: Literal["LowODA", "own"] = "LowODA"
    """The overlay before the first event: LowODA's, or what SpiderCast's nodes choose by themselves."""
    k_greedy: int = 3
    k_random: int = 1
    diameters: bool = False
    labels: bool = False
    """Count the messages that spread labels."""
    backups: bool = False
    """Keep the backup degrees of every node."""
    histogram: bool = False
    """Keep the sizes of all local views at the end."""

    @property
    def data_sets(self) -> tuple[str, ...]:
        """The files that it reads."""
        return data_sets(self.churn)


class Handling(msgspec.Struct):
    """What one churn event took."""

    joins: bool
    size: int
    """Subscriptions of the churned node."""
    shadow: int = 0
    edges: int = 0
    messages: int = 0
    """Coordination and new links; without gossip and failure detection."""
    label_messages: int = 0
    build_seconds: float = 0.0
    """Processor time to choose backups once the event has come: OMen-G does all of it then, OMen what is not ready."""
    search_seconds: float = 0.0
    """To find components."""
    choice_seconds: float = 0.0
    """And to choose edges."""

    @property
    def seconds(self) -> float:
        return self.build_seconds + self.search_seconds + self.choice_seconds
