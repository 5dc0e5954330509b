"""All nodes of Vitis or RVR as arrays, and what they do to each other in a stretch of time, compiled.

Each node samples peers (Newscast), exchanges tables (T-Man, Alg. 2 and 3) and beats (Alg. 5 and 6) once per
period, at a phase of its own; what one node's step does to its partner is done at once, where messages would
take a while. Links, as in `topicweave.systems.vitis.links`: the table and those who chose the node; one that
nobody chooses any more fades, and carries events until it has.

A neighbour's heartbeat is not sent. Whoever looks at an entry of its table takes it for as fresh as that
neighbour's last beat, and reads the neighbour's proposals where they stand.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from topicweave.bulk.vitis.kernels import (
    Proposals,
    elect_gateways,
    estimated_nodes,
    harmonic_point,
    keep_freshest,
    ring_sides,
    select_neighbours,
)
from topicweave.systems.vitis.parameters import NEAR

Nodes = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]
Times = npt.NDArray[np.float64]

SAMPLE, EXCHANGE, BEAT = 0, 1, 2
"""What a node does when its time has come."""

CHOSEN, FAN = np.uint8(1), np.uint8(2)
"""A link's ends: in the node's own table; the node is in the other's."""


class GossipSettings(NamedTuple):
    """The parameters of the system that the kernels look at (`RendezvousParameters`, `VitisParameters`)."""

    samples: int
    ring_partners: float
    stale: float
    near_age: float
    linger: float
    redraw: bool
    greet_every: int
    friends: bool
    """Whether the rest of the table are friends, and clusters elect gateways."""
    most_hops: int
    path_kept: float
    """How long a node that is no gateway any more keeps up its path."""


class Gossip(NamedTuple):
    """What all nodes know, a row each; the first `…_count` of a row are in use."""

    contacts: Nodes
    to_greet: Counts
    periods: Counts
    sampled: Nodes
    sampled_made: Times
    sampled_count: Counts
    table: Nodes
    table_made: Times
    table_count: Counts
    near: Nodes
    near_made: Times
    near_count: Counts
    places: Times
    """Where in the distribution each small-world link's target lies."""
    targets: npt.NDArray[np.uint64]
    targets_for: Counts
    """For how many nodes the targets were made; 0 if they were not."""
    estimates: Counts
    links: Nodes
    ends: npt.NDArray[np.uint8]
    fades_at: Times
    degree: Counts
    last_beat: Times
    paths_until: Times
    """Per node and topic, as in `Proposals`: until when the node keeps up a relay path as a gateway."""
    proposals: Proposals


class Descriptors(NamedTuple):
    """Descriptors: peers, and when each was made."""

    peers: Counts
    made: Times


class Scratch(NamedTuple):
    """Room that steps use again and again."""

    peers: Counts
    made: Times
    mark: Counts
    """Per node: the token of the list that it stands in."""
    place: Counts
    """And where in it."""
    counter: Counts
    """The last token."""
    mine: Counts
    slots: Counts
    linked: Counts
    """For the election."""


def new_gossip(
    subscribers: Any, size: int, small_world: int, view_size: int, contacts: Nodes, room: int, rng: Any
) -> Gossip:
    """Nodes that know their contacts only; a node has `room` for so many links."""
    nodes, wishes = len(subscribers.ids), len(subscribers.topics)
    owners = np.repeat(np.arange(nodes, dtype=np.int32), np.diff(subscribers.offsets))

    def knowledge(width: int) -> tuple[Nodes, Times, Counts]:
        return np.zeros((nodes, width), np.int32), np.zeros((nodes, width)), np.zeros(nodes, np.int64)

    return Gossip(
        contacts,
        np.full(nodes, contacts.shape[1]),
        np.zeros(nodes, np.int64),
        *knowledge(view_size),
        *knowledge(size),
        *knowledge(2 * NEAR),
        rng.random((nodes, small_world)),
        np.zeros((nodes, small_world), np.uint64),
        np.zeros(nodes, np.int64),
        np.full(nodes, 2),
        np.zeros((nodes, room), np.int32),
        np.zeros((nodes, room), np.uint8),
        np.zeros((nodes, room)),
        np.zeros(nodes, np.int64),
        np.full(nodes, -math.inf),
        np.full(wishes, -math.inf),
        Proposals(owners.copy(), owners.copy(), np.zeros(wishes, np.int32)),
    )


