"""Parts of topics: what a system tells the directory about them, and what it learns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from topicweave.model.ids import NodeId, TopicId


@dataclass(frozen=True)
class Parts:
    """A topic has parts if its subscribers are not all connected. Each part has a label: the name of its
    leader, one of its members.
    """

    lifetime: float
    """For how many seconds a label outlives its leader."""
    label: Callable[[TopicId], NodeId | None]
    """The leader of this node's part of a topic, if known."""
    leading: Callable[[], Iterable[TopicId]]
    """The topics whose part this node leads."""
    introduced: Callable[[TopicId, NodeId, NodeId | None], None]
    """Called with a topic, a peer in another part of it, and that part's label."""
    suited: Callable[[TopicId], bool] = lambda _topic: True
    """Whether some of the subscribers that the node knows, or is linked to, are of use to it. If not, the
    node asks for more, however many it knows.
    """
    named: Callable[[], None] = lambda: None
    """Called when homes have named subscribers, for a node that waits for some."""
