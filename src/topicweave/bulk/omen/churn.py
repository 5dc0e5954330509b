"""The churn of OMen §6.1: the Google cluster's machines, or nodes drawn at random; one event after another."""

from __future__ import annotations

import random
from typing import Literal, NamedTuple

import pyarrow.compute as pc

from topicweave.data.availability import alternating
from topicweave.data.reading import real_rows
from topicweave.data.sampling import chances


class Happening(NamedTuple):
    """One churn event: a node, by its place in the workload, comes or goes."""

    node: int
    joins: bool


ChurnSource = Literal["google", "random"]


def data_sets(source: ChurnSource) -> tuple[str, ...]:
    """The files that it is read from."""
    return ("google",) if source == "google" else ()


def churn_sequence(
    source: ChurnSource, nodes: int, rounds: int, seed: int
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
