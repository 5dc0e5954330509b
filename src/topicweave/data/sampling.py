"""Smaller workloads out of large ones, as the papers take them: one reading of each paper's section, in memory.

`topicweave.pipeline.sample` does the same on Spark to workloads of any size; the same seed gives the same
sample in both, at any number of partitions. Random choices go by a hash of the seed and the name, so they do
not depend on how rows are spread or ordered: the k chosen are the k with the smallest hashes.

In every sample a node keeps its place and its comings and goings, and a topic that nobody in it wants is left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from topicweave.errors import BadInput
from topicweave.model.arrays import BoolArray, IntArray
from topicweave.model.workload import Workload

Step = Literal["out", "both"]

BANDS = 10
"""Of list lengths, in a sample by neighbourhood; a large one has a band for every so many nodes."""
FEW = 3
"""Users that a breadth-first search starts from (OMen §6.1: "a random set of a few users as seeds")."""


def chances(seed: int, names: Sequence[str]) -> npt.NDArray[np.uint64]:
    """A random number per name: the first 64 bits of the SHA-256 of `SEED/NAME`.

    >>> [hex(chance) for chance in chances(0, ["ann"]).tolist()]
    ['0xa446fb4a4a8eae8f']
    """
    start = hashlib.sha256(f"{seed}/".encode())
    digests = bytearray()
    for name in names:
        one = start.copy()
        one.update(name.encode())
        digests += one.digest()[:8]
    return np.frombuffer(bytes(digests), ">u8").astype(np.uint64)


def breadth_first(
    workload: Workload, *, nodes: int, seeds: int = FEW, follow: Step = "both", seed: int = 0
) -> Workload:
    """OMen §6.1: from a few random users breadth first to `nodes` users; all links among them are kept.

    The paper traverses "the social graph": from a user to whom it follows and to who follows it
    (`follow="both"`; "out" is along whom it follows only). Of the level that would be too many, users at
    random. Where a search ends before it has enough, another random user is begun from. A user stays in the
    sample even if it follows nobody in it: the paper counts the nodes reached.
    """
    check_search(nodes, seeds)
    if nodes > workload.nodes:
        raise too_few_nodes("the workload", workload.nodes, nodes)
    source, target = _links(workload)
    if follow == "both":
        source, target = np.concatenate([source, target]), np.concatenate([target, source])
    order = np.argsort(source, kind="stable")
    target = target[order]
    starts = np.searchsorted(source[order], np.arange(workload.nodes + 1))
    chance = chances(seed, workload.node_names)
    found = np.zeros(workload.nodes, np.bool_)
    frontier = np.empty(0, np.int64)
    count, begun = 0, seeds
    while count < nodes:
        if frontier.size:
            reached = np.unique(_rows_of(starts, target, frontier))
            frontier = _smallest(chance, reached[~found[reached]], nodes - count)
        else:
            frontier = _smallest(chance, np.flatnonzero(~found), min(begun, nodes - count))
            begun = 1
        found[frontier] = True
        count += len(frontier)
    return _among(workload, found)


def followed(workload: Workload, *, nodes: int, seed: int = 0) -> Workload:
    """Vitis §IV-E: random users and all whom they follow, until there are `nodes` or a few more; all
    relations between these.

    The paper calls this "multiple breadth first searches" and gets "nearly 10000" nodes.
    """
    check_search(nodes, 1)
    if nodes > workload.nodes:
        raise too_few_nodes("the workload", workload.nodes, nodes)
    source, target = _links(workload)
    chance = chances(seed, workload.node_names)
    # A user is in from the first in the random order that is the user itself or follows it.
    first = chance.copy()
    np.minimum.at(first, target, chance[source])
    last = np.partition(first, nodes - 1)[nodes - 1]
    return _among(workload, first <= last)


def universe(workload: Workload, *, seeds: int, publishers: int, seed: int = 0) -> Workload:
    """Rappel §6.1.2: random seed journals, all who subscribe to at least one of them, and of the journals
    that these subscribe to the `publishers` most subscribed to among them; other subscriptions are dropped.

    A user who then wants nothing is no subscriber and is left out. So read, the paper's own numbers agree:
    10,000 seeds gave 304,814 users, 30 each or more where seeds are fewer, but 250 seeds gave 5,582
    subscribers to 100 publishers. "Their respective journals" are the journals that users subscribe to; the
    other reading, those that they write, has no meaning where topics are no users. Of journals equally wanted
    the one whose name sorts first is taken.
    """
    check_universe(seeds, publishers)
    kept, popular = _universe(workload, _first_seed(workload, seed), seeds, publishers)
    return _restricted(workload, kept, popular)


def subscribers_of_popular(
    workload: Workload, *, subscribers: int, publishers: int, seed: int = 0
) -> tuple[Workload, list[str]]:
    """The universe (Rappel §6.1.2) of as few seeds as give so many subscribers, cut to that number at random;
    and its publishers, the most wanted first.
    """
    check_universe(1, publishers)
    first = _first_seed(workload, seed)
    low, high = 1, workload.topics
    while low < high:
        middle = (low + high) // 2
        enough = _universe(workload, first, middle, publishers)[0].sum() >= subscribers
        low, high = (low, middle) if enough else (middle + 1, high)
    kept, popular = _universe(workload, first, low, publishers)
    if kept.sum() < subscribers:
        raise BadInput(
            f"{int(kept.sum()):,} nodes want one of the {publishers:,} most wanted topics, "
            f"fewer than the {subscribers:,} asked for; ask for fewer"
        )
    chosen = np.zeros(workload.nodes, np.bool_)
    chosen[_smallest(chances(seed, workload.node_names), np.flatnonzero(kept), subscribers)] = True
    return _restricted(workload, chosen, popular), [workload.topic_names[topic] for topic in popular.tolist()]


def _first_seed(workload: Workload, seed: int) -> IntArray:
    """Per user, the place in the random order of topics of the first that it wants; of those who want
    nothing, beyond all.
    """
    wanted = np.bincount(workload.topic_index, minlength=workload.topics) > 0
    chance = chances(seed, workload.topic_names)
    place = np.full(workload.topics, workload.topics, np.int64)
    order = np.flatnonzero(wanted)[np.argsort(chance[wanted], kind="stable")]
    place[order] = np.arange(len(order))
    first = np.full(workload.nodes, workload.topics, np.int64)
    node, topic = workload.subscription_pairs()
    np.minimum.at(first, node, place[topic])
    return first


def _universe(
    workload: Workload, first_seed: IntArray, seeds: int, publishers: int
) -> tuple[BoolArray, IntArray]:
    """Which users are in, and the publishers, the most wanted first."""
    node, topic = workload.subscription_pairs()
    inside = first_seed < seeds
    counts = np.bincount(topic[inside[node]], minlength=workload.topics)
    popular = np.argsort(-counts, kind="stable")[: min(publishers, int((counts > 0).sum()))]
    chosen = np.zeros(workload.topics, np.bool_)
    chosen[popular] = True
    kept = inside & (np.bincount(node[chosen[topic]], minlength=workload.nodes) > 0)
    return kept, popular


def random_topics(workload: Workload, *, topics: int, seed: int = 0) -> Workload:
    """Magnet §4.5: so many random topics out of all that somebody wants, and everybody who wants one of them."""
    wanted = np.flatnonzero(np.bincount(workload.topic_index, minlength=workload.topics))
    check_topics("the workload", len(wanted), topics)
    chosen = _smallest(chances(seed, workload.topic_names), wanted, topics)
    node, topic = workload.subscription_pairs()
    kept = np.zeros(workload.nodes, np.bool_)
    kept[node[np.isin(topic, chosen)]] = True
    return _restricted(workload, kept, chosen)


def neighbourhood(workload: Workload, nodes: int, seed: int = 0) -> Workload:
    """So many of the nodes, chosen by what they have in common, with all their topics.

    A few nodes drawn at random out of many share next to nothing: nearly every topic is left with one
    subscriber. So nodes are added in rounds, each as large as all before it: those of whose topics the
    largest share is wanted in the sample already. Chosen among all, those would be nodes that want one
    popular topic and nothing else; so each is chosen among the nodes with lists of about the same length
    (`bands_for`), in a random order of lengths. Lengths come out as they are in the whole, and audiences are
    kept as far as so few nodes allow.
    """
    if nodes >= workload.nodes:
        return workload
    sizes = np.diff(workload.offsets)
    number = np.empty(workload.nodes, np.int64)
    number[np.lexsort((chances(seed, workload.node_names), sizes))] = np.arange(workload.nodes)
    bands = bands_for(nodes)
    band = band_of(number, workload.nodes, bands)
    node, topic = workload.subscription_pairs()
    kept = np.zeros(workload.nodes, np.bool_)
    wanted = np.zeros(workload.topics, np.bool_)
    for needed in rounds(nodes, seed):
        common = np.bincount(node[wanted[topic]], minlength=workload.nodes)
        share = np.where(kept, -1.0, common / np.maximum(sizes, 1))
        order = np.lexsort((number, -share, band))
        place = np.arange(workload.nodes) - np.searchsorted(band[order], np.arange(bands))[band[order]]
        kept[order[place < needed[band[order]]]] = True
        wanted[topic[kept[node]]] = True
    return _restricted(workload, kept, np.arange(workload.topics))


def bands_for(count: int) -> int:
    """How many bands of list lengths, with equal numbers of nodes, a sample of so many nodes is drawn from."""
    return max(1, min(count, max(BANDS, count // BANDS)))


def band_of(number: IntArray, nodes: int, bands: int) -> IntArray:
    """The band of the nodes at these places in the order of list lengths; the first bands take what is left over.

    >>> band_of(np.arange(8), 8, 3).tolist()
    [0, 0, 0, 1, 1, 1, 2, 2]
    """
    width, longer = divmod(nodes, bands)
    ends = longer * (width + 1)
    return np.where(number < ends, number // (width + 1), longer + (number - ends) // max(1, width))


def rounds(count: int, seed: int) -> Iterator[IntArray]:
    """How many nodes of each band every round adds: one, one, two, four and so on.

    >>> [added.sum().item() for added in rounds(11, seed=0)]
    [1, 1, 2, 4, 3]
    """
    bands = bands_for(count)
    turns = np.arange(count) * bands // count
    turns = turns[np.argsort(chances(seed, [f"turn {turn}" for turn in range(count)]), kind="stable")]
    begun = 0
    while begun < count:
        ended = min(count, max(1, 2 * begun))
        yield np.bincount(turns[begun:ended], minlength=bands)
        begun = ended


def _smallest(chance: npt.NDArray[np.uint64], among: IntArray, count: int) -> IntArray:
    """The `count` of the given places with the smallest chances."""
    return among[np.argsort(chance[among], kind="stable")[:count]]


def _links(workload: Workload) -> tuple[IntArray, IntArray]:
    """Who follows whom, by node indexes; raises unless every topic is a node."""
    names = pa.array(workload.node_names, pa.string())
    users = pc.index_in(pa.array(workload.topic_names, pa.string()), value_set=names)
    if users.null_count:
        raise no_graph("the workload", workload.topic_names[pc.index(users.is_null(), True).as_py()])
    node, topic = workload.subscription_pairs()
    target: IntArray = users.to_numpy().astype(np.int64)[topic]
    return node.astype(np.int64), target


def _rows_of(starts: IntArray, targets: IntArray, rows: IntArray) -> IntArray:
    """The targets of some rows of an adjacency list, one after another."""
    sizes = starts[rows + 1] - starts[rows]
    ends = np.cumsum(sizes)
    places = np.arange(int(ends[-1])) + np.repeat(starts[rows] - (ends - sizes), sizes)
    found: IntArray = targets[places]
    return found


def _among(workload: Workload, nodes: BoolArray) -> Workload:
    """Some users with the links between them."""
    names = pa.array(workload.node_names, pa.string()).filter(pa.array(nodes))
    inside = pc.is_in(pa.array(workload.topic_names, pa.string()), value_set=names)
    return _restricted(workload, nodes, np.flatnonzero(inside.to_numpy(zero_copy_only=False)))


def _restricted(workload: Workload, nodes: BoolArray, topics: IntArray) -> Workload:
    """Some nodes and topics of a workload; topics that none of the nodes wants are left out."""
    node, topic = workload.subscription_pairs()
    chosen = np.zeros(workload.topics, np.bool_)
    chosen[topics] = True
    pairs = nodes[node] & chosen[topic]
    if not pairs.any():
        raise empty_sample()
    wanted = np.unique(topic[pairs])
    tables = workload.tables()
    names = pa.array(workload.node_names, pa.string()).filter(pa.array(nodes))
    hosts = pa.table({"node": names})
    if workload.hosts is not None:
        places = workload.hosts[nodes]
        hosts = pa.table({"node": names, "x": places[:, 0], "y": places[:, 1]})
    churn = tables.get("churn")
    return Workload.from_tables(
        tables["subscriptions"].filter(pa.array(pairs)),
        tables["topics"].take(pa.array(wanted)),
        None if churn is None else churn.filter(pc.is_in(churn["node"].cast(pa.string()), value_set=names)),
        hosts,
    )


def check_search(nodes: int, seeds: int) -> None:
    if nodes < 1 or seeds < 1:
        raise BadInput(f"{nodes} nodes from {seeds} seeds: too few; ask for at least one of each")


def check_universe(seeds: int, publishers: int) -> None:
    if seeds < 1 or publishers < 1:
        raise BadInput(
            f"{seeds} seed journals, {publishers} publishers: too few; ask for at least one of each"
        )


def check_topics(where: str, available: int, topics: int) -> None:
    if not 1 <= topics <= available:
        raise BadInput(f"{where}: {available:,} topics, {topics:,} asked for; ask for 1 to {available:,}")


def too_few_nodes(where: str, available: int, nodes: int) -> BadInput:
    return BadInput(f"{where}: {available:,} nodes, fewer than the {nodes:,} asked for; ask for fewer")


def no_graph(where: str, topic: str) -> BadInput:
    return BadInput(
        f"{where}: topic {topic!r} is no node, so this is no graph of users to search in; "
        "sample by common interests (workload sample neighbourhood), or import who follows whom as edges"
    )


def empty_sample() -> BadInput:
    return BadInput("the sample is empty; take more seeds, nodes or topics")
