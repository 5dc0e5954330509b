"""Distances in all topics' graphs by HyperANF (Boldi, Rosa and Vigna, WWW 2011).

Every vertex keeps a HyperLogLog counter of the vertices within so many steps of it: the counter of one step
more is the maximum, register by register, of its own and its neighbours'. What changes in a step gives the
number of pairs at that distance. With m registers of a byte each a count is off by about 1.04 / sqrt(m). The
last step in which a register grew is at most the diameter, because no counter grows beyond it; it is less
only if all that is at the largest distance left no mark.

What is counted for a topic at each step is kept by the topic's task, which says when none of the topic's
counters grew: then they are dropped, so that a few topics with large diameters do not cost steps of all. The
driver hears how many grew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from topicweave.model.arrays import FloatArray, IntArray
from topicweave.pipeline.graphs.links import offered, take_edges, take_vertices, taken
from topicweave.pipeline.measuring.kernels import numbered_pairs
from topicweave.pipeline.rounds import TOLD, Inbox, Letter, Loop, Work, mixed, spread

Registers = npt.NDArray[np.uint8]

REGISTERS = 64
_PIECE = 1 << 18
_PARTS = 1024


COLUMNS = ("topic", "vertices", "diameter", "effective", "mean")
"""Of a topic (or of the whole graph). The diameter is at least so much, and almost always exactly. Within
`effective` steps are nine tenths of the pairs that are connected at all, interpolated; the mean is over
connected pairs, nan if there are none.
"""

FOUND = 1 << 20
"""The round of topics that are done: one that never comes."""

_TALLY = dict.fromkeys(("topic", "step", "pairs", "grown", "vertices"), np.int64)


def counters(vertex: IntArray, registers: int, seed: int) -> Registers:
    """A counter for each vertex that has seen only itself."""
    made = np.zeros((len(vertex), registers), np.uint8)
    bits = mixed(np.int64(seed), vertex).view(np.uint64)
    rest = bits >> np.uint64(16)  # 48 bits
    leading = 48 - np.floor(np.log2(np.maximum(rest, 1).astype(np.float64))).astype(np.int64)
    made[np.arange(len(vertex)), (bits % np.uint64(registers)).astype(np.int64)] = leading
    return made


def estimates(registers: Registers) -> FloatArray:
    """How many different vertices each counter has seen (Flajolet, Fusy, Gandouet and Meunier 2007)."""
    count = registers.shape[1]
    alpha = {16: 0.673, 32: 0.697, 64: 0.709}.get(count, 0.7213 / (1 + 1.079 / count))
    powers = np.exp2(-np.arange(64.0))
    raw: FloatArray = alpha * count**2 / powers[registers].sum(axis=1)
    empty = np.count_nonzero(registers == 0, axis=1)
    few = (raw <= 2.5 * count) & (empty > 0)
    raw[few] = count * np.log(count / empty[few])
    return raw


def _sent(
    round_: int,
    vertex: IntArray,
    edges: tuple[IntArray, IntArray],
    registers: Registers,
    grown: Any,
    tasks: int,
) -> Iterator[Letter]:
    """The counters that have grown, each once to every task that has a neighbour of its vertex; edges are
    laid out for it.
    """
    place = np.searchsorted(vertex, edges[0])
    moves = grown[place]
    key = place[moves] * tasks + _task(edges[1][moves], tasks)
    once = key[np.append(True, key[1:] != key[:-1])] if len(key) else key
    row, task = once // tasks, once % tasks
    for number in np.unique(task).tolist():
        here = row[task == number]
        columns = {"vertex": vertex[here], "registers": _as_words(registers[here])}
        yield from _by_word(round_, number, columns)


def _task(vertex: IntArray, tasks: int) -> IntArray:
    return (vertex.view(np.uint64) % np.uint64(tasks)).astype(np.int64)


def _laid_out(edges: tuple[IntArray, IntArray], tasks: int) -> tuple[IntArray, IntArray]:
    """By vertex, and of a vertex by the task of the other end: once, because messages keep the order of rows."""
    order = np.lexsort((_task(edges[1], tasks), edges[0]))
    return edges[0][order], edges[1][order]


def _as_words(registers: Registers) -> npt.NDArray[np.uint64]:
    return np.ascontiguousarray(registers).view(np.uint64)


def _by_word(round_: int, task: int, columns: dict[str, Any]) -> Iterator[Letter]:
    words = columns["registers"]
    flat = {f"w{at}": words[:, at] for at in range(words.shape[1])}
    yield Letter(round_, task, "counters", {"vertex": columns["vertex"], **flat})


def _registers(columns: dict[str, Any], registers: int) -> Registers:
    words = np.empty((len(columns["vertex"]), registers // 8), np.uint64)
    for at in range(words.shape[1]):
        words[:, at] = columns[f"w{at}"]
    return words.view(np.uint8)


def _state(
    round_: int, tasks: int, edges: Any, vertices: dict[str, Any], registers: Registers
) -> Iterator[Letter]:
    yield from spread(round_, "edges", edges[0], tasks, {"vertex": edges[0], "other": edges[1]})
    words = _as_words(registers)
    columns = {**vertices, **{f"w{at}": words[:, at] for at in range(words.shape[1])}}
    yield from spread(round_, "state", vertices["vertex"], tasks, columns)


def _tally(
    round_: int, tasks: int, step: int, topic: IntArray, counts: FloatArray, grown: Any
) -> Iterator[Letter]:
    """What this task's vertices add to their topics' counts at a step; to the driver, how many of them grew."""
    topics, code = np.unique(topic, return_inverse=True)
    pairs = np.zeros(len(topics), np.int64)
    # Whole numbers: the same in whatever order.
    np.add.at(pairs, code, np.rint(counts * _PARTS).astype(np.int64))
    columns = {
        "topic": topics,
        "step": np.full(len(topics), step),
        "pairs": pairs,
        "grown": np.bincount(code[grown], minlength=len(topics)),
        "vertices": np.bincount(code, minlength=len(topics)),
    }
    yield from spread(round_, "tally", topics, tasks, columns)
    yield Letter(
        TOLD, 0, "grown", {"step": np.array([step]), "vertices": np.array([np.count_nonzero(grown)])}
    )


def _added_up(inbox: Inbox, done: IntArray) -> dict[str, IntArray]:
    """What has been counted for topics that are not done, by topic and step."""
    rows = inbox.take("tally", **_TALLY)
    if len(done):
        going = ~np.isin(rows["topic"], done)
        rows = {name: column[going] for name, column in rows.items()}
    number, first = numbered_pairs(rows["topic"], rows["step"])
    sums = {name: rows[name][first] for name in ("topic", "step")}
    for name in ("pairs", "grown", "vertices"):
        sums[name] = np.zeros(len(first), np.int64)
        np.add.at(sums[name], number, rows[name])
    order = np.lexsort((sums["step"], sums["topic"]))
    return {name: column[order] for name, column in sums.items()}


def _followed(round_: int, tasks: int, rows: dict[str, IntArray]) -> Iterator[Letter]:
    """Topics of which nothing grew in the last step are done: all tasks hear of it. The others' counts are kept."""
    topic = rows["topic"]
    last = np.append(topic[1:] != topic[:-1], True) if len(topic) else np.empty(0, np.bool_)
    done = topic[last & (rows["grown"] == 0) & (rows["step"] > 0)]
    over = np.isin(topic, done)
    yield from _found(FOUND, {name: column[over] for name, column in rows.items()})
    for task in range(tasks) if len(done) else ():
        yield Letter(round_, task, "done", {"topic": done})
    yield from spread(
        round_, "tally", topic[~over], tasks, {name: column[~over] for name, column in rows.items()}
    )


