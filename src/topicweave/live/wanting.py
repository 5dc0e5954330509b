"""What the clients at a node's doors want, counted: a topic goes when the last of them is done with it, and the node's own stay."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topicweave.live.node import LiveNode


class Wanting:
    """One per node, for its HTTP and MQTT clients together."""

    def __init__(self, node: LiveNode) -> None:
        self._node = node
        # Topics that only clients want, and how many do.
        self._counts: dict[str, int] = {}

    async def more(
        self, topics: Iterable[str], *, last: int | None = None, since: float | None = None
    ) -> None:
        """One client more wants each of these."""
        topics = list(dict.fromkeys(topics))
        had = self._node.node.subscriptions
        for topic in topics:
            if topic in self._counts or self._node.topics.id_of(topic) not in had:
                self._counts[topic] = self._counts.get(topic, 0) + 1
        # Clients come again by themselves.
        await self._node.subscribe(topics, last=last, since=since, lasting=False)

    async def less(self, topics: Iterable[str]) -> None:
        """One client is done with each of these."""
        unwanted = []
        for topic in topics:
            if topic in self._counts:
                self._counts[topic] -= 1
                if not self._counts[topic]:
                    del self._counts[topic]
                    unwanted.append(topic)
        await self._node.unsubscribe(unwanted)
