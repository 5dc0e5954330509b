"""A handful of SpiderCast nodes on a bench."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from topicweave.model.ids import Interest, NodeId
from topicweave.systems.spidercast import SPIDERCAST, SpiderCastNode
from topicweave.testing import Bench


def calc_k_uncovered(interest: Interest, neighbours: Collection[Interest], k: int) -> int:
    """CALCKUNCOVERED, Figure 3, as printed."""
    return sum(1 for topic in interest if sum(topic in other for other in neighbours) < k)


class Lab(Bench[SpiderCastNode]):
    """Without mending links, unless a test asks for them."""

    def __init__(self, seed: int = 0, **parameters: Any) -> None:
        super().__init__(SPIDERCAST, seed, **{"bridges": 0, **parameters})

    def linked(self, one: NodeId, other: NodeId, task: str = "greedy") -> tuple[bool, bool]:
        """Whether the one counts the other as a neighbour of a task, and the other the one."""
        ends = ((one, other), (other, one))
        there, back = (
            end in self.nodes and peer in self.nodes[end].tasks[task].neighbours for end, peer in ends
        )
        return there, back
