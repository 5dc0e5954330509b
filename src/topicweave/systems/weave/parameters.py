"""Weave's settings."""

from __future__ import annotations

from topicweave.systems.spidercast.parameters import Count, LinkParameters


class WeaveParameters(LinkParameters, frozen=True, forbid_unknown_fields=True):
    """One dial, from few links to few hops."""

    links: Count = 6
    """Nodes that need fewer links than this for their topics have so many all the same: shortcuts to those they share most with."""
    most_links: Count = 48
    """Who has so many refuses more, and names a neighbour instead."""
    tie: Count = 2
    """Of so many equally good candidates, drawn at random, the lowest is taken: more make trees flatter and some nodes busier."""
