"""What a ring of homes remembers, against the rules that it follows."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from topicweave.blocks.topic_directory import DirectoryParameters, rules
from topicweave.blocks.topic_directory.messages import Beat, Release
from topicweave.blocks.topic_directory.ring import HomesRing
from topicweave.model.ids import RING_SIZE, NodeId
from topicweave.testing.network import VirtualNetwork

PARAMETERS = DirectoryParameters()
OWN = RING_SIZE // 2
EVERYBODY = [sixteenth * (RING_SIZE // 16) for sixteenth in range(16)]
PEERS = st.sampled_from(EVERYBODY)


class RemembersAgainstRules(RuleBasedStateMachine):
    """Next hops and strangers that a ring remembers are those that the rules give, whoever comes and goes."""

    @initialize()
    def begin(self) -> None:
        self.node = VirtualNetwork(1).world(OWN)
        self.ring = HomesRing(self.node, OWN, PARAMETERS, lambda: None, lambda: None, lambda _peer: None)

    @rule(peer=PEERS, finger=st.booleans())
    def hear(self, peer: NodeId, finger: bool) -> None:
        if peer != OWN:
            self.ring._receive_beat(peer, Beat(None, finger=finger, answer=True))

    @rule(peer=PEERS)
    def lose(self, peer: NodeId) -> None:
        self.ring.remove(peer)

    @invariant()
    def agree(self) -> None:
        ring = self.ring
        table = sorted({OWN, *ring.contacts()})
        for point in EVERYBODY:
            assert ring.next_hop(point) == rules.next_hop(OWN, ring.after, ring.before, table, point)
            fits = rules.fits(OWN, point, ring.after, ring.before, PARAMETERS.sides)
            assert (point not in ring._too_far and ring._fits(point)) == fits


TestRemembersAgainstRules = RemembersAgainstRules.TestCase
TestRemembersAgainstRules.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)


def test_who_takes_the_others_for_fewer_lets_go_of_some() -> None:
    """Six close neighbours make it take them for many, and many have it as their finger. Then these neighbours go."""
    network = VirtualNetwork(1, record=True)
    ring = HomesRing(network.world(OWN), OWN, PARAMETERS, lambda: None, lambda: None, lambda _peer: None)
    close = [OWN + step for step in (-3, -2, -1, 1, 2, 3)]
    for peer in close:
        ring._receive_beat(peer, Beat(None, answer=True))
    assert ring.nodes > 1 << 60
    fans = [fan for fan in EVERYBODY if fan != OWN]
    for fan in fans:
        ring._receive_beat(fan, Beat(None, finger=True))
    assert ring.contacts() == {*close, *fans}
    for peer in close:
        ring.remove(peer)
        assert len(ring.contacts()) <= rules.most_contacts(ring.nodes)
    for peer in (8 * RING_SIZE // 17, 10 * RING_SIZE // 17):
        ring._receive_beat(peer, Beat(None, answer=True))
        assert len(ring.contacts()) <= rules.most_contacts(ring.nodes)
    told = [sent.receiver for sent in network.log if isinstance(sent.message, Release)]
    assert told
    assert set(told).isdisjoint(ring.contacts())


def test_a_finger_that_is_next_to_a_node_after_a_death_becomes_its_neighbour() -> None:
    """At once: the finger takes the node for its neighbour already, and its signs of life name nobody."""
    network = VirtualNetwork(1, record=True)
    ring = HomesRing(network.world(OWN), OWN, PARAMETERS, lambda: None, lambda: None, lambda _peer: None)
    near = [OWN + step * 1000 for step in (-3, -2, -1, 1, 2, 3)]
    for peer in near:
        ring._receive_beat(peer, Beat(None, answer=True))
    finger = OWN + 4000
    ring._fingers[0] = finger
    ring.remove(OWN + 2000)
    asked = [sent.receiver for sent in network.log if isinstance(sent.message, Beat)]
    assert asked == [finger]
    ring._receive_beat(finger, Beat((OWN,), answer=True))
    assert ring.after == [OWN + 1000, OWN + 3000, finger]


def test_what_another_part_said_once_stands_for_one_sign_of_life_from_when_it_was_said() -> None:
    """Else the next sign would come a whole period later, and the other side would have to ask."""
    network = VirtualNetwork(1, record=True)
    ring = HomesRing(network.world(OWN), OWN, PARAMETERS, lambda: None, lambda: None, lambda _peer: None)
    peer = OWN + 1000
    ring._receive_beat(peer, Beat(None, answer=True))
    network.run(20.0)  # It has had these neighbours for a while.
    words, said = [], 0
    for tick in range(1, 121):
        network.run(20.0 + tick)
        ring.hear(peer)
        before = len(network.log)
        ring.beat()
        words += [network.now] * (len(network.log) > before)
        if tick % 7 == 0:
            network.run_for(0.75)
            ring.spoke(peer)
            words.append(network.now)
            said += 1
    gaps = [later - earlier for earlier, later in pairwise(words)]
    assert max(gaps) <= PARAMETERS.near_period + PARAMETERS.tick
    assert len(words) - said < 120 / PARAMETERS.near_period
