"""The settings of Vitis, and those it shares with RVR."""

from __future__ import annotations

from typing import Literal

import msgspec

from topicweave.blocks.notify_pull import NotifyPullParameters
from topicweave.blocks.peer_sampling import SamplingParams
from topicweave.blocks.relay_paths import RelayParameters
from topicweave.model.ids import TopicId


class RendezvousParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the table and the paths are kept: the times that the paper leaves open (seconds)."""

    table_size: int = 15
    """How many peers a node chooses. It bounds what a node keeps up itself, not its degree: those who choose
    it are its neighbours, too."""
    period: float = 1.0
    """δt: one exchange of routing tables (Alg. 2)."""
    rest_period: float = 8.0
    """The same while the routing table does not change; 0: always δt, as in the paper."""
    names_first: bool = True
    """Whether gossip and heartbeats name peers and versions, and tell what peers want to those who lack it.
    Else all of it goes into each message, as in the paper.
    """
    heartbeat_period: float = 2.0
    """One exchange of profiles (Alg. 6). Alg. 1 has one period for both; but a table that changes tells its new and its
    former neighbours at once here, so that only the election waits for the heartbeat."""
    suspect_after: float = 7.0
    """THRESHOLD of Alg. 6, as a time: silence after which a neighbour is taken for dead."""
    ring_partners: float = 0.5
    """The share of exchanges that go to the ring neighbours; 0 is the paper's uniformly random choice."""
    samples: int = 8
    """Random peers mixed into each exchange."""
    redraw_targets: bool = False
    """Draw the targets of small-world links anew at every selection instead of once."""
    linger: float = 5.0
    """How long a link that nobody wants any more still carries events, so that nobody is cut off in between."""
    most_fans: int = 1000
    """How many peers that chose this node it serves."""
    max_topics: int = 16_384
    sampling: SamplingParams = SamplingParams()
    relay: RelayParameters = RelayParameters()
    spreading: NotifyPullParameters = NotifyPullParameters()

    def __post_init__(self) -> None:
        if self.table_size < 3 or not 0 <= self.ring_partners <= 1 or self.samples < 1 or self.most_fans < 0:
            raise ValueError(
                f"need table_size >= 3, 0 <= ring_partners <= 1, samples >= 1, most_fans >= 0: {self}"
            )

    @property
    def message_size(self) -> int:
        """What an exchange of tables can hold: the node itself, its table, samples, and who is near on the ring."""
        return 1 + self.table_size + self.samples + 2 * NEAR


NEAR = 4
"""Besides its table a node remembers, for its exchanges, the nearest peers on either side on the ring, so many each."""


class VitisParameters(RendezvousParameters, frozen=True, forbid_unknown_fields=True):
    """One successor, one predecessor, `small_world` long links; the rest of the table are friends (§IV-B)."""

    small_world: int = 1
    gateway_hops: int = 5
    """d: how far a gateway may be from those it serves, at most. The prose of §III-B; Alg. 5 prints `hops + 1 < d`,
    which is one less."""
    relays_hand_on: bool = True
    """Whether a node that only relays an event tells its interested neighbours, too, or the paths alone."""
    rates: Literal["equal", "given", "measured"] = "measured"
    """What Eq. 1 takes for the publication rates: all the same, `topic_rates`, or what the node sees itself."""
    topic_rates: dict[TopicId, float] = {}
    rate_memory: float = 60.0
    """Over how many seconds measured rates are averaged."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.small_world <= self.table_size - 2 or self.gateway_hops < 0 or self.rate_memory <= 0:
            raise ValueError(
                f"need 0 <= small_world <= table_size - 2, gateway_hops >= 0, rate_memory > 0: {self}"
            )
