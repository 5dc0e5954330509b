"""The choice between the interest views, and how it is written."""

from __future__ import annotations

import doctest

import pytest

from topicweave.blocks import membership as membership_module
from topicweave.blocks.membership import DIRECTORY, FULL, GOSSIP, LIVE_SAMPLING, Membership, Needs
from topicweave.blocks.views import Directory, FullView, GossipView, ShareView
from topicweave.errors import BadInput
from topicweave.testing import VirtualNetwork


def test_documentation_examples() -> None:
    outcome = doctest.testmod(membership_module)
    assert outcome.attempted
    assert not outcome.failed


@pytest.mark.parametrize(
    ("text", "membership"),
    [
        ("full", FULL),
        ("100%", FULL),
        ("5%", Membership(share=0.05)),
        ("0.5%", Membership(share=0.005)),
        ("gossip", GOSSIP),
        ("gossip:200", Membership(capacity=200)),
        ("gossip:1", Membership(capacity=1)),
        ("live-gossip", Membership(live=True)),
        ("live-gossip:100", Membership(capacity=100, live=True)),
        ("directory", DIRECTORY),
        ("directory:100", Membership(capacity=100, directory=True)),
    ],
)
def test_what_is_understood(text: str, membership: Membership) -> None:
    assert Membership.parse(text) == membership


@pytest.mark.parametrize(
    "text",
    [
        *("", "Full", "everybody", "full:5", "5", "%", "x%", "0%", "-5%", "101%", "nan%", "inf%"),
        *("gossip:", "gossip:0", "gossip:-1", "gossip:many", "gossip:2.5", "gossip:5%", "gossip:1:2"),
    ],
)
def test_what_is_not_understood_is_refused_with_the_choices(text: str) -> None:
    with pytest.raises(BadInput) as refusal:
        Membership.parse(text)
    assert str(refusal.value) == (
        f"membership {text!r}: say 'directory', 'gossip' or 'live-gossip', with a capacity as in 'gossip:200', or as an oracle 'full' or a share such as '5%'"
    )


def test_each_membership_makes_its_view() -> None:
    world, directory, interest = VirtualNetwork().world(1), Directory(), frozenset({7})
    assert type(FULL.view(world, 1, interest, directory)) is FullView
    share = Membership(share=0.25).view(world, 1, interest, directory)
    assert isinstance(share, ShareView)
    assert share.share == 0.25
    gossip = GOSSIP.view(world, 1, interest, None)
    assert isinstance(gossip, GossipView)
    assert gossip.sampling.profile == interest


@pytest.mark.parametrize("membership", [FULL, Membership(share=0.5)])
def test_only_gossip_does_without_a_directory(membership: Membership) -> None:
    with pytest.raises(BadInput, match="needs a simulation's directory; a live node must gossip"):
        membership.view(VirtualNetwork().world(1), 1, frozenset(), None)


@pytest.mark.parametrize(
    ("capacity", "view_size", "shuffle_size"), [(1, 1, 1), (10, 10, 10), (30, 30, 20), (500, 50, 20)]
)
def test_a_gossip_view_samples_no_more_than_it_holds(
    capacity: int, view_size: int, shuffle_size: int
) -> None:
    view = Membership(capacity=capacity).view(VirtualNetwork().world(1), 1, frozenset(), None)
    assert isinstance(view, GossipView)
    assert view.capacity == capacity
    assert (view.sampling.params.view_size, view.sampling.params.shuffle_size) == (view_size, shuffle_size)


def test_who_needs_peers_only_tells_nobody_what_it_wants() -> None:
    """With the membership of live nodes; gossip alone tells it, as in the studies."""
    world = VirtualNetwork().world(1)
    for text, told in (
        ("directory", frozenset()),
        ("live-gossip", frozenset()),
        ("gossip", frozenset({7, 8})),
    ):
        view = Membership.parse(text).view(world, 1, frozenset({7}), None, "peers")
        assert isinstance(view, GossipView)
        view.set_interest(frozenset({7, 8}))
        assert view.sampling.profile == told


@pytest.mark.parametrize("needs", ["subscribers", "peers"])
@pytest.mark.parametrize("text", ["directory", "live-gossip"])
def test_all_live_nodes_gossip_at_one_pace(text: str, needs: Needs) -> None:
    """Whatever they need, and whatever they run beside it."""
    view = Membership.parse(text).view(VirtualNetwork().world(1), 1, frozenset({7}), None, needs)
    assert isinstance(view, GossipView)
    assert view.sampling.params == LIVE_SAMPLING
