"""Magnet's hierarchical topics (§4.4): preferential attachment with homophily over a binary tree of topics.

The paper's process adds one subscription at a time: pick a topic t by its popularity, then one of its subscribers
p; p subscribes to a topic at tree distance l from t, with Pr[l = x] proportional to exp(-lambda x). Drawn literally
that cannot be done in parts. But picking t by popularity and then a subscriber of t is picking one of the existing
subscriptions, all alike; so give every subscription a clock of its own that rings at rate 1 (after Athreya and
Karlin's embedding of urns): the order of the rings is the paper's order of picks, and since a ring changes only the
list of the subscription's own peer, *peers grow independently of each other*. A peer with d subscriptions hears its
next ring after an exponential time of mean 1/d, from one of the d. The paper's stopping rule, "until the target
average is reached", becomes one moment for all peers: that of the last subscription needed. The law is the same
exactly, and any range of peers can be grown anywhere.

A ring that proposes a topic the peer has already adds nothing (the paper does not say; a list has no repetitions).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from topicweave.errors import BadInput
from topicweave.workloads.counter_random import hashes, uniforms

IndexArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

_WEIGHTS, _HOME_TOPICS, _HOME_PEERS, _WAITS, _PICKS, _DISTANCES, _LEAVES = range(31, 38)  # streams
_CHUNK_PEERS = 1 << 13


class Hierarchy(NamedTuple):
    """The model's parameters, by the paper's names where it has them."""

    nodes: int
    topics: int
    average: float
    """Z: subscriptions per peer on average, when done."""
    initial_share: float
    """initFrac: the share of them that is picked at random to begin with."""
    alpha: float
    """alpha_0: the exponent of the topics' popularity to begin with."""
    homophily: float
    """lambda: how strongly peers prefer topics near those they have."""

    @property
    def target(self) -> int:
        return round(self.nodes * self.average)

    @property
    def height(self) -> int:
        """Of the binary tree whose leaves are the topics."""
        return max((self.topics - 1).bit_length(), 1)


class Growth(NamedTuple):
    """Subscriptions of a range of peers, and when each was made (0: to begin with)."""

    node: IndexArray
    topic: IndexArray
    time: FloatArray


def check(model: Hierarchy) -> None:
    if model.nodes < 1 or model.topics < 2:
        raise BadInput(f"{model.nodes} nodes and {model.topics} topics: too few; ask for 1 and 2 at least")
    if not 0 < model.initial_share <= 1 or model.homophily < 0 or model.alpha < 0:
        raise BadInput("hierarchical: need 0 < initial_share <= 1, homophily >= 0 and alpha >= 0")
    if not 0 < model.average <= model.topics / 4:
        # Beyond that, homophily makes peers fill whole subtrees and wait long for a topic they lack.
        raise BadInput(
            f"{model.average:g} of {model.topics} topics per node: out of reach; ask for at most a quarter of them"
        )


def initial_subscriptions(
    model: Hierarchy, first: int, last: int, seed: int
) -> tuple[IndexArray, IndexArray]:
    """Step a), for peers `first` to `last - 1`: (peers, topics), without repetitions, by peer, then topic.

    Every topic gets one subscriber and every peer one "home" topic; what is left of the Z initFrac per peer goes
    to random peers and to topics by weights w with Pr[w = x] proportional to 1/x**alpha_0 (the paper's footnote
    3). Where Z initFrac is too small for all to get one, the last topics and peers go without.
    """
    edges = round(model.nodes * model.average * model.initial_share)
    homes = min(edges, max(model.nodes, model.topics))
    numbers = np.arange(edges)
    peer = numbers % model.nodes
    extra = numbers >= homes
    peer[extra] = (uniforms(seed, _HOME_PEERS, numbers[extra]) * model.nodes).astype(np.int64)
    mine = (peer >= first) & (peer < last)
    numbers, peer = numbers[mine], peer[mine]

    weights = _power_law_weights(model, seed)
    steps = np.cumsum(weights / weights.sum())
    steps[-1] = 1.0
    drawn = np.searchsorted(steps, uniforms(seed, _HOME_TOPICS, numbers), side="right")
    topic = np.where(numbers < model.topics, numbers, drawn)
    pairs = np.unique(peer * model.topics + topic)
    return pairs // model.topics, pairs % model.topics


def _power_law_weights(model: Hierarchy, seed: int) -> FloatArray:
    """A popularity from 1 to the number of peers for each topic."""
    values = np.arange(1, model.nodes + 1, dtype=np.float64) ** -model.alpha
    steps = np.cumsum(values / values.sum())
    steps[-1] = 1.0
    drawn = np.searchsorted(steps, uniforms(seed, _WEIGHTS, np.arange(model.topics)), side="right")
    return np.asarray(drawn + 1, np.float64)


