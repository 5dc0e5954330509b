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

A ring that proposes a topic the peer has already adds nothing (the paper does not say; a list has no
repetitions). With strong homophily nearly all rings are of that kind, so they are skipped: rings that bring
something new come at a rate of their own, that of all rings times the chance that a proposal is new, and what
they bring is drawn among what is new. That, too, is the same law.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from topicweave.errors import BadInput
from topicweave.model.arrays import FloatArray, IntArray
from topicweave.workloads.counter_random import hashes, uniforms

_WEIGHTS, _HOME_TOPICS, _HOME_PEERS, _WAITS, _PICKS, _DISTANCES, _LEAVES = range(31, 38)  # streams
_CHUNK_PEERS = 1 << 12
_NOTHING_NEW = 1e-12
"""A chance below that is what rounding has left of none."""


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

    node: IntArray
    topic: IntArray
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


def initial_subscriptions(model: Hierarchy, first: int, last: int, seed: int) -> tuple[IntArray, IntArray]:
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


class _Tree(NamedTuple):
    """Of each topic (row) and each distance from 1 on (column)."""

    leaves: IntArray
    """Topics at that distance: the leaves of one subtree, those that share all but the last l bits, and not
    the l-th. Where the number of topics is no power of two the subtree may be empty; then that distance is
    not drawn.
    """
    chance: FloatArray
    """That a proposal is a given one of them."""


def _tree(model: Hierarchy) -> _Tree:
    levels = np.arange(1, model.height + 1)
    topics = np.arange(model.topics)[:, np.newaxis]
    leaves = np.clip(model.topics - _first_leaf(topics, levels), 0, np.left_shift(1, levels - 1))
    weights = np.where(leaves > 0, np.exp(-model.homophily * levels), 0.0)
    return _Tree(leaves, weights / weights.sum(axis=1, keepdims=True) / np.maximum(leaves, 1))


def _first_leaf(topic: IntArray, level: IntArray) -> IntArray:
    return np.asarray(((topic >> (level - 1)) ^ 1) << (level - 1))


def _distance(one: IntArray, other: IntArray) -> IntArray:
    """How many levels up the lowest common ancestor is; 0 for the same topic."""
    return np.frexp((one ^ other).astype(np.float64))[1].astype(np.int64)


class _Lists:
    """Growing lists of a range of peers, one row each, and what their subscriptions may still bring."""

    def __init__(self, tree: _Tree, peers: int, capacity: int) -> None:
        self._tree = tree
        self.size = np.zeros(peers, np.int64)
        self.topics = np.full((peers, capacity), -1, np.int64)
        """-1 is nothing."""
        self.times = np.zeros((peers, capacity))
        self.new = np.zeros((peers, capacity))
        """The chance that a ring of each subscription brings a topic that its peer lacks."""

    def add(self, rows: IntArray, topic: IntArray, time: FloatArray | float) -> None:
        """One new topic for each of the rows."""
        if (self.size[rows] == self.topics.shape[1]).any():
            wider = ((0, 0), (0, self.topics.shape[1]))
            self.topics = np.pad(self.topics, wider, constant_values=-1)
            self.times, self.new = np.pad(self.times, wider), np.pad(self.new, wider)
        known = self.topics[rows]
        row, place = np.nonzero(known >= 0)
        old, added = known[row, place], topic[row]
        level = _distance(old, added) - 1
        chance = self._tree.chance
        self.new[rows[row], place] -= chance[old, level]
        last = self.size[rows]
        self.new[rows, last] = 1.0 - np.bincount(row, chance[added, level], minlength=len(rows))
        self.topics[rows, last] = topic
        self.times[rows, last] = time
        self.size[rows] += 1

    def bring(
        self, rows: IntArray, place: IntArray, level_draw: FloatArray, leaf_draw: npt.NDArray[np.uint64]
    ) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """A topic that each row lacks, as the subscription at its place proposes it; and whether there is any."""
        tree, held = self._tree, self.topics[rows]
        topic = held[np.arange(len(rows)), place]
        height = tree.leaves.shape[1]
        distance = np.where(held >= 0, _distance(held, topic[:, np.newaxis]), 0)
        row = np.repeat(np.arange(len(rows)), held.shape[1])
        counts = np.bincount(row * (height + 1) + distance.ravel(), minlength=len(rows) * (height + 1))
        left = tree.leaves[topic] - counts.reshape(len(rows), height + 1)[:, 1:]
        steps = np.cumsum(tree.chance[topic] * left, axis=1)
        # Strictly below the last step, so that what is found is a distance that has something left.
        level = np.minimum((steps <= (level_draw * steps[:, -1])[:, np.newaxis]).sum(axis=1), height - 1) + 1
        room = left[np.arange(len(rows)), level - 1]
        number = (leaf_draw % np.maximum(room, 1).astype(np.uint64)).astype(np.int64)
        first = _first_leaf(topic, level)
        # The number-th leaf that is not held: one further for each held one at or before it.
        beyond = np.iinfo(np.int64).max // 2
        taken = np.where(distance == level[:, np.newaxis], held - first[:, np.newaxis], beyond)
        taken.sort(axis=1)
        skipped = (taken - np.arange(taken.shape[1]) <= number[:, np.newaxis]).sum(axis=1)
        return first + number + skipped, room > 0


def _grow_chunk(
    model: Hierarchy, start: int, stop: int, peers: IntArray, topics: IntArray, until: float, seed: int
) -> Growth:
    initial = np.bincount(peers - start, minlength=stop - start)
    lists = _Lists(_tree(model), stop - start, max(int(initial.max(initial=1)), 8))
    number = np.arange(len(peers)) - (np.cumsum(initial) - initial)[peers - start]
    for each in range(int(initial.max(initial=0))):
        lists.add(peers[number == each] - start, topics[number == each], 0.0)

    now = np.zeros(stop - start)
    active = np.flatnonzero(lists.size)  # a peer without any subscription never gets one
    ring = 0
    while len(active):
        # Summed one after another, so that a sum does not depend on how wide the rows are.
        steps = np.cumsum(np.maximum(lists.new[active], 0.0), axis=1)
        rate = steps[:, -1]
        with np.errstate(divide="ignore"):
            wait = -np.log1p(-uniforms(seed, _WAITS, active + start, ring)) / rate
        going = (now[active] + wait <= until) & (rate > _NOTHING_NEW)
        active, steps, rate, wait = active[going], steps[going], rate[going], wait[going]
        now[active] += wait
        drawn = uniforms(seed, _PICKS, active + start, ring) * rate
        place = np.minimum((steps <= drawn[:, np.newaxis]).sum(axis=1), lists.size[active] - 1)
        brought, any_left = lists.bring(
            active,
            place,
            uniforms(seed, _DISTANCES, active + start, ring),
            hashes(seed, _LEAVES, active + start, ring),
        )
        lists.add(active[any_left], brought[any_left], now[active[any_left]])
        ring += 1
    node, place = np.nonzero(lists.topics >= 0)
    topic, time = lists.topics[node, place], lists.times[node, place]
    order = np.lexsort((topic, node))
    return Growth(node[order] + start, topic[order], time[order])


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
