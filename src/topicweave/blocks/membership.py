"""How nodes learn of each other's interests: the choice between the interest views."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from topicweave.blocks.bystander_view import BystanderView
from topicweave.blocks.cyclon import Cyclon
from topicweave.blocks.directory_view import DirectoryView
from topicweave.blocks.peer_sampling import SamplingParams
from topicweave.blocks.profiles import Profiles
from topicweave.blocks.views import Directory, FullView, GossipView, InterestView, PeersView, ShareView
from topicweave.errors import BadInput
from topicweave.model.ids import Interest, NodeId
from topicweave.port import World

Needs = Literal["subscribers", "peers", "nothing"]
"""What a system asks of membership. A system that needs peers only, whatever they want, runs no
directory of topics.
"""


@dataclass(frozen=True)
class Membership:
    """`share` of all nodes known to each by decree (an oracle, for experiments), or by gossip (None): the
    only way live.
    """

    share: float | None = None
    capacity: int = 1000
    """By gossip: how many peers a view holds at most."""
    directory: bool = False
    """Whether topics have homes that introduce their subscribers, beside gossip: what live nodes use."""
    live: bool = False
    """Gossip alone as live nodes have it that run no directory. Gossip beside a directory is the same; that of
    studies is faster.
    """

    @classmethod
    def parse(cls, text: str) -> Membership:
        """From `directory`, `gossip` (that of studies), `live-gossip`, each with a capacity if wanted
        (`directory:100`), `full`, or a share such as `5%`.

        >>> Membership.parse("5%").share, Membership.parse("gossip:200").capacity
        (0.05, 200)
        >>> Membership.parse("directory") == DIRECTORY
        True
        """
        try:
            if text == "full":
                return FULL
            if text.endswith("%") and 0 < float(text[:-1]) <= 100:
                return cls(share=float(text[:-1]) / 100)
            kind, _, capacity = text.partition(":")
            if made := BY_GOSSIP.get(kind):
                if kind == text:
                    return made
                if int(capacity) > 0:
                    return replace(made, capacity=int(capacity))
        except ValueError:
            pass
        raise BadInput(
            f"membership {text!r}: say 'directory', 'gossip' or 'live-gossip', with a capacity as in 'gossip:200', or as an oracle 'full' or a share such as '5%'"
        )

    @property
    def oracle(self) -> bool:
        """Whether nodes know what no live node could."""
        return self.share is not None

    def view(
        self,
        world: World,
        owner: NodeId,
        interest: Interest,
        oracle: Directory | None,
        needs: Needs = "subscribers",
    ) -> InterestView:
        """A view for one node, which starts it if it uses it. Only a simulation has an oracle."""
        if self.directory or self.live:
            return self._live_view(world, owner, interest, needs)
        if self.share is None:
            # A peer's view turns over in about view_size periods; what was heard is remembered beyond that.
            size = min(50, self.capacity)
            params = SamplingParams(view_size=size, shuffle_size=min(20, size))
            return GossipView(world, Cyclon(world, owner, interest, params), self.capacity)
        if oracle is None:
            raise BadInput("membership by decree needs a simulation's directory; a live node must gossip")
        if self.share == 1.0:
            return FullView(world, owner, interest, oracle)
        return ShareView(world, owner, interest, oracle, self.share)

    def _live_view(self, world: World, owner: NodeId, interest: Interest, needs: Needs) -> GossipView:
        """All live nodes gossip at one pace, whatever else they run."""
        size = min(LIVE_SAMPLING.view_size, self.capacity)
        shuffle = min(LIVE_SAMPLING.shuffle_size, size)
        sparing = msgspec.structs.replace(LIVE_SAMPLING, view_size=size, shuffle_size=shuffle)
        if needs != "subscribers":
            return PeersView(world, Cyclon(world, owner, frozenset(), sparing), self.capacity)
        profiles = Profiles(world, owner)
        sampling = Cyclon(world, owner, interest, sparing, profiles)
        if self.directory:
            return DirectoryView(world, owner, sampling, profiles, self.capacity)
        return BystanderView(world, sampling, self.capacity, profiles=profiles)


LIVE_SAMPLING = SamplingParams(
    view_size=30, shuffle_size=8, period=4.0, greet_every=15, max_topics=256, fewest_topics=32
)
"""Of live nodes: rare topics are the directory's affair, so gossip may be slow. Of long profiles the topics of
the lowest identifiers, which are hashes, are told: all nodes draw the same sample, so what two of them share
shows. Of very long ones few are: in a network of more nodes than a node remembers, strangers never end.
"""

FULL = Membership(share=1.0)
GOSSIP = Membership()
DIRECTORY = Membership(directory=True)
BY_GOSSIP = {"gossip": GOSSIP, "live-gossip": Membership(live=True), "directory": DIRECTORY}
