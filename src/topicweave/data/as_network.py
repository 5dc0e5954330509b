"""The network model of Rappel §6.1.1: hosts in stub networks of an AS graph, and how long messages take between them.

Theory of operation
-------------------
- An AS with one or two neighbours is a stub; the others carry traffic for each other. (Of CAIDA's graph of
  November 2007 20,402 ASes are stubs by this rule; the paper's graph has 20,062.) Each host gets a stub of
  its own.
- Every link has a latency, drawn as the paper says: 10% of links in 0 to 4 ms, 30% in 4 to 30 ms, 60% in 30 to 115 ms.
- A route takes the fewest ASes; among those, the least latency. (Routes of least latency would all pass a few
  lucky hubs and turn the network into a star of short paths, unlike PlanetLab's.)
- The sum of link latencies along a route is the **round-trip time**: so read, the paper's figures give PlanetLab's
  distribution (median about 135 ms, 95th percentile about 325 ms); as one-way delays they would be twice too long.
- Fluctuation: each pair of hosts follows, over time, a PlanetLab pair whose median round trip is nearest to its own.

`delay` is one way, in seconds: half a round trip.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from topicweave.errors import BadInput
from topicweave.model.arrays import FloatArray, IntArray

Matrix = npt.NDArray[np.float32]

STUB_DEGREE = 2
LINK_CLASSES = ((0.10, 0.0, 4.0), (0.30, 4.0, 30.0), (0.60, 30.0, 115.0))
"""(share of links, least, most milliseconds)."""

_HOP = 1e5  # milliseconds that an AS hop counts for when routes are compared: more than any route takes
_ROWS = 512


@dataclass(frozen=True)
class ASGraph:
    """Undirected links between ASes numbered from 0."""

    ases: int
    source: IntArray
    target: IntArray

    @classmethod
    def of_links(cls, source: npt.ArrayLike, target: npt.ArrayLike) -> ASGraph:
        """Of links in any numbering, loops and repetitions dropped; only the largest connected part is kept."""
        one, other = np.asarray(source, np.int64), np.asarray(target, np.int64)
        if one.shape != other.shape or not one.size:
            raise BadInput("AS graph: need as many sources as targets, and at least one link")
        names, ends = np.unique(np.concatenate([one, other]), return_inverse=True)
        low, high = np.sort(ends.reshape(2, -1), axis=0)
        pairs = np.unique((low * len(names) + high)[low != high])
        low, high = np.divmod(pairs, len(names))
        label = _components(len(names), low, high)
        kept = np.flatnonzero(label == np.bincount(label).argmax())
        number = np.full(len(names), -1, np.int64)
        number[kept] = np.arange(len(kept))
        inside = number[low] >= 0
        return cls(len(kept), number[low[inside]], number[high[inside]])

    @property
    def degrees(self) -> IntArray:
        return np.bincount(np.concatenate([self.source, self.target]), minlength=self.ases)

    @property
    def stubs(self) -> npt.NDArray[np.bool_]:
        return self.degrees <= STUB_DEGREE


def generated_graph(ases: int, seed: int) -> ASGraph:
    """Grown by preferential attachment, of the same kind as the measured graphs.

    Four newcomers of five are stubs that buy from one or two providers, the fifth is a provider itself with
    four links. Only providers are bought from, in proportion to their links; half of the time two are drawn
    and the larger taken: the few hubs that make measured routes about four hops long.
    """
    if ases < 10:
        raise BadInput(f"AS graph of {ases} ASes: ask for at least 10")
    rng = random.Random(f"as-graph/{seed}")
    links = [0] * ases
    shares: list[int] = []  # each provider as often as it has links
    source: list[int] = []
    target: list[int] = []

    def join(one: int, other: int) -> None:
        source.append(one)
        target.append(other)
        for end in (one, other):
            links[end] += 1

    core = 5
    for one in range(core):
        for other in range(one):
            join(one, other)
            shares += (one, other)
    for newcomer in range(core, ases):
        wanted = rng.choices((1, 2, 4), weights=(0.4, 0.4, 0.2))[0]
        providers: set[int] = set()
        while len(providers) < wanted:
            drawn = rng.choice(shares)
            if rng.random() < 0.5:
                drawn = max(drawn, rng.choice(shares), key=links.__getitem__)
            providers.add(drawn)
        for provider in sorted(providers):
            join(newcomer, provider)
            shares.append(provider)
        if wanted > STUB_DEGREE:
            shares += [newcomer] * wanted
    return ASGraph.of_links(source, target)


def link_latencies(links: int, rng: np.random.Generator) -> FloatArray:
    """Milliseconds that each link adds to a round trip."""
    kind = rng.choice(len(LINK_CLASSES), size=links, p=[share for share, _, _ in LINK_CLASSES])
    low = np.array([low for _, low, _ in LINK_CLASSES])[kind]
    high = np.array([high for _, _, high in LINK_CLASSES])[kind]
    drawn: FloatArray = low + (high - low) * rng.random(links)
    return drawn


def round_trips(graph: ASGraph, hosts: int, seed: int) -> Matrix:
    """Round-trip times in milliseconds between hosts in distinct stub ASes, drawn from the seed."""
    rng = np.random.default_rng([seed, 0xA5])
    latency = link_latencies(len(graph.source), rng)
    stub = graph.stubs
    # A stub carries nobody else's traffic, so routes between stubs only pass the others.
    ends = np.concatenate([graph.source, graph.target]), np.concatenate([graph.target, graph.source])
    both = np.concatenate([latency, latency])
    uplink = stub[ends[0]] & ~stub[ends[1]]
    attached = np.unique(ends[0][uplink])
    if hosts > len(attached):
        raise BadInput(
            f"AS network: {hosts} hosts need as many stub ASes of their own, the graph has {len(attached)}"
        )
    home = rng.choice(attached, size=hosts, replace=False)
    providers, costs = _uplinks(home, ends[0][uplink], ends[1][uplink], both[uplink] + _HOP)
    gates = np.unique(providers)
    core = ~stub[ends[0]] & ~stub[ends[1]]
    between = _routes(graph.ases, ends[0][core], ends[1][core], both[core] + _HOP, gates)
    return _end_to_end(np.searchsorted(gates, providers), costs, between)


def _uplinks(
    home: IntArray, stubs: IntArray, upstream: IntArray, cost: FloatArray
) -> tuple[IntArray, FloatArray]:
    """The (one or two) providers of each host's AS and what the way to them costs; a single one stands twice."""
    order = np.argsort(stubs, kind="stable")
    stubs, upstream, cost = stubs[order], upstream[order], cost[order]
    first = np.searchsorted(stubs, home)
    last = np.searchsorted(stubs, home, side="right") - 1
    return np.stack([upstream[first], upstream[last]], axis=1), np.stack([cost[first], cost[last]], axis=1)


