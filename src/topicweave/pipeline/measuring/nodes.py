"""The rounds in which nodes meet their rows, their links and their sums.

An edge counts if either end lists it and both ends are there. So whoever lists a link, if there, offers it to
the other end, which, if there, takes it and says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from topicweave.measures.correlation import Moments
from topicweave.measures.expansion import expansion, pieces
from topicweave.measures.traffic import unwanted_shares
from topicweave.measures.uptime import Uptime
from topicweave.model.arrays import IntArray
from topicweave.pipeline.measuring.kernels import numbered_pairs
from topicweave.pipeline.measuring.plan import (
    EDGES,
    LAST,
    OFFERS,
    TOPICS,
    MeasuredRun,
    MeasuringPlan,
    SharedPlan,
)
from topicweave.pipeline.rounds import Inbox, Letter, Work, mixed, spread

Arrays = dict[str, Any]


def settle(shared: SharedPlan) -> Work:
    """Who is there, who is up when, and whom they list."""

    def work(inbox: Inbox) -> Iterator[Letter]:
        plan = shared.value
        wishes = inbox.take("wishes", node=np.int64, topic=np.int64)
        _, once = numbered_pairs(wishes["node"], wishes["topic"])
        wishes = {name: column[once] for name, column in wishes.items()}
        seen = inbox.take("seen", run=np.int64, node=np.int64)
        given = inbox.take("nodes", node=np.int64)["node"]
        links = inbox.take(
            "links", run=np.int64, node=np.int64, peer=np.int64, kind=np.int64, time=np.float64
        )
        changes = inbox.take("changes", node=np.int64, time=np.float64, joins=np.bool_)
        yield from spread(EDGES, "wishes", wishes["node"], plan.tasks, wishes)
        for number, run in plan.runs.items():
            if plan.given_nodes:
                everyone = given
            else:
                everyone = np.unique(np.concatenate([wishes["node"], seen["node"][seen["run"] == number]]))
            mine = links["run"] == number
            listed = {name: column[mine] for name, column in links.items()}
            yield from _of_run(plan, number, run, everyone, wishes, listed, changes)

    return work


def _of_run(
    plan: MeasuringPlan,
    number: int,
    run: MeasuredRun,
    everyone: IntArray,
    wishes: Arrays,
    links: Arrays,
    changes: Arrays,
) -> Iterator[Letter]:
    known = np.isin(changes["node"], everyone)
    changed = np.searchsorted(everyone, changes["node"][known])
    uptime = Uptime.of_changes(len(everyone), changed, changes["time"][known], changes["joins"][known])
    moments = np.full(len(everyone), run.moment)
    settled = uptime.throughout(np.arange(len(everyone)), moments - plan.scope.grace, moments)
    present = everyone[settled]
    seconds = uptime.seconds(plan.scope.start, run.end)
    yield plan.tell(number, nodes=len(everyone), present=len(present), seconds=seconds)
    own = {"run": np.full(len(everyone), number), "node": everyone}
    yield from spread(LAST, "everyone", everyone, plan.tasks, own)
    here = {"run": np.full(len(present), number), "node": present}
    yield from spread(OFFERS, "present", present, plan.tasks, here)

    wanting = np.isin(wishes["node"], everyone)
    node, topic = wishes["node"][wanting], wishes["topic"][wanting]
    members = {
        "run": np.full(len(node), number),
        "topic": topic,
        "node": node,
        "present": np.isin(node, present),
    }
    yield from spread(TOPICS, "members", topic, plan.tasks, members)
    if plan.churned:
        yield from _up(plan, number, uptime, everyone, node, topic)
    yield from _listed(plan, number, links, present)


def _up(
    plan: MeasuringPlan, number: int, uptime: Uptime, everyone: IntArray, node: IntArray, topic: IntArray
) -> Iterator[Letter]:
    """To every topic of a node, when it is up."""
    owner, begin, end = uptime.intervals
    starts = np.searchsorted(owner, np.arange(len(everyone) + 1))
    place = np.searchsorted(everyone, node)
    pair, at = expansion(np.diff(starts)[place])
    interval = starts[place[pair]] + at
    columns = {"topic": topic[pair], "node": node[pair], "begin": begin[interval], "end": end[interval]}
    columns["run"] = np.full(len(pair), number)
    yield from spread(TOPICS, "up", columns["topic"], plan.tasks, columns)


def _listed(plan: MeasuringPlan, number: int, links: Arrays, present: IntArray) -> Iterator[Letter]:
    nodes, code = np.unique(links["node"], return_inverse=True)
    last = np.full(len(nodes), -np.inf)
    np.maximum.at(last, code, links["time"])
    links = {name: column[links["time"] == last[code]] for name, column in links.items()}
    here = np.isin(links["node"], present)
    kinds, code = np.unique(links["kind"], return_inverse=True)
    listed = np.bincount(code[here], minlength=len(kinds)).tolist()
    yield plan.tell(
        number, **{f"links:{kind}": count for kind, count in zip(kinds.tolist(), listed, strict=True)}
    )
    if plan.link_kinds is not None:
        here &= np.isin(links["kind"], list(plan.link_kinds))
    here &= links["node"] != links["peer"]
    offers = {"run": links["run"][here], "node": links["peer"][here], "peer": links["node"][here]}
    yield from spread(OFFERS, "offers", offers["node"], plan.tasks, offers)


def take_offers(shared: SharedPlan) -> Work:
    def work(inbox: Inbox) -> Iterator[Letter]:
        tasks = shared.value.tasks
        present = inbox.take("present", run=np.int64, node=np.int64)
        offers = inbox.take("offers", run=np.int64, node=np.int64, peer=np.int64)
        there = np.isin(mixed(offers["run"], offers["node"]), mixed(present["run"], present["node"]))
        run, node, peer = (offers[name][there] for name in ("run", "node", "peer"))
        yield from spread(EDGES, "edges", node, tasks, {"run": run, "node": node, "peer": peer})
        yield from spread(EDGES, "edges", peer, tasks, {"run": run, "node": peer, "peer": node})

    return work


def take_edges(shared: SharedPlan) -> Work:
    """Degrees; and every edge, from its higher end, to the topics of that end: those know who else wants them."""

    def work(inbox: Inbox) -> Iterator[Letter]:
        plan = shared.value
        edges = inbox.take("edges", run=np.int64, node=np.int64, peer=np.int64)
        wishes = inbox.take("wishes", node=np.int64, topic=np.int64)
        order = np.argsort(wishes["node"], kind="stable")
        wishing, topics = wishes["node"][order], wishes["topic"][order]
        for number in plan.runs:
            mine = edges["run"] == number
            node, peer = edges["node"][mine], edges["peer"][mine]
            _, once = numbered_pairs(node, peer)
            node, peer = node[once], peer[once]
            _, degrees = np.unique(node, return_counts=True)
            values, times = np.unique(degrees, return_counts=True)
            yield plan.tell(
                number,
                **{f"degree:{one}": many for one, many in zip(values.tolist(), times.tolist(), strict=True)},
            )
            node, peer = node[node > peer], peer[node > peer]
            starts = np.searchsorted(wishing, node, "left")
            counts = np.searchsorted(wishing, node, "right") - starts
            for piece in pieces(counts):
                edge, place = expansion(counts[piece])
                topic = topics[starts[piece][edge] + place]
                columns = {"topic": topic, "node": node[piece][edge], "peer": peer[piece][edge]}
                columns["run"] = np.full(len(topic), number)
                yield from spread(TOPICS, "edges", topic, plan.tasks, columns)

    return work


def sum_up(shared: SharedPlan) -> Work:
    """What every node received, handled and asked for, and what of that the means and the correlation need."""

    def work(inbox: Inbox) -> Iterator[Letter]:
        plan = shared.value
        everyone = inbox.take("everyone", run=np.int64, node=np.int64)
        sent = inbox.take("sent", run=np.int64, node=np.int64, sent=np.int64)
        names = ("receptions", "unwanted", "firsts", "relayed", "demand")
        sums = inbox.take("sums", run=np.int64, node=np.int64, **dict.fromkeys(names, np.int64))
        for number in plan.runs:
            mine = [rows["run"] == number for rows in (everyone, sent, sums)]
            owners = [rows["node"][here] for rows, here in zip((everyone, sent, sums), mine, strict=True)]
            nodes, code = np.unique(np.concatenate(owners), return_inverse=True)
            _, of_sent, of_sums = np.split(code, np.cumsum([len(one) for one in owners])[:-1])
            totals = {name: _added(len(nodes), of_sums, sums[name][mine[2]]) for name in names}
            traffic = totals["receptions"] + _added(len(nodes), of_sent, sent["sent"][mine[1]])
            yield plan.tell(number, **Moments.of(traffic, totals["demand"])._asdict(), **_shares(totals))

    return work


def _added(count: int, code: IntArray, values: IntArray) -> IntArray:
    sums = np.zeros(count, np.int64)
    np.add.at(sums, code, values)
    return sums


def _shares(totals: dict[str, IntArray]) -> dict[str, Any]:
    noise = unwanted_shares(totals["relayed"], totals["firsts"])
    noise_all = unwanted_shares(totals["unwanted"], totals["receptions"])
    return {
        "noise": float(np.nansum(noise)),
        "noise_nodes": int(np.count_nonzero(~np.isnan(noise))),
        "noise_all": float(np.nansum(noise_all)),
        "noise_all_nodes": int(np.count_nonzero(~np.isnan(noise_all))),
    }
