"""How nodes learn of each other's interests: the choice between the interest views."""

from __future__ import annotations

from dataclasses import dataclass

from topicweave.blocks.cyclon import Cyclon
from topicweave.blocks.peer_sampling import SamplingParams
from topicweave.blocks.views import Directory, FullView, GossipView, InterestView, ShareView
from topicweave.errors import BadInput
from topicweave.model.ids import Interest, NodeId
from topicweave.port import World


@dataclass(frozen=True)
class Membership:
    """`share` of all nodes known to each by decree (experiments), or by gossip (None): the only way live."""

    share: float | None = None
    capacity: int = 1000
    """By gossip: how many peers a view holds at most."""

    @classmethod
    def parse(cls, text: str) -> Membership:
        """From `full`, a share such as `5%`, or `gossip`, with a capacity as in `gossip:200`.

        >>> Membership.parse("5%").share, Membership.parse("gossip:200").capacity
        (0.05, 200)
        """
        try:
            if text == "full":
                return FULL
            if text.endswith("%") and 0 < float(text[:-1]) <= 100:
                return cls(share=float(text[:-1]) / 100)
            if text == "gossip":
                return GOSSIP
            kind, _, capacity = text.partition(":")
            if kind == "gossip" and int(capacity) > 0:
                return cls(capacity=int(capacity))
        except ValueError:
            pass
        raise BadInput(f"membership {text!r}: say 'full', a share such as '5%', 'gossip', or 'gossip:200'")

    def view(
        self, world: World, owner: NodeId, interest: Interest, directory: Directory | None
    ) -> InterestView:
        """A view for one node; only gossip does without a directory."""
        if self.share is None:
            # A peer's view turns over in about view_size periods; what was heard is remembered beyond that.
            size = min(50, self.capacity)
            sampling = Cyclon(
                world, owner, interest, SamplingParams(view_size=size, shuffle_size=min(20, size))
            )
            return GossipView(world, sampling, self.capacity)
        if directory is None:
            raise BadInput("membership by decree needs a simulation's directory; a live node must gossip")
        if self.share == 1.0:
            return FullView(world, owner, interest, directory)
        return ShareView(world, owner, interest, directory, self.share)


FULL = Membership(share=1.0)
GOSSIP = Membership()
