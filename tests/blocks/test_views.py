"""Interest views: everybody, a share, or what gossip brings."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from topicweave.blocks.cyclon import Cyclon
from topicweave.blocks.descriptors import Descriptor
from topicweave.blocks.newscast import Newscast
from topicweave.blocks.peer_sampling import Offer, SamplingParams
from topicweave.blocks.views import Directory, FullView, GossipView, InterestView, ShareView
from topicweave.model.ids import Interest, NodeId
from topicweave.testing import VirtualNetwork

Make = Callable[[VirtualNetwork, NodeId, Interest, Directory], InterestView]


def full(net: VirtualNetwork, node: NodeId, interest: Interest, directory: Directory) -> InterestView:
    return FullView(net.world(node), node, interest, directory)


def whole_share(net: VirtualNetwork, node: NodeId, interest: Interest, directory: Directory) -> InterestView:
    return ShareView(net.world(node), node, interest, directory, share=1.0)


def gossip(net: VirtualNetwork, node: NodeId, interest: Interest, directory: Directory) -> InterestView:
    world = net.world(node)
    view = GossipView(world, Newscast(world, node, interest), capacity=100, max_age=30.0)
    world.use(view)
    return view


every_kind = pytest.mark.parametrize("make", [full, whole_share, gossip])


def swarm(
    make: Make, wants: dict[NodeId, Interest]
) -> tuple[VirtualNetwork, Directory, dict[NodeId, InterestView]]:
    net, directory = VirtualNetwork(), Directory()
    views = {node: make(net, node, interest, directory) for node, interest in wants.items()}
    first = next(iter(wants))
    for view in views.values():
        view.start([first])
    net.run(20.0)
    return net, directory, views


def random_wants(size: int) -> dict[NodeId, Interest]:
    draw = random.Random("wants")
    return {node: frozenset(draw.sample(range(20), 5)) for node in range(size)}


@every_kind
def test_all_kinds_answer_the_same_where_all_know_everybody(make: Make) -> None:
    wants = random_wants(20)
    _, _, views = swarm(make, wants)
    view = views[4]
    assert sorted(view.peers()) == [node for node in wants if node != 4]
    assert all(view.interest_of(node) == wants[node] for node in view.peers())
    uncovered, neighbours = wants[4], [1, 2, 999]
    counts = view.overlap_counts(uncovered)
    counts[view.slots(neighbours)] = 0
    best = {view.peer_at(slot) for slot in np.flatnonzero(counts == counts.max())}
    overlap = {node: len(wants[node] & uncovered) for node in wants if node not in (1, 2, 4)}
    assert best == {node for node, shared in overlap.items() if shared == max(overlap.values())}


@every_kind
def test_a_change_of_interest_reaches_the_others(make: Make) -> None:
    net, _, views = swarm(make, random_wants(20))
    views[3].set_interest(frozenset({77}))
    net.run(40.0)
    for node, view in views.items():
        wanting = {view.peer_at(slot) for slot in np.flatnonzero(view.overlap_counts([77]))}
        assert wanting == ({3} if node != 3 else set())


@every_kind
def test_who_left_is_forgotten_and_who_comes_back_is_found(make: Make) -> None:
    wants = random_wants(20)
    net, directory, views = swarm(make, wants)
    views[3].leave()
    net.kill([3])
    net.run(65.0)
    del views[3]
    assert not any(3 in view.peers() for view in views.values())
    back = make(net, 3, frozenset({5}), directory)
    back.start([0])
    net.run(100.0)
    assert all(3 in view.peers() and view.interest_of(3) == {5} for view in views.values())
    assert sorted(back.peers()) == sorted(views)


@every_kind
def test_the_lost_are_left_out_at_once(make: Make) -> None:
    net, _, views = swarm(make, random_wants(20))
    view = views[4]
    view.lost(7)
    view.lost(999)
    assert 7 not in view.peers()
    counts = view.overlap_counts(range(20))
    assert not counts[view.slots([7])].any()
    net.run(45.0)  # it lives, and is found again
    assert 7 in view.peers()


@pytest.mark.parametrize("make", [full, whole_share])
def test_directory_views_have_nothing_to_say(make: Make) -> None:
    net, _, views = swarm(make, random_wants(5))
    assert net.messages == 0
    assert not views[0].receivers()
    assert not views[0].timers()


def test_a_view_not_started_is_not_in_the_directory() -> None:
    directory = Directory()
    view = FullView(VirtualNetwork().world(1), 1, frozenset({1}), directory)
    view.set_interest(frozenset({2}))
    assert 1 not in directory
    view.start([])
    assert directory.interest_of(1) == {2}


# ShareView.


def shares(size: int, share: float, seed: int, first_id: NodeId = 0) -> np.ndarray:
    """Row: owner, column: peer, 1 where the owner sees the peer."""
    directory = Directory(seed)
    net = VirtualNetwork()
    ids = [(first_id + node) % 2**64 for node in range(size)]
    for node in ids:
        directory.put(node, frozenset({1}))
    views = [ShareView(net.world(node), node, frozenset({1}), directory, share) for node in ids]
    seen = np.zeros((size, size))
    for row, view in enumerate(views):
        seen[row, view.candidates()] = 1
        assert np.array_equal(np.flatnonzero(view.overlap_counts([1])), view.candidates())
    return seen


@pytest.mark.parametrize("share", [0.05, 0.5])
@pytest.mark.parametrize(("seed", "first_id"), [(0, 0), (1, 0), (2**64 - 1, 2**63), (3, 2**64 - 7)])
def test_a_share_is_a_share(share: float, seed: int, first_id: NodeId) -> None:
    """Over all pairs, per owner, per peer, and jointly for two owners, within five standard deviations."""
    size = 400
    seen = shares(size, share, seed, first_id)
    assert not seen.diagonal().any()
    pairs = size * (size - 1)
    assert abs(seen.sum() / pairs - share) < 5 * (share * (1 - share) / pairs) ** 0.5
    spread = 5 * (share * (1 - share) * size) ** 0.5
    assert np.abs(seen.sum(axis=0) - share * (size - 1)).max() < spread
    assert np.abs(seen.sum(axis=1) - share * (size - 1)).max() < spread
    both = share * share
    # Neighbours in number share a peer as often as chance has it.
    jointly = (seen[:-1] * seen[1:]).sum() / pairs
    assert abs(jointly - both) < 5 * (both / pairs) ** 0.5 + 2 * both / size
    mutually = (seen * seen.T).sum() / pairs
    assert abs(mutually - both) < 5 * (2 * both / pairs) ** 0.5


def test_seeds_give_different_shares_and_the_same_seed_the_same() -> None:
    assert np.array_equal(shares(50, 0.3, seed=1), shares(50, 0.3, seed=1))
    assert not np.array_equal(shares(50, 0.3, seed=1), shares(50, 0.3, seed=2))
    assert shares(50, 0.0, seed=1).sum() == 0
    assert shares(50, 1.0, seed=1).sum() == 50 * 49


def test_a_share_is_kept_through_joins_leaves_and_renumbering() -> None:
    """Asked in between or only at the end, and whatever slots peers have had: the same peers are seen."""
    directory, net = Directory(7), VirtualNetwork()
    asked = ShareView(net.world(10**6), 10**6, frozenset(), directory, share=0.3)
    for change in range(2000):
        directory.put(change % 300, frozenset({change}))
        if change % 3 == 0:
            directory.discard((change * 7) % 300)
        if change % 10 == 0:
            asked.candidates()
    assert directory.generation > 0
    late = ShareView(net.world(10**6), 10**6, frozenset(), directory, share=0.3)
    fresh = Directory(7)
    for peer in directory.peers():
        fresh.put(peer, frozenset())
    other = ShareView(net.world(10**6), 10**6, frozenset(), fresh, share=0.3)
    assert sorted(asked.peers()) == sorted(late.peers()) == sorted(other.peers())
    assert 0.2 < len(asked.peers()) / len(directory) < 0.4


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_shares_are_checked(share: float) -> None:
    with pytest.raises(ValueError, match="share"):
        ShareView(VirtualNetwork().world(1), 1, frozenset(), Directory(), share)


# GossipView, alone, with a test that plays its peers.


def listening(capacity: int, max_age: float) -> tuple[VirtualNetwork, GossipView]:
    net = VirtualNetwork()
    world = net.world(0)
    sampling = Cyclon(world, 0, frozenset(), SamplingParams(view_size=50))
    view = GossipView(world, sampling, capacity, max_age)
    world.use(view)
    return net, view


def tell(net: VirtualNetwork, descriptors: Sequence[Descriptor]) -> None:
    net.worlds[0].receivers[Offer](1, Offer(tuple(descriptors)))


def test_a_gossip_view_is_bounded_and_keeps_the_freshest() -> None:
    net, view = listening(capacity=100, max_age=60.0)
    peer = 0
    for time in range(40):
        net.run(float(time))
        batch = range(peer + 1, peer + 51)
        tell(net, [Descriptor(p, 0.0, 0, frozenset({p % 9})) for p in batch])
        peer += 50
        assert len(view.peers()) <= 100
        assert set(batch) <= set(view.peers())
    assert len(view.peers()) >= 90
    assert view.overlap_counts(range(9)).sum() == len(view.peers())


@pytest.mark.parametrize("capacity", [1, 2, 5])
def test_small_capacities_hold(capacity: int) -> None:
    net, view = listening(capacity, max_age=60.0)
    tell(net, [Descriptor(peer, float(peer), 0, frozenset()) for peer in range(1, 40)])
    assert view.peers() == list(range(1, 1 + max(1, capacity * 9 // 10)))


def test_a_gossip_view_forgets_what_is_old_and_keeps_what_is_refreshed() -> None:
    net, view = listening(capacity=100, max_age=60.0)
    tell(net, [Descriptor(1, 0.0, 0, frozenset({1})), Descriptor(2, 50.0, 0, frozenset({1}))])
    tell(net, [Descriptor(3, 61.0, 0, frozenset({1}))])  # too old already
    assert view.peers() == [1, 2]
    net.run(30.0)
    assert view.peers() == [1]
    tell(net, [Descriptor(1, 1.0, 0, frozenset({1}))])
    tell(net, [Descriptor(1, 25.0, 0, frozenset({1}))])  # older than what we know: changes nothing
    net.run(80.0)
    assert view.peers() == [1]
    net.run(96.0)
    assert view.peers() == []
    assert view.overlap_counts([1]).sum() == 0


def test_the_newest_profile_counts_whenever_it_arrives() -> None:
    net, view = listening(capacity=100, max_age=60.0)
    tell(net, [Descriptor(5, 3.0, 4, frozenset({4}))])
    tell(net, [Descriptor(5, 0.0, 3, frozenset({3}))])
    assert view.interest_of(5) == {4}
    tell(net, [Descriptor(5, 9.0, 5, frozenset({5}))])
    assert view.interest_of(5) == {5}


def test_old_news_does_not_bring_the_lost_back() -> None:
    net, view = listening(capacity=100, max_age=60.0)
    tell(net, [Descriptor(5, 0.0, 0, frozenset())])
    net.run(10.0)
    view.lost(5)
    tell(net, [Descriptor(5, 1.0, 0, frozenset())])
    assert 5 not in view.peers()
    net.run(20.0)
    tell(net, [Descriptor(5, 1.0, 0, frozenset())])
    assert 5 in view.peers()


def test_gossip_soon_knows_far_more_than_a_sampling_view() -> None:
    """SpiderCast §3.7 asks for 5% of the nodes; Newscast's views of 20 bring a third of 600 within 20 periods."""
    _, _, views = swarm(lambda n, i, w, d: _large(n, i, w), random_wants(600))
    known = [len(view.peers()) for view in views.values()]
    assert min(known) > 200
    assert max(known) <= 400


def _large(net: VirtualNetwork, node: NodeId, interest: Interest) -> InterestView:
    world = net.world(node)
    view = GossipView(world, Newscast(world, node, interest), capacity=400, max_age=30.0)
    world.use(view)
    return view
