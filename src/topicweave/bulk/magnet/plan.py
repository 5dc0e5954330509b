"""How an overlay of Magnet or its strawman is made."""

from __future__ import annotations

import msgspec

from topicweave.blocks.growing_ids import MAX_BYTES


class Converged(msgspec.Struct, frozen=True, kw_only=True):
    """The defaults are the paper's (§4.2). The strawman takes the fingers and walks alone."""

    fingers: float = 8.5
    """On average. With the ring's two links and both ends of a finger counted, that makes a degree of 19."""
    samples: int = 10
    """Per topic. With none, every node stands where its name is hashed to."""
    lag: int = 0
    """How many of the last to arrive samples do not show yet: rounds of reports take their time, and
    meanwhile others come.
    """
    choices: int = 2
    walks: int = 5
    """Per median."""
    weighted: bool = True
    """Whether similarity weighs topics by their rates."""
    by_topic: bool = False
    """Keep the cost of every topic and the degree of every node."""
    most_bytes: int = MAX_BYTES
