"""The workloads of OMen §6.1: synthetic lists, and social graphs sampled breadth first."""

from __future__ import annotations

import msgspec

from topicweave.data.reading import social_graph
from topicweave.data.sampling import breadth_first
from topicweave.model.workload import Workload
from topicweave.workloads.catalogue import build


class SyntheticLists(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="omen-lists"):
    """§6.1 (1): `popularity` is uniform, zipf or expo."""

    nodes: int = 2000
    topics: int = 200
    popularity: str = "uniform"
    min_size: int = 10
    max_size: int = 90
    seed: int = 0

    def load(self) -> Workload:
        return build(
            f"omen-{self.popularity}",
            self.seed,
            nodes=self.nodes,
            topics=self.topics,
            min_size=self.min_size,
            max_size=self.max_size,
        )


class SocialSample(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="social"):
    """§6.1 (2) and (3): users are topics, friends (or followers) their subscribers."""

    graph: str
    nodes: int
    seed: int = 0

    @property
    def data_sets(self) -> tuple[str, ...]:
        return (self.graph,)

    def load(self) -> Workload:
        return breadth_first(social_graph(self.graph), nodes=self.nodes, seed=self.seed)