def _routes(ases: int, source: IntArray, target: IntArray, cost: FloatArray, gates: IntArray) -> FloatArray:
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import dijkstra

    graph = csr_matrix((cost, (source, target)), shape=(ases, ases))
    # Only the part of the network that routes can pass, renumbered: most ASes are stubs.
    passed = np.unique(np.concatenate([source, gates]))
    small = graph[passed][:, passed]
    places = np.searchsorted(passed, gates)
    rows = [
        dijkstra(small, indices=places[start : start + _ROWS])[:, places]
        for start in range(0, len(places), _ROWS)
    ]
    routes: FloatArray = np.concatenate(rows)
    return routes


def _end_to_end(gate: IntArray, cost: FloatArray, between: FloatArray) -> Matrix:
    hosts = len(gate)
    rtt = np.empty((hosts, hosts), np.float32)
    for start in range(0, hosts, _ROWS):
        rows = slice(start, start + _ROWS)
        best = np.full((len(gate[rows]), hosts), np.inf)
        for mine in (0, 1):
            for theirs in (0, 1):
                way = between[gate[rows, mine][:, None], gate[:, theirs][None, :]]
                np.minimum(best, way + cost[rows, mine][:, None] + cost[:, theirs][None, :], out=best)
        if not np.isfinite(best).all():
            raise BadInput("AS network: some stub ASes cannot reach each other; give a connected graph")
        rtt[rows] = best % _HOP
    np.fill_diagonal(rtt, 0.0)
    return rtt


