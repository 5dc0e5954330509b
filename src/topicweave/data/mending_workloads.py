"""The workloads and churn of OMen §6.1: social graphs sampled breadth first, synthetic lists, and the Google cluster's machines."""

from __future__ import annotations

import random
from typing import Literal, NamedTuple

import msgspec
import pyarrow.compute as pc

from topicweave.data.availability import alternating
from topicweave.data.reading import real_rows, real_workload
from topicweave.data.sampling import breadth_first, chances
from topicweave.errors import UnknownName
from topicweave.model.workload import Workload
from topicweave.workloads.catalogue import build

GRAPHS = ("facebook", "livejournal", "twitter", "epinions")
"""The data sets that are graphs of users."""


class SyntheticLists(msgspec.Struct, frozen=True, tag="omen-lists"):
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


class SocialSample(msgspec.Struct, frozen=True, tag="social"):
    """§6.1 (2) and (3): users are topics, friends (or followers) their subscribers."""

    graph: str
    nodes: int
    seed: int = 0

    def load(self) -> Workload:
        return breadth_first(social_graph(self.graph), nodes=self.nodes, seed=self.seed)


def social_graph(name: str) -> Workload:
    """Who follows whom among the users of a real data set; friends follow each other."""
    if name not in GRAPHS:
        raise UnknownName("social graph", name, list(GRAPHS))
    return real_workload(name)


class Happening(NamedTuple):
    """One churn event: a node, by its place in the workload, comes or goes."""

    node: int
    joins: bool


def churn_sequence(
    source: Literal["google", "random"], nodes: int, rounds: int, seed: int
) -> tuple[set[int], list[Happening]]:
    """Who is there at first, and up to `rounds` events, one after another (times do not matter: see `mending`)."""
    if source == "google":
        return _google_churn(nodes, rounds, seed)
    rng = random.Random(f"mending-churn/{seed}")
    away = set(rng.sample(range(nodes), nodes // 10))
    up = set(range(nodes)) - away
    start, happenings = set(up), []
    for _ in range(rounds):
        joins = bool(away) and rng.random() < 0.5
        node = rng.choice(sorted(away if joins else up))
        (away.discard if joins else away.add)(node)
        (up.add if joins else up.discard)(node)
        happenings.append(Happening(node, joins))
    return start, happenings


def _google_churn(nodes: int, rounds: int, seed: int) -> tuple[set[int], list[Happening]]:
    """ADD joins, REMOVE leaves; as many machines as nodes, sampled from those there at the start (§6.1)."""
    changes = alternating(real_rows("google"))
    at_start = changes.filter(pc.equal(changes["time"], 0.0))["node"].to_pylist()
    chosen = chances(seed, at_start).argsort(kind="stable")[:nodes].tolist()
    place = {at_start[machine]: number for number, machine in enumerate(chosen)}
    later = changes.filter(pc.greater(changes["time"], 0.0))
    happenings = [
        Happening(place[machine], change == "join")
        for machine, change in zip(later["node"].to_pylist(), later["change"].to_pylist(), strict=True)
        if machine in place
    ]
    return set(range(len(chosen))), happenings[:rounds]
