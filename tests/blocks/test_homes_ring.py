"""What a ring of homes remembers, against the rules that it follows."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from topicweave.blocks.topic_directory import DirectoryParameters, rules
from topicweave.blocks.topic_directory.messages import Beat
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
