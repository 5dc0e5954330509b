"""OMen's settings."""

from __future__ import annotations

from typing import Literal

import msgspec

from topicweave.blocks.broadcast_tree import BroadcastTreeParameters
from topicweave.blocks.topic_beacons import BeaconParameters
from topicweave.designs.problem import DEFAULT_RHO


class OMenParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The paper's four, then what it leaves open (times in seconds)."""

    resilience: int = 2
    """L: how many churn events may overlap; the same number of predecessors and successors is watched (§3.3)."""
    coverage: int = 5
    """λ: how often a backup set covers each topic (§4.2, §6.4)."""
    rho: float = DEFAULT_RHO
    """LowODA's parameter (§4.1)."""
    builder: Literal["primal-dual", "greedy"] = "primal-dual"

    global_view: bool = False
    """OMen-G (Table 3): backups are chosen among all nodes known, not among what gossip brings."""
    covers: Literal["repeated", "multi"] = "repeated"
    components: Literal["beacons", "spread", "shadow"] = "beacons"
    """How repair knows what came apart: by the beacons on heartbeats, by labels spread through all affected
    topics, or, as Algorithm 1 says to the letter, by the links among the shadow set alone.
    """
    ceiling: Literal["all", "shadow"] = "all"
    """Over whom the maximum degree is taken that repair strives not to raise."""

    gossip_period: float = 2.0
    samples: int = 30
    """Random nodes in a gossip buffer (rnd.view of Alg. 3)."""
    view_size: int = 512
    """Most nodes a local view may hold."""
    heartbeat_period: float = 1.0
    suspect_after: float = 4.0
    label_time: float = 1.0
    """How long labels of components spread before shadow nodes report theirs."""
    fresh_time: float = 5.0
    """How long after a departure everybody who is still in a leader's part has new beacons of it."""
    answer_time: float = 1.0
    """How long the coordinator waits for reports beyond that."""
    standby_time: float = 10.0
    """After which a successor handles a churn event that nobody reported as handled."""
    join_patience: float = 2.0
    """How long a node has been without a neighbour on some topic before its successor acts."""
    publisher_interest: float = 60.0
    """How long a node stays part of a topic that it published on without wanting it."""
    most_links: int = 4096
    """Links a peer may talk us into."""
    bridges: bool = True
    """Mend topics that came apart beyond what L covers (partitions, lost messages); the paper has no such thing."""
    finds: Literal["directory", "coordinators"] = "directory"
    """Who links newcomers and parts of topics: the node itself, by what a topic directory told, where
    membership has one; or coordinators only, as in the paper.
    """
    tree: BroadcastTreeParameters = BroadcastTreeParameters()
    beacons: BeaconParameters = BeaconParameters()

    def __post_init__(self) -> None:
        if self.resilience < 1 or self.coverage < 0 or self.rho < 0:
            raise ValueError("need resilience >= 1, coverage >= 0 and rho >= 0")
