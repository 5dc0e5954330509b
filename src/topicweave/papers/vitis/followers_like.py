"""Subscriptions like those of the paper's Twitter graph, which is not public (§IV-E): users are topics, how many
each follows and is followed by are power laws, and a node of the paper's samples follows 80 on average.
"""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa

from topicweave.model.workload import Workload

EXPONENT = 1.65
"""The paper's figure 8, of both."""
LEAST, MOST = 10, 1000
"""Between these a power law with that exponent has a mean of 80."""
_ROWS = 256


class FollowersLike(msgspec.Struct, frozen=True, tag="followers-like", forbid_unknown_fields=True):
    """As many topics as nodes; nodes choose theirs without regard to each other."""

    nodes: int
    seed: int = 0

    def load(self) -> Workload:
        rng = np.random.default_rng([self.seed, self.nodes])
        follows = np.minimum(_power_law(rng, self.nodes).astype(np.int64), self.nodes - 1)
        weight = np.log(_power_law(rng, self.nodes))
        source, target = [], []
        for first in range(0, self.nodes, _ROWS):
            rows = np.arange(first, min(first + _ROWS, self.nodes))
            # The largest of such numbers are a draw by weight without replacement.
            lots = weight + rng.gumbel(size=(len(rows), self.nodes))
            lots[np.arange(len(rows)), rows] = -np.inf  # nobody follows himself
            order = np.argsort(-lots, axis=1)
            for row, user in zip(order, rows, strict=True):
                source.append(np.full(follows[user], user))
                target.append(np.sort(row[: follows[user]]))
        names = pa.array([f"u{user}" for user in range(self.nodes)])
        node, topic = (pa.DictionaryArray.from_arrays(np.concatenate(one), names) for one in (source, target))
        return Workload.from_tables(pa.table({"node": node, "topic": topic}))


def _power_law(rng: np.random.Generator, count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Numbers between `LEAST` and `MOST` whose density falls with that exponent."""
    low, high = LEAST ** (1 - EXPONENT), MOST ** (1 - EXPONENT)
    numbers: np.ndarray[tuple[int], np.dtype[np.float64]] = (low + (high - low) * rng.random(count)) ** (
        1 / (1 - EXPONENT)
    )
    return numbers
