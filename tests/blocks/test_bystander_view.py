"""Swarms in which some nodes run the topic directory, and others gossip alone."""

from __future__ import annotations

from collections.abc import Collection

from topicweave.blocks.bystander_view import BystanderView
from topicweave.blocks.directory_view import DirectoryView
from topicweave.blocks.membership import Membership
from topicweave.blocks.topic_directory.messages import Beat, Carry, Release
from topicweave.blocks.views import GossipView
from topicweave.model.ids import NodeId, ring_id
from topicweave.testing.network import Sent, VirtualNetwork

NODES = 30
IDS = [ring_id(str(number)) for number in range(NODES)]
TOPICS = [ring_id(f"topic {number}") for number in range(6)]


class Views(VirtualNetwork):
    """Views alone, each with a topic. Those of `apart` run no directory. All join through the first three."""

    def __init__(self, apart: Collection[int]) -> None:
        super().__init__(seed=1, record=True)
        self.views: dict[NodeId, GossipView] = {}
        for number, node_id in enumerate(IDS):
            self.begin(node_id, number in apart)

    def begin(self, node_id: NodeId, apart: bool) -> None:
        world = self.world(node_id)
        interest = frozenset({TOPICS[IDS.index(node_id) % len(TOPICS)]})
        view = Membership.parse("live-gossip" if apart else "directory").view(world, node_id, interest, None)
        assert isinstance(view, GossipView)
        world.use(view)
        self.views[node_id] = view
        view.start([one for one in IDS[:3] if one != node_id])

    def with_directory(self) -> dict[NodeId, DirectoryView]:
        return {node_id: view for node_id, view in self.views.items() if isinstance(view, DirectoryView)}

    def of_directory(self, since: float = 0.0) -> list[Sent]:
        return [
            sent
            for sent in self.log
            if str(sent.message.__struct_config__.tag).startswith("dir-") and sent.time >= since
        ]


def test_without_any_directory_nothing_is_said_of_it() -> None:
    swarm = Views(range(NODES))
    swarm.run(60.0)
    assert swarm.of_directory() == []
    for node_id, view in swarm.views.items():
        topic = TOPICS[IDS.index(node_id) % len(TOPICS)]
        assert len(view.subscribers(topic)) > 1, "of four"


def test_bystanders_are_no_homes_and_no_contacts() -> None:
    """Also if all seeds are bystanders, and most nodes are."""
    swarm = Views([number for number in range(NODES) if number % 3 or number < 3])
    swarm.run(60.0)
    homes = swarm.with_directory()
    assert len(homes) == 9
    for node_id, view in homes.items():
        assert view.directory.ring.ready
        assert view.contacts() <= homes.keys()
        around = sorted(homes)
        assert view.directory.ring.after[0] == around[(around.index(node_id) + 1) % len(around)]
    for topic in TOPICS:
        [home] = [view for view in homes.values() if view.directory.ring.owns(topic)]
        wanting = {one for one in homes if TOPICS[IDS.index(one) % len(TOPICS)] == topic}
        assert set(home.directory.home.subscribers(topic)) == wanting
    assert all(type(view) is BystanderView for node, view in swarm.views.items() if node not in homes)
    # Who declined is not asked again for a while, and is never asked to carry anything.
    late = swarm.of_directory(since=40.0)
    to_bystanders = [sent for sent in late if sent.receiver not in homes]
    assert not any(isinstance(sent.message, Carry) for sent in to_bystanders)
    beats = [sent for sent in to_bystanders if isinstance(sent.message, Beat)]
    pairs = {(sent.sender, sent.receiver) for sent in beats}
    assert len(beats) == len(pairs), "each once in twenty seconds"
    said = {type(sent.message) for sent in swarm.of_directory() if sent.sender not in homes}
    assert said == {Release}


def test_a_home_that_comes_back_without_directory_is_left_out_at_once() -> None:
    swarm = Views([])
    swarm.run(40.0)
    swarm.begin(IDS[5], apart=True)
    swarm.run(50.0)
    for view in swarm.with_directory().values():
        assert view.directory.ring.ready
        assert IDS[5] not in view.contacts()
    for topic in TOPICS:
        homes = [view for view in swarm.with_directory().values() if view.directory.ring.owns(topic)]
        assert len(homes) == 1
