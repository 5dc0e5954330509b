"""What can be set about Magnet and its strawman."""

from __future__ import annotations

from typing import Literal

import msgspec

from topicweave.blocks.growing_ids import MAX_BYTES
from topicweave.blocks.interest_samples import SampleParameters
from topicweave.blocks.oscar import OscarParameters
from topicweave.blocks.ring.parameters import RingParameters
from topicweave.blocks.topic_trees.trees import TreeParameters
from topicweave.model.ids import TopicId


class HomeTreeParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What Magnet and the strawman have in common."""

    ring: RingParameters = RingParameters()
    oscar: OscarParameters = OscarParameters()
    trees: TreeParameters = TreeParameters()
    max_topics: int = 65_536
    """Interests of more topics are not believed."""

    def __post_init__(self) -> None:
        if self.max_topics < 1:
            raise ValueError(f"max_topics must be at least 1, got {self.max_topics}")


class MagnetParameters(HomeTreeParameters, frozen=True, forbid_unknown_fields=True):
    """Seconds, unless said otherwise."""

    samples: SampleParameters = SampleParameters()
    control_fingers: int = 8
    """Long links on the control ring."""
    control_lookups: int = 16
    """Periods between two lookups of all long links of the control ring."""
    rates: Literal["equal", "given"] = "equal"
    """Whether similarity weighs topics by `topic_rates` (§2.1)."""
    topic_rates: dict[TopicId, float] = {}
    view_patience: float = 4.0
    """For how long a newcomer waits for views before it takes the place of its hashed name."""
    place_patience: float = 2.0
    """For how long it waits for the answer of the node it wants to be next to."""
    improvements: int = 2
    """How often a node may look for a better place because its view got better."""
    improve_period: float = 10.0
    """The least time between two moves, for whatever reason: re-execution is rationed."""
    improve_by: float = 0.05
    """By how much the similarity must be higher for a move to be worth it."""
    changes_before_move: int = 2
    """After how many changes of interest a node looks for another place."""
    most_bytes: int = MAX_BYTES
    """The longest identifier on the skewed ring."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.control_fingers < 1 or self.control_lookups < 2 or self.changes_before_move < 1:
            raise ValueError(
                "need control_fingers and changes_before_move of at least 1, control_lookups of 2"
            )
        if self.improvements < 0 or not 8 <= self.most_bytes <= MAX_BYTES:
            raise ValueError(f"need improvements of 0 or more, and most_bytes from 8 to {MAX_BYTES}")
        if not min(self.view_patience, self.place_patience, self.improve_period) > 0:
            raise ValueError("view_patience, place_patience and improve_period must be above 0")
