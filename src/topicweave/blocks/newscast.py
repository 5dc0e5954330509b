"""Newscast: exchange whole views with a random peer, keep the freshest.

M. Jelasity, W. Kowalczyk, M. van Steen: "Newscast Computing", TR IR-CS-006, Vrije Universiteit Amsterdam, 2003;
M. Jelasity, A. Montresor: "Epidemic-style proactive aggregation in large overlay networks", ICDCS 2004.

Rules kept
----------
1. The partner is drawn uniformly from the view; both sides send their whole view and themselves.
2. Both keep the `view_size` freshest descriptors of all they have, one per peer.

The dead disappear within a few periods, since nobody makes fresh descriptors of them; the price is an uneven
in-degree (whoever was active just now is known to many) and views of neighbours that resemble each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from topicweave.blocks.descriptors import Descriptor, merge
from topicweave.blocks.peer_sampling import PeerSampling
from topicweave.model.ids import NodeId

_age = attrgetter("age")


class Newscast(PeerSampling):
    def _choose(self, view: dict[NodeId, Descriptor]) -> NodeId:
        return self.world.random.choice(list(view))

    def _offer(self, view: dict[NodeId, Descriptor], partner: NodeId) -> list[Descriptor]:
        return list(view.values())

    def _answer(self, view: dict[NodeId, Descriptor]) -> list[Descriptor]:
        return [self.own(), *view.values()]

    def _merge(
        self, view: dict[NodeId, Descriptor], received: dict[NodeId, Descriptor], sent: Sequence[NodeId]
    ) -> dict[NodeId, Descriptor]:
        everybody = dict(view)
        merge(everybody, received.values())
        if len(everybody) <= self.params.view_size:
            return everybody
        freshest = sorted(everybody.values(), key=_age)[: self.params.view_size]
        return {descriptor.id: descriptor for descriptor in freshest}
