"""Who wants what at a node, counted: a topic goes when nobody wants it any more, neither the application nor a client nor a pattern."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topicweave.live.node import LiveNode


class Wanting:
    """One per node, for its application, its HTTP and MQTT clients and its patterns together."""

    def __init__(self, node: LiveNode, own: Iterable[str]) -> None:
        self._node = node
        self._own = set(own)
        """What the application wants."""
        self._counts: dict[str, int] = {}
        """What others want, and how many do."""

    # The application.

    def take(self, topics: Iterable[str]) -> None:
        """The application wants these; who calls this subscribes."""
        self._own.update(topics)

    def drop(self, topics: Iterable[str]) -> list[str]:
        """The application is done with these; those that nobody wants now."""
        topics = list(dict.fromkeys(topics))
        self._own.difference_update(topics)
        return [topic for topic in topics if topic not in self._counts]

    # Clients and patterns.

    async def more(
        self, topics: Iterable[str], *, last: int | None = None, since: float | None = None
    ) -> None:
        """One more wants each of these."""
        topics = list(dict.fromkeys(topics))
        self._add(topics)
        try:
            # Clients come again by themselves.
            await self._node.want(topics, last=last, since=since, lasting=False)
        except BaseException:
            self._remove(topics)
            raise

    def more_now(self, topics: Iterable[str]) -> None:
        """The same for a few topics, within this turn of the event loop."""
        topics = list(dict.fromkeys(topics))
        self._add(topics)
        self._node.want_now(topics)

    async def less(self, topics: Iterable[str]) -> None:
        """One is done with each of these."""
        await self._node.want_no_more(self._remove(topics))

    def _add(self, topics: Iterable[str]) -> None:
        for topic in topics:
            self._counts[topic] = self._counts.get(topic, 0) + 1

    def _remove(self, topics: Iterable[str]) -> list[str]:
        """Those that nobody wants now."""
        unwanted = []
        for topic in topics:
            if topic in self._counts:
                self._counts[topic] -= 1
                if not self._counts[topic]:
                    del self._counts[topic]
                    if topic not in self._own:
                        unwanted.append(topic)
        return unwanted