def _components(vertices: int, source: IntArray, target: IntArray) -> npt.NDArray[np.int32]:
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    links = csr_matrix((np.ones(len(source), np.int8), (source, target)), shape=(vertices, vertices))
    labels: npt.NDArray[np.int32] = connected_components(links, directed=False)[1]
    return labels


class PairDelays:
    """Given round-trip times of all pairs of hosts, the same at all times."""

    def __init__(self, rtt_ms: npt.ArrayLike) -> None:
        matrix = _square(rtt_ms)
        self._hosts = len(matrix)
        self._seconds: Any = plain_view((matrix / 2000.0).astype(np.float32).ravel())

    def delay(self, source: int, target: int, now: float) -> float:
        seconds: float = self._seconds[source * self._hosts + target]
        return seconds


class FluctuatingDelays:
    """Each pair follows a measured series: that of the measured pair whose median round trip is nearest to its own.

    Among the sixteen nearest one is taken by the pair's numbers, so that pairs of equal distance do not move
    in step. After the last slice the series starts again.
    """

    def __init__(
        self, rtt_ms: npt.ArrayLike, slices_rtt_ms: Sequence[npt.ArrayLike], slice_seconds: float
    ) -> None:
        matrix = _square(rtt_ms)
        series = np.stack([_square(measured)[_upper(measured)] for measured in slices_rtt_ms])
        medians = np.median(series, axis=0)
        order = np.argsort(medians, kind="stable")
        series, medians = series[:, order], medians[order]
        self._hosts = hosts = len(matrix)
        match = np.empty((hosts, hosts), np.int32)
        column = np.arange(hosts, dtype=np.int64)
        for start in range(0, hosts, _ROWS):
            row = column[start : start + _ROWS]
            near = np.searchsorted(medians, matrix[start : start + _ROWS])
            spread = ((row[:, None] ^ column[None, :]) * 2_654_435_761 >> 8) % 16 - 8
            match[start : start + _ROWS] = np.clip(near + spread, 0, len(medians) - 1)
        self._match: Any = plain_view(match.ravel())
        self._series: Any = [plain_view(one / 2000.0) for one in series]
        self._slice_seconds = slice_seconds

    def delay(self, source: int, target: int, now: float) -> float:
        series = self._series[int(now / self._slice_seconds) % len(self._series)]
        seconds: float = series[self._match[source * self._hosts + target]]
        return seconds


def plain_view(array: Any) -> Any:
    """A memory view gives plain numbers, one at a time, several times faster than an array does."""
    plain: Any = np.ascontiguousarray(array)
    return memoryview(plain)


def _square(matrix: npt.ArrayLike) -> FloatArray:
    square = np.asarray(matrix, np.float64)
    if square.ndim != 2 or square.shape[0] != square.shape[1] or not square.size:
        raise BadInput(f"round-trip times: need a square matrix, got shape {square.shape}")
    if not np.isfinite(square).all() or (square < 0).any():
        raise BadInput("round-trip times: all must be 0 or more milliseconds")
    return square


def _upper(matrix: npt.ArrayLike) -> tuple[IntArray, IntArray]:
    return np.triu_indices(len(np.asarray(matrix)), 1)


def spread_out(rtt_ms: Matrix | FloatArray, count: int, first: int = 0) -> list[int]:
    """Hosts far from each other: each next one is the farthest from those chosen ("geographically diverse", §6.1.4)."""
    chosen = [first]
    away = np.array(rtt_ms[first], np.float64)
    while len(chosen) < min(count, len(rtt_ms)):
        away[chosen] = -1.0
        chosen.append(int(away.argmax()))
        away = np.minimum(away, rtt_ms[chosen[-1]])
    return chosen
