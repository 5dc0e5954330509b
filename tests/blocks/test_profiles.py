"""Gossip that names peers: everybody comes to know the same as with full descriptors, for a fraction of the bytes."""

from __future__ import annotations

import random
from collections.abc import Collection

import msgspec

from topicweave.blocks.cyclon import Cyclon
from topicweave.blocks.descriptors import MAX_VERSION, Descriptor
from topicweave.blocks.peer_sampling import SamplingParams
from topicweave.blocks.profiles import (
    MOST_PROFILES,
    MOST_TOPICS,
    TOPICS_TOLD,
    PeerProfile,
    Profiles,
    TellProfiles,
    WantProfiles,
    digest,
    stamp,
)
from topicweave.model.ids import Interest, NodeId
from topicweave.testing import VirtualNetwork

PARAMS = SamplingParams(view_size=15, shuffle_size=6, period=1.0, greet_every=0)
BOTH = range(2)


def interest(node: NodeId, size: int = 20) -> Interest:
    return frozenset(random.Random(node).sample(range(1000), size))


def two() -> tuple[VirtualNetwork, list[Profiles]]:
    net = VirtualNetwork(record=True)
    worlds = [net.world(node) for node in BOTH]
    blocks = [Profiles(world, node) for node, world in enumerate(worlds)]
    for world, block in zip(worlds, blocks, strict=True):
        world.use(block)
    return net, blocks


def test_news_is_whole_in_the_end_and_a_profile_travels_once() -> None:
    net, (teller, hearer) = two()
    said = [Descriptor(peer, 0.25 * peer, 3, interest(peer)) for peer in range(5, 9)]
    heard: list[Descriptor] = []
    hearer.unpack(0, teller.pack(said), 10, heard.extend)
    assert heard == []
    net.run(1.0)
    assert [(d.id, d.version, d.profile) for d in heard] == [(d.id, d.version, d.profile) for d in said]
    # Older by the way there and back, and rounded up: never younger than it is.
    assert all(0.0 <= new.age - old.age < 0.2 for new, old in zip(heard, said, strict=True))
    messages = net.messages
    hearer.unpack(0, teller.pack(said), 10, heard.extend)
    net.run(2.0)
    assert len(heard) == 8
    assert net.messages == messages
    changed = [Descriptor(5, 0.0, 4, interest(99))]
    hearer.unpack(0, teller.pack(changed), 10, heard.extend)
    net.run(3.0)
    assert heard[-1].version == 4
    assert heard[-1].profile == interest(99)


def test_what_is_known_counts_at_once_and_what_is_never_told_is_not_heard() -> None:
    net, (teller, hearer) = two()
    known = Descriptor(5, 0.0, 1, interest(5))
    hearer.pack([known])
    net.lose = lambda sent: isinstance(sent.message, TellProfiles)
    heard: list[Descriptor] = []
    hearer.unpack(0, teller.pack([known, Descriptor(6, 0.0, 1, interest(6))]), 10, heard.extend)
    net.run(20.0)
    assert heard == [known]


def test_those_that_are_not_chosen_are_not_asked_about_and_what_is_known_needs_no_choice() -> None:
    net, (teller, hearer) = two()
    said = [Descriptor(peer, 0.0, 1, interest(peer)) for peer in (5, 6, 7)]
    hearer.pack(said[:1])
    offered: list[NodeId] = []

    def last(strangers: Collection[NodeId]) -> list[NodeId]:
        offered.extend(strangers)
        return [max(strangers)]

    heard: list[Descriptor] = []
    hearer.unpack(0, teller.pack(said), 10, heard.extend, last)
    net.run(1.0)
    assert offered == [6, 7]
    assert [descriptor.id for descriptor in heard] == [5, 7]
    messages = net.messages
    hearer.unpack(0, teller.pack(said[1:2]), 10, heard.extend, lambda _strangers: ())
    assert net.messages == messages


def test_a_rumour_of_oneself_shows_its_version_without_asking() -> None:
    net, (teller, hearer) = two()
    heard: list[Descriptor] = []
    hearer.unpack(0, teller.pack([Descriptor(1, 0.0, 7, interest(1))]), 10, heard.extend)
    assert [(d.id, d.version) for d in heard] == [(1, 7)]
    assert net.messages == 0


def test_nothing_unasked_is_believed_and_nothing_exceeds_the_bounds() -> None:
    net, (teller, hearer) = two()
    heard: list[Descriptor] = []
    hearer._receive_tell(0, TellProfiles((PeerProfile(5, 1, interest(5)),)))
    hearer.unpack(0, teller.pack([Descriptor(5, 0.0, 1, interest(5))]), 10, heard.extend)
    assert heard == []
    hearer._receive_tell(
        0, TellProfiles((PeerProfile(6, 1, interest(6)), PeerProfile(5, MAX_VERSION + 1, interest(5))))
    )
    assert heard == []
    for torn in (b"", b"x", bytes(17), bytes(19)):
        hearer.unpack(0, torn, 10, heard.extend)
        hearer._receive_want(0, WantProfiles(torn))
    teller.pack([Descriptor(peer, 0.0, 1, interest(peer, 200)) for peer in range(50)])
    names = b"".join(peer.to_bytes(8, "little") for peer in range(50))
    net.log.clear()
    teller._receive_want(1, WantProfiles(names))
    [answer] = [sent.message for sent in net.log if isinstance(sent.message, TellProfiles)]
    assert sum(len(profile.topics) for profile in answer.profiles) <= TOPICS_TOLD
    teller.pack([Descriptor(peer, 0.0, 1, interest(peer, 200)) for peer in range(MOST_PROFILES + 10)])
    assert len(teller._known) <= MOST_PROFILES
    assert teller._topics == sum(len(known.topics) for known in teller._known.values()) <= MOST_TOPICS


def test_stamps_differ_by_version_and_by_profile() -> None:
    stamps = {stamp(version, interest(node)) for version in range(4) for node in range(50)}
    assert len(stamps) == 200
    assert all(value < 1 << 64 for value in stamps)
    assert stamp(MAX_VERSION, interest(1)) < 1 << 64
    assert digest(frozenset()) != digest(frozenset({0}))


def gossip(lean: bool) -> tuple[dict[NodeId, dict[NodeId, Interest]], int]:
    """What 30 nodes know of each other after a while, and the bytes of the last ten seconds."""
    net = VirtualNetwork(seed=3, record=True)
    known: dict[NodeId, dict[NodeId, Interest]] = {}
    for node in range(30):
        world = net.world(node)
        profiles = Profiles(world, node) if lean else None
        block = Cyclon(world, node, interest(node), PARAMS, profiles)
        world.use(block)
        if profiles is not None:
            world.use(profiles)
        known[node] = {}
        block.listen(lambda news, mine=known[node]: mine.update({d.id: d.profile for d in news}))  # type: ignore[misc]  # what the loop had
        block.start([0] if node else [])
    net.run(90.0)
    net.log.clear()
    net.run(100.0)
    return known, sum(len(msgspec.msgpack.encode(sent.message)) for sent in net.log)


def test_everybody_learns_the_same_for_a_fraction_of_the_bytes() -> None:
    full, bytes_full = gossip(lean=False)
    lean, bytes_lean = gossip(lean=True)
    everybody = {node: interest(node) for node in range(30)}
    for known in (full, lean):
        for node, others in known.items():
            assert others == {peer: topics for peer, topics in everybody.items() if peer != node}
    assert bytes_lean < bytes_full / 2