@njit(cache=True)
def _find(rows: Any, node: int, count: int, peer: int) -> int:
    """Where in a node's row a peer stands; -1 if it does not."""
    for place in range(count):
        if rows[node, place] == peer:
            return place
    return -1


@njit(cache=True)
def _add(scratch: Any, count: int, peer: int, when: float) -> int:
    """One more descriptor, or a fresher one of somebody known; returns how many there are (`descriptors.merge`)."""
    made, place, token = scratch.made, scratch.place, scratch.counter[0]
    if scratch.mark[peer] == token:
        made[place[peer]] = max(made[place[peer]], when)
        return count
    scratch.mark[peer], place[peer] = token, count
    scratch.peers[count], made[count] = peer, when
    return count + 1


# Peer sampling.


@njit(cache=True)
def _sample(gossip: Any, settings: Any, node: int, now: float, rng: Any, scratch: Any) -> None:
    """One exchange of views (`peer_sampling`, rules 1 and 3; `newscast`)."""
    gossip.periods[node] += 1
    every, contacts = settings.greet_every, gossip.contacts.shape[1]
    if gossip.to_greet[node] > 0:
        gossip.to_greet[node] -= 1
        partner = gossip.contacts[node, gossip.to_greet[node]]
    elif gossip.sampled_count[node] == 0 or (every > 0 and gossip.periods[node] % every == 0):
        partner = gossip.contacts[node, rng.integers(0, contacts)]
    else:
        partner = gossip.sampled[node, rng.integers(0, gossip.sampled_count[node])]
    theirs, mine = gossip.sampled_count[partner], gossip.sampled_count[node]
    offered = Descriptors(gossip.sampled[node, :mine].copy(), gossip.sampled_made[node, :mine].copy())
    answered = Descriptors(
        gossip.sampled[partner, :theirs].copy(), gossip.sampled_made[partner, :theirs].copy()
    )
    _learn(gossip, partner, node, now, offered, scratch)
    _learn(gossip, node, partner, now, answered, scratch)


@njit(cache=True)
def _learn(gossip: Any, node: int, sender: int, now: float, received: Any, scratch: Any) -> None:
    scratch.counter[0] += 1
    count = 0
    for at in range(gossip.sampled_count[node]):
        count = _add(scratch, count, gossip.sampled[node, at], gossip.sampled_made[node, at])
    count = _add(scratch, count, sender, now)
    for at in range(len(received.peers)):
        if received.peers[at] != node:
            count = _add(scratch, count, received.peers[at], received.made[at])
    count = keep_freshest(scratch.peers, scratch.made, count, gossip.sampled.shape[1])
    gossip.sampled[node, :count] = scratch.peers[:count]
    gossip.sampled_made[node, :count] = scratch.made[:count]
    gossip.sampled_count[node] = count


# The routing table.


@njit(cache=True)
def _candidates(gossip: Any, settings: Any, node: int, now: float, rng: Any) -> Any:
    """Random peers, and those that were nearest on the ring at the last selection (`TableSelection.candidates`)."""
    width = gossip.sampled.shape[1] + gossip.near.shape[1]
    peers, made = np.empty(width, np.int64), np.empty(width, np.float64)
    known: int = gossip.sampled_count[node]
    peers[:known] = gossip.sampled[node, :known]
    made[:known] = gossip.sampled_made[node, :known]
    count = known
    if known > settings.samples:
        count = settings.samples
        for place in range(count):
            other = place + rng.integers(0, known - place)
            peers[place], peers[other] = peers[other], peers[place]
            made[place], made[other] = made[other], made[place]
    for place in range(gossip.near_count[node]):
        if now - gossip.near_made[node, place] <= settings.near_age:
            peers[count], made[count] = gossip.near[node, place], gossip.near_made[node, place]
            count += 1
    return Descriptors(peers[:count], made[:count])


