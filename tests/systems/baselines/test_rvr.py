"""RVR: no friends, a path for every subscription, events on relay paths only."""

from __future__ import annotations

from tests.systems.vitis.virtual import VirtualNetwork


def test_everybody_is_reached_over_trees_of_small_world_links() -> None:
    network = VirtualNetwork("rvr", table_size=6)
    network.sim.run(25.0)
    for node in network.nodes().values():
        kinds = {link.kind for link in node.links()}
        assert "friend" not in kinds
        assert set(node._topics_to_relay()) == node.subscriptions
    topic = network.workload.topic_ids[0]
    roots = [
        node.id
        for node in network.nodes().values()
        if node.relays.relays(topic) and node.relays.parent(topic) is None
    ]
    assert set(roots) == network.rendezvous(topic)
    assert network.missed() == []
