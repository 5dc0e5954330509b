"""Random graphs beside a topic: as many vertices as its most popular topic has subscribers, so many neighbours each."""

from __future__ import annotations

import random

import msgspec
import numpy as np

from topicweave.model.arrays import IntArray
from topicweave.runs.run import Result
from topicweave.runs.sources import GeneratedWorkload

_BITS = 64


class LikeItsLargestTopic(
    msgspec.Struct, frozen=True, tag="like-its-largest-topic", forbid_unknown_fields=True
):
    """The diameter of a random graph of as many vertices as the largest topic has subscribers."""

    workload: GeneratedWorkload
    cycles: int = 2
    """Random cycles through all vertices that the graph is made of: two neighbours each."""
    seed: int = 0

    def run(self) -> Result:
        workload = self.workload.load()
        subscribers = max(len(workload.subscribers(topic)) for topic in range(workload.topics))
        neighbours = random_neighbours(subscribers, self.cycles, self.seed)
        return {"subscribers": subscribers, "diameter": diameter(neighbours)}


def random_neighbours(vertices: int, cycles: int, seed: int) -> IntArray:
    """Each vertex's neighbours, in a row."""
    columns = []
    for number in range(cycles):
        order = list(range(vertices))
        random.Random(f"cycle/{seed}/{number}").shuffle(order)
        place = np.array(order)
        beside = np.empty((vertices, 2), np.int64)
        beside[place] = np.column_stack([np.roll(place, 1), np.roll(place, -1)])
        columns.append(beside)
    return np.concatenate(columns, axis=1)


def diameter(neighbours: IntArray) -> int:
    """
    >>> diameter(np.array([[1, 3], [0, 2], [1, 3], [2, 0]]))
    2
    """
    vertices = len(neighbours)
    words = -(-vertices // _BITS)
    reached = np.zeros((vertices, words), np.uint64)  # a row of bits: who is reached
    every = np.arange(vertices)
    reached[every, every // _BITS] = np.uint64(1) << (every % _BITS).astype(np.uint64)
    hops = 0
    while True:
        further = reached.copy()
        for column in neighbours.T:
            further |= reached[column]
        if np.array_equal(further, reached):
            return hops
        reached, hops = further, hops + 1
