"""One node's place in one feed's tree, and its search for a parent there: what `trees` keeps per feed."""

from __future__ import annotations

from typing import Literal

from topicweave.blocks.vivaldi import Coordinate
from topicweave.model.ids import NodeId, TopicId
from topicweave.systems.rappel.messages import Lineage
from topicweave.systems.rappel.rules import ROOT, Child, Rank

Reason = Literal["first", "orphan", "moved", "periodic", "root"]


class Search:
    """A search for a parent."""

    __slots__ = ("asked_root", "hops", "reason", "root_lives", "since", "target", "tried")

    def __init__(self, reason: Reason, now: float) -> None:
        self.reason: Reason = reason
        self.since = now
        self.target: NodeId | None = None
        self.tried: set[NodeId] = set()
        self.asked_root: NodeId | None = None
        """Who was asked as the root to be."""
        self.root_lives = False
        """Whether the tree's root answered: nobody else has to lead, though no place was found yet."""
        self.hops = 0


class Tree:
    """One node's place in one feed's tree."""

    __slots__ = (
        "ancestors",
        "children",
        "denied",
        "feed",
        "heirs",
        "heirs_of",
        "joined_at",
        "lineage",
        "parent",
        "patience",
        "publisher",
        "rank",
        "rejoin_at",
        "search",
        "since",
        "skip_rejoin",
        "waited",
    )

    def __init__(self, feed: TopicId) -> None:
        self.feed = feed
        self.parent: NodeId | None = None
        self.ancestors: tuple[NodeId, ...] = ()
        self.publisher: Coordinate | None = None
        """Where the publisher is; None as long as the node never had a parent."""
        self.rank: Rank = ROOT
        self.children: dict[NodeId, Child] = {}
        self.since: dict[NodeId, float] = {}
        """When each child was taken."""
        self.search: Search | None = None
        self.joined_at = -1.0
        self.rejoin_at = 0.0
        self.skip_rejoin = False
        self.denied: dict[NodeId, float] = {}
        """Who was taken for the root to be and said no, and until when that is believed."""
        self.heirs: tuple[NodeId, ...] = ()
        """The children of an elected root, nearest first: what this root said to them, or what the node's own
        root (`heirs_of`) said to it.
        """
        self.heirs_of: NodeId | None = None
        self.patience: float | None = None
        """Until when a root that answers is left to find this node a place."""
        self.waited = False
        """Whether those who come before this node were given time to get a part in it."""
        self.lineage: Lineage | None = None
        """What the children are told; made when it is asked for."""

    @property
    def is_root(self) -> bool:
        return self.publisher is not None and self.rank is ROOT

    @property
    def joined(self) -> bool:
        return self.parent is not None or self.is_root

    def heirs_left(self) -> tuple[NodeId, ...]:
        """Those of the root's children who may lead instead of it; none unless the node is one of them."""
        return self.heirs if self.ancestors == (self.heirs_of,) else ()

    def leaves_it_to_the_root(self, now: float, lasts: float) -> bool:
        """Whether a root answered the search, which may lead to a child of its that died: it will find out. But
        whoever is taken for the root may lead no more, so this does not last.
        """
        if self.search is None or not self.search.root_lives:
            return False
        if self.patience is None:
            self.patience = now + lasts
        return now < self.patience

    @property
    def height(self) -> int:
        return len(self.ancestors)
