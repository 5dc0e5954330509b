"""Parts of topics: what a system tells the directory of them, and is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from topicweave.model.ids import NodeId, TopicId


@dataclass(frozen=True)
class Parts:
    """A topic whose subscribers do not all hang together has parts. Each has a label, which is the name of one of its members, the leader."""

    lifetime: float
    """Seconds that a label outlives its leader."""
    label: Callable[[TopicId], NodeId | None]
    """The leader of this node's part of a topic, if known."""
    leading: Callable[[], Iterable[TopicId]]
    """The topics whose part this node leads."""
    introduced: Callable[[TopicId, NodeId, NodeId | None], None]
    """Told of a peer in another part of a topic, and of that part's label."""
    suited: Callable[[TopicId], bool] = lambda _topic: True
    """Whether some of the subscribers that the node knows, or is linked to, are of use to it. If not, it asks for more, however many it knows."""
    named: Callable[[], None] = lambda: None
    """Told that homes named subscribers: who waits for some may ask them."""
