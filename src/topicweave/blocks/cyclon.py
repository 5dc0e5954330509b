"""Cyclon: swap a few entries with the peer whose entry is oldest.

S. Voulgaris, D. Gavidia, M. van Steen: "CYCLON: Inexpensive Membership Management for Unstructured P2P Overlays",
J. Network and Systems Management 13(2), 2005 (enhanced shuffling).

Rules kept
----------
1. The partner is the peer with the oldest entry. That entry leaves the view, our own fresh one goes to the
   partner with `shuffle_size` - 1 others at random: the link turns round.
2. The partner answers with up to `shuffle_size` random entries of its own.
3. Both sides take in the entries that are new to them, first in empty places, then in place of entries they
   sent away. So entries are swapped, not copied, and the in-degrees stay close to each other.
4. An entry of a peer already in the view is not taken in, except that a newer profile is (the paper's entries
   have none).

A dead peer's entry grows oldest, is chosen, gets no answer, and is gone: within about `view_size` periods.

A newcomer here swaps with its contact like everybody else; the paper's random walks, which give it a full
in-degree at once, are left out: a few periods of gossip do the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from topicweave.blocks.descriptors import Descriptor
from topicweave.blocks.peer_sampling import PeerSampling
from topicweave.model.ids import NodeId


class Cyclon(PeerSampling):
    def _choose(self, view: dict[NodeId, Descriptor]) -> NodeId:
        return max(view.values(), key=lambda descriptor: descriptor.age).id

    def _offer(self, view: dict[NodeId, Descriptor], partner: NodeId) -> list[Descriptor]:
        view.pop(partner, None)
        return self._some(view, self.params.shuffle_size - 1)

    def _answer(self, view: dict[NodeId, Descriptor]) -> list[Descriptor]:
        return self._some(view, self.params.shuffle_size)

    def _some(self, view: dict[NodeId, Descriptor], k: int) -> list[Descriptor]:
        return self.world.random.sample(list(view.values()), min(k, len(view)))

    def _merge(
        self, view: dict[NodeId, Descriptor], received: dict[NodeId, Descriptor], sent: Sequence[NodeId]
    ) -> dict[NodeId, Descriptor]:
        merged = dict(view)
        replaceable = [peer for peer in sent if peer in merged and peer not in received]
        for descriptor in received.values():
            old = merged.get(descriptor.id)
            if old is not None:
                if descriptor.version > old.version:
                    merged[old.id] = Descriptor(old.id, old.age, descriptor.version, descriptor.profile)
            elif len(merged) < self.params.view_size:
                merged[descriptor.id] = descriptor
            elif replaceable:
                del merged[replaceable.pop()]
                merged[descriptor.id] = descriptor
        return merged
