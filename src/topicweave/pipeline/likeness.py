"""How alike nodes' interests are, from a sample of nodes compared with every node.

tdi(d)          SpiderCast §3.4: the mean intersection, in percent of the shorter list, with the d best peers
similarity      the same with the share of common topics in all topics of both (Jaccard), for 1, 5 and 20 peers
friends         Rappel figure 1: each node takes k peers greedily, each time the one that covers most of what is
                still uncovered of its list; how much is covered, and at how many nodes all of it

The sampled lists are known to every task. A pass over the other nodes' lists finds, per partition, the best few
peers of every sampled node, as a sparse matrix product; the partitions' bests are then merged. Peers go by a 64-bit
hash of their name, and of equally good ones the smaller hash comes first, so that the outcome does not depend on how
nodes are spread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topicweave.model.arrays import IntArray

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from scipy.sparse import csr_matrix


FRIENDS = 10
LEAST_LIST = 5
"""Rappel figure 1 looks at users with at least five subscriptions."""
PEERS = (1, 5, 20)

_BEST = "sampled int, kind int, peer long, score double"
_ROWS = 1 << 12


class Sample(NamedTuple):
    """Some nodes' lists over the topics that occur in them."""

    keys: IntArray
    """The nodes' hashes."""
    matrix: csr_matrix
    """Nodes by topics, 1 where the node wants the topic."""
    topics: pa.Array


def measure(wishes: DataFrame, *, sample: int, d: int, seed: int) -> dict[str, Any]:
    """tdi(d), similarity and friends' coverage."""
    chosen = _sample(wishes, sample, seed)
    if len(chosen.keys) == 0:
        return {"sampled": 0}
    others = _lists_over(wishes, chosen.topics).persist()
    try:
        nodes = wishes.select("node").distinct().count()
        best = _best_peers(others, chosen, max(d, *PEERS))
        sampled = len(chosen.keys)
        found = {"sampled": sampled, "of": nodes, f"tdi_{d}": 100.0 * _mean_best(best, 0, d, sampled, nodes)}
        for peers in PEERS:
            found[f"similarity_{peers}"] = _mean_best(best, 1, peers, sampled, nodes)
        return found | {"friends": _friends(others, chosen)}
    finally:
        others.unpersist()


def _sample(wishes: DataFrame, count: int, seed: int) -> Sample:
    """At most `count` random nodes with their lists: this is what the driver holds, and no more."""
    from pyspark.sql import functions as sf
    from scipy.sparse import csr_matrix

    keyed = wishes.select(_key(), "topic")
    few = keyed.select("key").distinct().orderBy(sf.xxhash64(sf.lit(seed), "key"), "key").limit(count)
    table = keyed.join(sf.broadcast(few), "key").toArrow()
    keys, rows = np.unique(table["key"].to_numpy(), return_inverse=True)
    topics, columns = np.unique(
        table["topic"].to_numpy(zero_copy_only=False).astype(str), return_inverse=True
    )
    ones = np.ones(len(rows), np.float32)
    matrix = csr_matrix((ones, (rows, columns)), shape=(len(keys), len(topics)))
    return Sample(keys, matrix, pa.array(topics.tolist(), pa.string()))


def _key() -> Column:
    from pyspark.sql import functions as sf

    return sf.xxhash64("node").alias("key")


def _lists_over(wishes: DataFrame, topics: pa.Array) -> DataFrame:
    """Every node with the length of its list and the numbers of the sampled topics in it."""
    from pyspark.sql import functions as sf

    numbered = wishes.sparkSession.createDataFrame(
        pa.table({"topic": topics, "number": pa.array(range(len(topics)), pa.int32())})
    )
    return (
        wishes.join(sf.broadcast(numbered), "topic", "left")
        .groupBy(_key())
        .agg(sf.count("*").alias("size"), sf.sort_array(sf.collect_list("number")).alias("numbers"))
        .where("size(numbers) > 0")
    )