@njit(cache=True)
def _exchange(
    subscribers: Any, gossip: Any, settings: Any, node: int, now: float, rng: Any, scratch: Any
) -> None:
    """One exchange of tables (Alg. 2 and 3), with a ring neighbour or anybody in the table
    (`TableSelection.partner`).
    """
    samples = _candidates(gossip, settings, node, now, rng)
    if gossip.table_count[node] == 0:
        nothing = Descriptors(samples.peers[:0], samples.made[:0])
        _select(subscribers, gossip, settings, node, now, rng, samples, nothing, scratch)
    held = gossip.table_count[node]
    if held == 0:
        return
    if rng.random() < settings.ring_partners:
        held = min(held, 2)
    partner = gossip.table[node, rng.integers(0, held)]
    theirs = _candidates(gossip, settings, partner, now, rng)
    sent = _buffer(gossip, node, partner, now, samples, scratch)
    back = _buffer(gossip, partner, node, now, theirs, scratch)
    _select(subscribers, gossip, settings, partner, now, rng, theirs, sent, scratch)
    _select(subscribers, gossip, settings, node, now, rng, samples, back, scratch)


@njit(cache=True)
def _know(gossip: Any, node: int, samples: Any, scratch: Any, count: int) -> int:
    for at in range(gossip.table_count[node]):
        peer = gossip.table[node, at]
        # As fresh as its last heartbeat, which every neighbour hears.
        when = max(gossip.table_made[node, at], gossip.last_beat[peer])
        count = _add(scratch, count, peer, when)
    for at in range(len(samples.peers)):
        count = _add(scratch, count, samples.peers[at], samples.made[at])
    return count


@njit(cache=True)
def _buffer(gossip: Any, node: int, partner: int, now: float, samples: Any, scratch: Any) -> Any:
    """What a node sends: itself, its table, its samples, without the partner."""
    scratch.counter[0] += 1
    count = _know(gossip, node, samples, scratch, _add(scratch, 0, node, now))
    kept = scratch.peers[:count] != partner
    return Descriptors(scratch.peers[:count][kept], scratch.made[:count][kept])


@njit(cache=True)
def _select(
    subscribers: Any,
    gossip: Any,
    settings: Any,
    node: int,
    now: float,
    rng: Any,
    samples: Any,
    received: Any,
    scratch: Any,
) -> None:
    """A new table out of all that is known (`TableSelection.rank`), and the links that follow from it."""
    peers, made, place = scratch.peers, scratch.made, scratch.place
    scratch.counter[0] += 1
    count = _know(gossip, node, samples, scratch, 0)
    for at in range(len(received.peers)):
        count = _add(scratch, count, received.peers[at], received.made[at])
    fresh = 0
    for at in range(count):
        peer = peers[at]
        if peer == node:
            continue
        if now - made[at] <= settings.stale or _find(gossip.links, node, gossip.degree[node], peer) >= 0:
            peers[fresh], made[fresh] = peer, made[at]
            place[peer] = fresh
            fresh += 1
    own, nodes = subscribers.ids[node], gossip.estimates[node]
    if settings.redraw or gossip.targets_for[node] != nodes:
        gossip.targets_for[node] = nodes
        for link in range(gossip.places.shape[1]):
            if settings.redraw:
                gossip.places[node, link] = rng.random()
            gossip.targets[node, link] = harmonic_point(own, gossip.places[node, link], nodes)
    size = gossip.table.shape[1]
    chosen = np.empty(size + 2, np.int64)
    held = select_neighbours(
        *(subscribers, node, peers, fresh, gossip.targets[node], size, settings.friends, scratch.mine, chosen)
    )
    if held >= 2:
        gossip.estimates[node] = estimated_nodes(
            own, subscribers.ids[peers[chosen[0]]], subscribers.ids[peers[chosen[1]]]
        )
    around = np.empty(2 * NEAR, np.int64)
    near = ring_sides(node, len(subscribers.ids), peers, fresh, NEAR, around)
    for at in range(near):
        gossip.near[node, at] = around[at]
        gossip.near_made[node, at] = made[place[around[at]]]
    gossip.near_count[node] = near
    before = gossip.table[node : node + 1, : gossip.table_count[node]].copy()
    for at in range(held):
        gossip.table[node, at] = peers[chosen[at]]
        gossip.table_made[node, at] = made[chosen[at]]
    gossip.table_count[node] = held
    for at in range(before.shape[1]):
        if _find(gossip.table, node, held, before[0, at]) < 0:
            _drop(gossip, node, before[0, at], now + settings.linger)
    for at in range(held):
        if _find(before, 0, before.shape[1], gossip.table[node, at]) < 0 and _choose(
            gossip, node, gossip.table[node, at]
        ):
            gossip.table_made[node, at] = now  # who meets a stranger answers at once