def started(tasks: int, registers: int, seed: int) -> Work:
    """Round 2: counters."""

    def work(inbox: Inbox) -> Iterator[Letter]:
        edges, vertices = _laid_out(take_edges(inbox), tasks), take_vertices(inbox)
        made = counters(vertices["vertex"], registers, seed)
        counts = estimates(made)
        yield from _tally(3, tasks, 0, vertices["topic"], counts, np.zeros(len(counts), np.bool_))
        everyone = np.ones(len(made), np.bool_)
        yield from _sent(3, vertices["vertex"], edges, made, everyone, tasks)
        yield from _state(3, tasks, edges, vertices, made)

    return work


def one_step(tasks: int, registers: int, step: int, at: int = 0) -> Work:
    """Each counter takes in those of its neighbours, in round `at`; step 1 is the first."""

    def work(inbox: Inbox) -> Iterator[Letter]:
        words = {f"w{place}": np.uint64 for place in range(registers // 8)}
        done = inbox.take("done", topic=np.int64)["topic"]
        yield from _followed(at + 1, tasks, _added_up(inbox, done))
        state = inbox.take("state", vertex=np.int64, topic=np.int64, node=np.int64, **words)
        known = inbox.take("edges", vertex=np.int64, other=np.int64)
        edges = known["vertex"], known["other"]
        if len(done):
            going = ~np.isin(state["topic"], done)
            state = {name: column[going] for name, column in state.items()}
        order = np.argsort(state["vertex"])
        state = {name: column[order] for name, column in state.items()}
        vertex, mine = state["vertex"], _registers(state, registers)
        if not len(vertex):
            return
        if len(done):
            going = vertex[np.minimum(np.searchsorted(vertex, edges[0]), len(vertex) - 1)] == edges[0]
            edges = edges[0][going], edges[1][going]
        came = inbox.take("counters", vertex=np.int64, **words)
        order = np.argsort(came["vertex"])
        came = {name: column[order] for name, column in came.items()}
        wider = _widened(vertex, mine, came["vertex"], _registers(came, registers), edges)
        grown = (wider != mine).any(axis=1)
        yield from _tally(at + 1, tasks, step, state["topic"], estimates(wider), grown)
        yield from _sent(at + 1, vertex, edges, wider, grown, tasks)
        kept = {name: state[name] for name in ("vertex", "topic", "node")}
        yield from _state(at + 1, tasks, edges, kept, wider)

    return work


def _widened(
    vertex: IntArray, mine: Registers, senders: IntArray, theirs: Registers, edges: Any
) -> Registers:
    """Each counter, with what neighbours have sent taken in."""
    wider = mine.copy()
    if not len(senders):
        return wider
    place = np.minimum(np.searchsorted(senders, edges[1]), len(senders) - 1)
    sent = senders[place] == edges[1]
    row, sender = np.searchsorted(vertex, edges[0][sent]), place[sent]
    # So many edges at a time: each takes as many bytes as there are registers.
    for start in range(0, len(row), _PIECE):
        here = row[start : start + _PIECE]
        firsts = np.flatnonzero(np.append(True, here[1:] != here[:-1]))
        most = np.maximum.reduceat(theirs[sender[start : start + _PIECE]], firsts, axis=0)
        wider[here[firsts]] = np.maximum(wider[here[firsts]], most)
    return wider


def summed_up(inbox: Inbox) -> Iterator[Letter]:
    """At the end: topics that are not known to be done."""
    done = inbox.take("done", topic=np.int64)["topic"]
    yield from _found(1, _added_up(inbox, done))


def _found(round_: int, rows: dict[str, IntArray]) -> Iterator[Letter]:
    """A row for each topic, of what was counted for it step by step, in the order of topics and steps."""
    topic = rows["topic"]
    if not len(topic):
        return
    starts = np.flatnonzero(np.append(True, topic[1:] != topic[:-1]))
    last = np.diff(np.append(starts, len(topic))) - 1
    # A row each; what is counted after the last step is as it was then.
    place = starts[:, None] + np.minimum(np.arange(last.max() + 1), last[:, None])
    diameter = np.where(rows["grown"][place] > 0, np.arange(last.max() + 1), 0).max(axis=1)
    diameter = np.minimum(diameter, last)
    effective, mean = _averages(rows["pairs"][place], diameter)
    found = (topic[starts], rows["vertices"][starts], diameter, effective, mean)
    yield Letter(round_, 0, "distances", dict(zip(COLUMNS, found, strict=True)))


def _averages(pairs: IntArray, diameter: IntArray) -> tuple[FloatArray, FloatArray]:
    """Effective diameter and mean; a row of `pairs` says how many are within 0, 1, 2, … steps, the first each
    with itself.
    """
    row = np.arange(len(pairs))
    within = np.maximum.accumulate(pairs - pairs[:, :1], axis=1)
    within = np.minimum(within, within[row, diameter][:, None])
    total = within[:, -1]
    wanted = 0.9 * total
    step = (within >= wanted[:, None]).argmax(axis=1)
    below = within[row, np.maximum(step - 1, 0)]
    some = total > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        effective = np.where(some, step - 1 + (wanted - below) / (within[row, step] - below), 0.0)
        mean = np.where(
            some, (np.diff(within, axis=1) * np.arange(1, within.shape[1])).sum(axis=1) / total, np.nan
        )
    return effective, mean


def distances(loop: Loop, registers: int = REGISTERS, seed: int = 0, most_steps: int = 1000) -> Any:
    """Rows (topic, vertices, diameter, effective, mean), a hash for each topic, of what `links.scan_links` has sent."""
    loop.step(offered(loop.tasks), taken(loop.tasks), started(loop.tasks, registers, seed))
    step, grown = 0, 1
    while grown and step < most_steps:
        many = 2 if step < 8 else 4  # at a time: asking after every one would cost more than it saves
        told = loop.step(*(one_step(loop.tasks, registers, step + 1 + at, at) for at in range(many)))
        step += many
        grown = sum(int(one.columns["vertices"][0]) for one in told if int(one.columns["step"][0]) == step)
    loop.step(summed_up)
    return loop.rows(COLUMNS)
