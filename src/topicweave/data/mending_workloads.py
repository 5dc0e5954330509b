"""The workloads and churn of OMen §6.1: social graphs sampled breadth first, synthetic lists, and the Google cluster's machines.

Real files are read from the folder that the environment variable TOPICWEAVE_DATA names.
"""

from __future__ import annotations

import gzip
import lzma
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from topicweave.errors import BadInput, UnknownName
from topicweave.model.workload import Workload
from topicweave.workloads.catalogue import build

VARIABLE = "TOPICWEAVE_DATA"
SEEDS = 3
"""Users that a breadth-first search starts from ("a random set of a few users as seeds")."""


class _Graph(NamedTuple):
    file: str
    separator: str
    symmetric: bool
    """Friends subscribe to each other; otherwise the first follows the second."""


GRAPHS = {
    "facebook": _Graph("subscriptions/facebook_combined.txt.gz", " ", True),
    "livejournal": _Graph("subscriptions/soc-LiveJournal1Adj.txt.xz", "\t", True),
    "twitter": _Graph("subscriptions/ego-twitter_undirected.csv.xz", ",", True),
    "epinions": _Graph("subscriptions/soc-Epinions1.txt.xz", "\t", False),
}
MACHINE_EVENTS = "churn/google2011_machine_events.csv.gz"


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
        if self.graph not in GRAPHS:
            raise UnknownName("social graph", self.graph, list(GRAPHS))
        graph = GRAPHS[self.graph]
        following: dict[int, set[int]] = {}
        around: dict[int, set[int]] = {}
        for one, other in read_edges(data_file(graph.file), graph.separator):
            following.setdefault(one, set()).add(other)
            if graph.symmetric:
                following.setdefault(other, set()).add(one)
            around.setdefault(one, set()).add(other)
            around.setdefault(other, set()).add(one)
        sample = breadth_first_sample(around, self.nodes, random.Random(f"sample/{self.seed}"))
        lists = {
            f"u{user}": [f"u{friend}" for friend in sorted(following.get(user, set()) & sample)]
            for user in sorted(sample)
        }
        return Workload.from_lists({user: wanted for user, wanted in lists.items() if wanted})


def breadth_first_sample(around: dict[int, set[int]], nodes: int, rng: random.Random) -> set[int]:
    """Breadth first from a few random users until there are enough; from new ones if the search runs dry."""
    users = sorted(around)
    if len(users) < nodes:
        raise BadInput(f"the graph has {len(users)} users, fewer than the {nodes} asked for")
    queue = rng.sample(users, SEEDS)
    found = dict.fromkeys(queue)
    while len(found) < nodes:
        if not queue:
            queue = [next(user for user in rng.sample(users, len(users)) if user not in found)]
            found[queue[0]] = None
        wave = []
        for user in queue:
            for friend in sorted(around[user]):
                if friend not in found and len(found) < nodes:
                    found[friend] = None
                    wave.append(friend)
        queue = wave
    return set(found)


class Happening(NamedTuple):
    """One churn event: a node, by its place in the workload, comes or goes."""

    node: int
    joins: bool


def churn_sequence(
    source: Literal["google", "random"], nodes: int, rounds: int, seed: int
) -> tuple[set[int], list[Happening]]:
    """Who is there at first, and up to `rounds` events, one after another (times do not matter: see `mending`)."""
    rng = random.Random(f"mending-churn/{seed}")
    if source == "google":
        return _google_churn(nodes, rounds, rng)
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


def _google_churn(nodes: int, rounds: int, rng: random.Random) -> tuple[set[int], list[Happening]]:
    """ADD joins, REMOVE leaves; as many machines as nodes, sampled from those there at the start (§6.1)."""
    events: list[tuple[int, int, bool]] = []
    with gzip.open(data_file(MACHINE_EVENTS), "rt", encoding="ascii") as lines:
        for line in lines:
            moment, name, event = line.split(",", 3)[:3]
            if event in ("0", "1"):
                events.append((int(moment), int(name), event == "0"))
    at_start = sorted({machine for time, machine, joins in events if time == 0 and joins})
    chosen = rng.sample(at_start, min(nodes, len(at_start)))
    place = {machine: number for number, machine in enumerate(chosen)}
    up, happenings = set(range(len(chosen))), []
    for time, machine, joins in sorted(events):
        node = place.get(machine)
        if time == 0 or node is None or joins == (node in up):
            continue
        (up.add if joins else up.discard)(node)
        happenings.append(Happening(node, joins))
    return set(range(len(chosen))), happenings[:rounds]


def data_file(name: str) -> Path:
    folder = os.environ.get(VARIABLE)
    if not folder:
        raise BadInput(f"{name}: set {VARIABLE} to the folder that holds the real data sets")
    path = Path(folder) / name
    if not path.exists():
        raise BadInput(f"{path}: no such file; set {VARIABLE} to the folder that holds the real data sets")
    return path


def read_edges(path: Path, separator: str) -> Iterator[tuple[int, int]]:
    """Edges of a text file: `a b`, or `a b1,b2,…` as LiveJournal's friend lists are."""
    opener = lzma.open if path.suffix == ".xz" else gzip.open
    with opener(path, "rt", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("#"):
                continue
            one, _, others = line.rstrip("\n").partition(separator)
            for other in others.split(",") if separator == "\t" else (others,):
                if other and other != one:
                    yield int(one), int(other)