# Links.


@njit(cache=True)
def _choose(gossip: Any, node: int, peer: int) -> bool:
    """Returns whether the other end had not heard of this one."""
    _hold(gossip, node, peer, CHOSEN)
    return _hold(gossip, peer, node, FAN)


@njit(cache=True)
def _hold(gossip: Any, node: int, peer: int, end: Any) -> bool:
    at = _find(gossip.links, node, gossip.degree[node], peer)
    if at >= 0:
        gossip.ends[node, at] |= end
        gossip.fades_at[node, at] = math.inf
        return False
    at = gossip.degree[node]
    if at == gossip.links.shape[1]:
        raise MemoryError("a node has more links than there is room for")
    gossip.links[node, at], gossip.ends[node, at], gossip.fades_at[node, at] = peer, end, math.inf
    gossip.degree[node] += 1
    return True


@njit(cache=True)
def _drop(gossip: Any, node: int, peer: int, until: float) -> None:
    _let_go(gossip, node, peer, CHOSEN, until)
    _let_go(gossip, peer, node, FAN, until)


@njit(cache=True)
def _let_go(gossip: Any, node: int, peer: int, end: Any, until: float) -> None:
    at = _find(gossip.links, node, gossip.degree[node], peer)
    if at >= 0:
        gossip.ends[node, at] &= ~end
        if gossip.ends[node, at] == 0 and gossip.fades_at[node, at] == math.inf:
            gossip.fades_at[node, at] = until


@njit(cache=True)
def _beat(subscribers: Any, gossip: Any, settings: Any, node: int, now: float, scratch: Any) -> None:
    """Links whose time is up go; then the election (Alg. 5), and the paths that follow from it."""
    kept = 0
    for at in range(gossip.degree[node]):
        if gossip.fades_at[node, at] > now:
            gossip.links[node, kept] = gossip.links[node, at]
            gossip.ends[node, kept] = gossip.ends[node, at]
            gossip.fades_at[node, kept] = gossip.fades_at[node, at]
            kept += 1
    gossip.degree[node] = kept
    gossip.last_beat[node] = now
    if not settings.friends:
        return
    neighbours = np.sort(gossip.links[node, :kept][gossip.ends[node, :kept] != 0])
    elect_gateways(
        *(subscribers, gossip.proposals, node, neighbours, settings.most_hops),
        *(scratch.mine, scratch.slots, scratch.linked),
    )
    for place in range(subscribers.offsets[node], subscribers.offsets[node + 1]):
        if gossip.proposals.gateways[place] == node:
            gossip.paths_until[place] = math.inf
        elif gossip.paths_until[place] == math.inf:
            gossip.paths_until[place] = now + settings.path_kept


@njit(cache=True)
def pass_time(
    subscribers: Any, gossip: Any, settings: Any, times: Any, nodes: Any, steps: Any, rng: Any
) -> None:
    """Let nodes do what is due, in the order given."""
    everyone, topics = len(subscribers.ids), len(subscribers.points)
    room = 2 * (gossip.table.shape[1] + gossip.sampled.shape[1] + 2 * NEAR + 1) + 2
    scratch = Scratch(
        np.empty(room, np.int64),
        np.empty(room, np.float64),
        np.full(everyone, -1, np.int64),
        np.empty(everyone, np.int64),
        np.zeros(1, np.int64),
        np.full(topics, -1, np.int64),
        np.empty(topics, np.int64),
        np.full(everyone, -1, np.int64),
    )
    for turn in range(len(times)):
        node, now = nodes[turn], times[turn]
        if steps[turn] == SAMPLE:
            _sample(gossip, settings, node, now, rng, scratch)
        elif steps[turn] == EXCHANGE:
            _exchange(subscribers, gossip, settings, node, now, rng, scratch)
        else:
            _beat(subscribers, gossip, settings, node, now, scratch)
