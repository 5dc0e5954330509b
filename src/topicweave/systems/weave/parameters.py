"""Weave's settings."""

from __future__ import annotations

from typing import Annotated

import msgspec

from topicweave.systems.spidercast.parameters import Count, LinkParameters

LEAST_BOUND = 6
Lean = Annotated[float, msgspec.Meta(ge=0, le=1e3)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class WeaveParameters(LinkParameters, frozen=True, forbid_unknown_fields=True):
    """One dial, from few links to few hops."""

    links: Count = 0
    """Nodes that need fewer links than this for their topics have so many all the same: shortcuts to those
    they share most with.
    """
    busy: Count = 16
    """A node with so many links takes no more shortcuts. It sends a node that needs it on to a neighbour that
    would do for most of what they share. If that node comes again, it is taken.
    """
    hubs: Share = 0.05
    """So large a share of the nodes, those with the lowest ids, are hubs: they send others on from 0.7 times
    `most_links` on. Above that they have room for those who come again.
    """
    most_links: Count = 92
    """A node with so many takes nobody. A node that wants more topics than this may have as many links as topics."""
    lean: Lean = 5.0
    """How much a low id counts when a node chooses who covers its topics: the lowest of all like so many
    topics more. With more of it, few nodes have many links and most have few, and ways are shorter.
    """
    near: Lean = 0.0
    """How much distance counts: a peer that is as far away as most like so many topics less, one twice as far
    like twice as many. 0: nobody is measured. Without effect with `max_degree`.
    """
    improve: bool = True
    """Nodes that have what they need see whom they would take if they chose anew, and ask those. Without it,
    links stay as they were found.
    """
    prepare: bool = True
    """Make the trees of topics before there are events. Without it, a topic's first event makes its tree, by copies."""
    spill: Count = 1
    """For so many links from its publisher on, an event goes over all links that serve its topic, not only those
    of its tree: ways are shorter, and there are more copies, at most one for ten deliveries.
    """
    max_degree: Count = 0
    """Nobody ever has more links than this, 6 or more; 0: no such bound. Topics that cannot be joined
    within it are carried by nodes that do not want them: noise.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if 0 < self.max_degree < LEAST_BOUND:
            raise ValueError(f"max_degree must be 0 or at least {LEAST_BOUND}, got {self.max_degree}")
