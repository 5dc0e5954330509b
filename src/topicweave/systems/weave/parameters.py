"""Weave's settings."""

from __future__ import annotations

from topicweave.systems.spidercast.parameters import Count, LinkParameters


class WeaveParameters(LinkParameters, frozen=True, forbid_unknown_fields=True):
    """One dial, from few links to few hops."""

    links: Count = 7
    """Nodes that need fewer links than this for their topics have so many all the same: shortcuts to those they share most with."""
    busy: Count = 14
    """Who has so many links takes no more shortcuts, and sends those who need it on to a neighbour that would do for most of what they share. Who
    comes again is taken."""
    most_links: Count = 64
    """Who has so many takes nobody; a node that wants more topics may have as many as topics."""
    tie: Count = 2
    """Of so many equally good candidates, drawn at random, the lowest is taken: more make trees flatter and some nodes busier."""
