"""The view of a live node that runs no topic directory, in a swarm where others may run it.

Those others take any peer that gossip names for a node that may stand next to them on the ring of homes, and
ask it. A bystander says that it does not: it is no home and no contact on the ring, and nothing is carried by
way of it. It says nothing of this unless it is asked.
"""

from __future__ import annotations

from topicweave.blocks.topic_directory.messages import (
    Beat,
    Carry,
    Found,
    Got,
    Look,
    ProvenCarry,
    Release,
    WantRecords,
)
from topicweave.blocks.views import GossipView
from topicweave.model.ids import NodeId
from topicweave.port import Message, Receivers

ASKS: tuple[type[Message], ...] = (Beat, Carry, ProvenCarry)
"""What goes to somebody who stands on the ring, or may."""
TELLS: tuple[type[Message], ...] = (Look, Found, Release, Got, WantRecords)


class BystanderView(GossipView):
    """A view by gossip alone."""

    def receivers(self) -> Receivers:
        return {
            **super().receivers(),
            **dict.fromkeys(ASKS, self._decline),
            **dict.fromkeys(TELLS, _ignore),
        }

    def _decline(self, sender: NodeId, _message: Message) -> None:
        self.world.send(sender, Release())


def _ignore(_sender: NodeId, _message: Message) -> None:
    """Nothing to do: whoever asks asks others, too."""