def grow(model: Hierarchy, first: int, last: int, until: float, seed: int) -> Growth:
    """Steps a) and b), for peers `first` to `last - 1`, up to a moment; by peer, then topic."""
    peers, topics = initial_subscriptions(model, first, last, seed)
    parts = [Growth(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
    for start in range(first, last, _CHUNK_PEERS):
        stop = min(start + _CHUNK_PEERS, last)
        low, high = np.searchsorted(peers, [start, stop])
        parts.append(_grow_chunk(model, start, stop, peers[low:high], topics[low:high], until, seed))
    node, topic, time = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Growth(node, topic, time)


def _grow_chunk(
    model: Hierarchy, start: int, stop: int, peers: IndexArray, topics: IndexArray, until: float, seed: int
) -> Growth:
    count = stop - start
    size = np.bincount(peers - start, minlength=count)
    capacity = max(int(size.max(initial=1)), 8)
    # One row per peer; -1 is nothing.
    lists = np.full((count, capacity), -1, np.int64)
    times = np.zeros((count, capacity))
    offsets = np.cumsum(size) - size
    lists[peers - start, np.arange(len(peers)) - offsets[peers - start]] = topics

    now = np.zeros(count)
    active = np.flatnonzero(size)  # a peer without any subscription never gets one
    ring = 0
    while len(active):
        peer = active + start
        now[active] += -np.log1p(-uniforms(seed, _WAITS, peer, ring)) / size[active]
        active = active[now[active] <= until]
        peer = active + start
        place = (uniforms(seed, _PICKS, peer, ring) * size[active]).astype(np.int64)
        proposed = _neighbour(model, lists[active, place], peer, ring, seed)
        new = ~(lists[active] == proposed[:, np.newaxis]).any(axis=1)
        if (size[active[new]] == capacity).any():
            lists = np.pad(lists, ((0, 0), (0, capacity)), constant_values=-1)
            times = np.pad(times, ((0, 0), (0, capacity)))
            capacity *= 2
        lists[active[new], size[active[new]]] = proposed[new]
        times[active[new], size[active[new]]] = now[active[new]]
        size[active[new]] += 1
        ring += 1
    node, place = np.nonzero(lists >= 0)
    topic, time = lists[node, place], times[node, place]
    order = np.lexsort((topic, node))
    return Growth(node[order] + start, topic[order], time[order])


def _neighbour(model: Hierarchy, topic: IndexArray, peer: IndexArray, ring: int, seed: int) -> IndexArray:
    """A topic at a random tree distance from each: distance l is that the lowest common ancestor is l levels up.

    Topics at distance l are the leaves of one subtree: those that share all but the last l bits, and not the l-th.
    Where the number of topics is no power of two that subtree may be empty; then its distance is not drawn.
    """
    levels = np.arange(1, model.height + 1)
    first_leaf = ((topic[:, np.newaxis] >> (levels - 1)) ^ 1) << (levels - 1)
    leaves = np.clip(model.topics - first_leaf, 0, np.left_shift(1, levels - 1))
    steps = np.cumsum(np.where(leaves > 0, np.exp(-model.homophily * levels), 0.0), axis=1)
    # Strictly below the last step, so that what is found is a level that has leaves.
    drawn = uniforms(seed, _DISTANCES, peer, ring) * steps[:, -1]
    level = np.minimum((steps <= drawn[:, np.newaxis]).sum(axis=1), model.height - 1)
    row = np.arange(len(topic))
    width = leaves[row, level].astype(np.uint64)
    offset = hashes(seed, _LEAVES, peer, ring) % np.maximum(width, np.uint64(1))
    return np.asarray(first_leaf[row, level] + offset.astype(np.int64))


def likely_horizon(model: Hierarchy, seed: int) -> float:
    """A moment at which most likely enough has grown: it has, and a little more, among a thousand of the peers."""
    sample = min(model.nodes, 1024)
    enough = int(1.1 * model.average * sample)
    horizon = 4.0
    while horizon < 1e6:
        times = grow(model, 0, sample, horizon, seed).time
        if len(times) >= enough:
            return float(np.partition(times, enough - 1)[enough - 1])
        horizon *= 2
    raise BadInput(
        f"{model.average:g} topics per node: not reached, peers find no topics they lack; "
        "choose a smaller average, a smaller homophily or a larger initial_share"
    )


def stopping_time(model: Hierarchy, seed: int) -> float:
    """The moment at which the peers together have the wanted number of subscriptions, all grown here."""
    horizon = likely_horizon(model, seed)
    while True:
        times = np.sort(grow(model, 0, model.nodes, horizon, seed).time)
        if len(times) >= model.target:
            return float(times[model.target - 1])
        horizon *= 1.25