def _blocks(
    batches: Iterator[pa.RecordBatch], topics: int
) -> Iterator[tuple[IntArray, npt.NDArray[np.float32], csr_matrix]]:
    """Some thousand nodes at a time: keys, list sizes, and which sampled topics they want."""
    from scipy.sparse import csr_matrix

    for batch in batches:
        for start in range(0, batch.num_rows, _ROWS):
            block = batch.slice(start, _ROWS)
            numbers = block["numbers"]
            flat = numbers.flatten().to_numpy(zero_copy_only=False)
            offsets = np.concatenate([[0], np.cumsum(numbers.value_lengths().to_numpy(zero_copy_only=False))])
            ones = np.ones(len(flat), np.float32)
            matrix = csr_matrix((ones, flat, offsets), shape=(block.num_rows, topics))
            yield block["key"].to_numpy(), block["size"].to_numpy().astype(np.float32), matrix


Scores = Callable[[npt.NDArray[np.float32], npt.NDArray[np.float32]], list[npt.NDArray[np.float32]]]
"""(common topics, sampled nodes by block; the block's list sizes): scores of each kind, below 0 for no peer."""


class Ranked(NamedTuple):
    """Peers of sampled nodes, best first within each node."""

    sampled: IntArray
    peer: IntArray
    score: npt.NDArray[np.float64]


def _best(others: DataFrame, chosen: Sample, lists: csr_matrix, scores: Scores, keep: int) -> pa.Table:
    """For each sampled node and kind of score its `keep` best peers over all others, those with score 0 left out."""
    own_keys = chosen.keys

    def search(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        best: dict[int, Ranked] = {}
        for keys, sizes, wants in _blocks(batches, lists.shape[1]):
            common = (lists @ wants.T).toarray()
            _, selves, columns = np.intersect1d(own_keys, keys, return_indices=True)
            for kind, score in enumerate(scores(common, sizes)):
                score[selves, columns] = 0.0  # nobody is its own peer
                best[kind] = _merged(best.get(kind), score, keys, keep)
        for kind, ranked in best.items():
            yield pa.RecordBatch.from_pydict(
                {
                    "sampled": pa.array(ranked.sampled, pa.int32()),
                    "kind": pa.array(np.full(len(ranked.sampled), kind), pa.int32()),
                    "peer": ranked.peer,
                    "score": ranked.score,
                }
            )

    from pyspark.sql import Window
    from pyspark.sql import functions as sf

    found = others.mapInArrow(search, _BEST)
    ranking = Window.partitionBy("sampled", "kind").orderBy(sf.desc("score"), "peer")
    ranked = found.withColumn("rank", sf.row_number().over(ranking)).where(f"rank <= {keep}")
    return ranked.orderBy("kind", "sampled", "rank").toArrow()  # sampled nodes x kinds x keep


def _merged(best: Ranked | None, score: npt.NDArray[np.float32], keys: IntArray, keep: int) -> Ranked:
    """The best of those so far and of a block; rows of `score` are sampled nodes, columns the block's."""
    floor = np.zeros(len(score), np.float32)
    if score.shape[1] > keep:
        # Only what reaches the keep-th best score can be among the best.
        floor = -np.partition(-score, keep - 1, axis=1)[:, keep - 1]
    sampled, column = np.nonzero((score >= floor[:, np.newaxis]) & (score > 0))
    peer, value = keys[column], score[sampled, column].astype(np.float64)
    if best is not None:
        sampled = np.concatenate([best.sampled, sampled])
        peer, value = np.concatenate([best.peer, peer]), np.concatenate([best.score, value])
    order = np.lexsort((peer, -value, sampled))
    sampled = sampled[order]
    starts = np.searchsorted(sampled, sampled)
    first = order[np.arange(len(sampled)) - starts < keep]
    return Ranked(sampled[np.arange(len(sampled)) - starts < keep], peer[first], value[first])


def _best_peers(others: DataFrame, chosen: Sample, keep: int) -> pa.Table:
    own_sizes = np.asarray(chosen.matrix.sum(axis=1), np.float32).reshape(-1, 1)

    def scores(
        common: npt.NDArray[np.float32], sizes: npt.NDArray[np.float32]
    ) -> list[npt.NDArray[np.float32]]:
        return [common / np.minimum(own_sizes, sizes), common / (own_sizes + sizes - common)]

    return _best(others, chosen, chosen.matrix, scores, keep)


def _mean_best(best: pa.Table, kind: int, peers: int, sampled: int, nodes: int) -> float:
    """The mean score of the best peers, averaged over sampled nodes. Peers with nothing in common count as 0."""
    taken = min(peers, nodes - 1)
    if taken < 1:
        return float("nan")
    counted = (best["kind"].to_numpy() == kind) & (best["rank"].to_numpy() <= peers)
    return float(best["score"].to_numpy()[counted].sum()) / (taken * sampled)


def _friends(others: DataFrame, chosen: Sample) -> list[dict[str, float]]:
    """One pass per friend, until there is nothing left to cover; what is covered after each."""
    sizes = np.asarray(chosen.matrix.sum(axis=1)).ravel()
    long_enough = np.flatnonzero(sizes >= LEAST_LIST)
    if not len(long_enough):
        return []
    keys, sizes = chosen.keys[long_enough], sizes[long_enough]
    uncovered = chosen.matrix[long_enough]
    steps: list[dict[str, float]] = []
    more = True
    for friends in range(1, FRIENDS + 1):
        if more:
            found = _next_friends(others, keys, uncovered)
            more = found.num_rows > 0
            uncovered = _less(uncovered, found)
        covered = 1.0 - np.asarray(uncovered.sum(axis=1), np.float64).ravel() / sizes
        steps.append(
            {
                "friends": friends,
                "coverage_mean": float(covered.mean()),
                "fully_covered": float((covered >= 1.0).mean()),
            }
        )
    return steps


def _next_friends(others: DataFrame, own_keys: IntArray, uncovered: csr_matrix) -> pa.Table:
    """For each sampled node (that gains by one) the peer that covers most of what is uncovered, and what that is."""

    def search(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        gain = np.zeros(len(own_keys), np.float32)
        peer = np.zeros(len(own_keys), np.int64)
        covers: list[list[int]] = [[] for _ in own_keys]
        for keys, _sizes, wants in _blocks(batches, uncovered.shape[1]):
            order = np.argsort(keys)  # of equal gains the first is the smallest key
            keys, wants = keys[order], wants[order]
            common = (uncovered @ wants.T).toarray()
            _, selves, columns = np.intersect1d(own_keys, keys, return_indices=True)
            common[selves, columns] = 0.0
            best = common.argmax(axis=1)
            value = common[np.arange(len(own_keys)), best]
            better = (value > gain) | ((value == gain) & (value > 0) & (keys[best] < peer))
            for row in np.flatnonzero(better).tolist():
                gain[row], peer[row] = value[row], keys[best[row]]
                covers[row] = wants[best[row]].indices.tolist()
        rows = np.flatnonzero(gain > 0)
        yield pa.RecordBatch.from_pydict(
            {
                "sampled": pa.array(rows, pa.int32()),
                "peer": peer[rows],
                "gain": gain[rows].astype(np.float64),
                "covers": pa.array([covers[row] for row in rows], pa.list_(pa.int32())),
            }
        )

    from pyspark.sql import Window
    from pyspark.sql import functions as sf

    found = others.mapInArrow(search, "sampled int, peer long, gain double, covers array<int>")
    ranking = Window.partitionBy("sampled").orderBy(sf.desc("gain"), "peer")
    first = found.withColumn("rank", sf.row_number().over(ranking)).where("rank = 1")
    return first.select("sampled", "covers").toArrow()  # at most one short row per sampled node


def _less(uncovered: csr_matrix, found: pa.Table) -> csr_matrix:
    """The uncovered topics less those that each node's new friend covers."""
    left = uncovered.tolil()
    for row, covers in zip(found["sampled"].to_pylist(), found["covers"].to_pylist(), strict=True):
        left[row, covers] = 0.0
    sparse = left.tocsr()
    sparse.eliminate_zeros()
    return sparse
