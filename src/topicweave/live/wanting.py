"""Who wants what at a node, counted. The node unsubscribes from a topic when neither the application nor a
client nor a pattern wants it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from topicweave.errors import BadInput
from topicweave.live.names import RETAINED
from topicweave.model.ids import TopicId

if TYPE_CHECKING:
    from topicweave.live.node import LiveNode

CHUNK = 2500
"""Topics subscribed to in one turn of the event loop. Neighbours are told of each change, so there should be few."""
ENDED = 100
"""Topics unsubscribed from in one turn: one by one, and each takes the longer the more topics the node wants."""
MOST_HISTORY = 1_000_000


class Wanting:
    """One per node, for its application, its HTTP and MQTT clients and its patterns together."""

    def __init__(self, node: LiveNode, own: Iterable[TopicId]) -> None:
        self._node = node
        self._own = set(own)
        """What the application wants."""
        self._counts: dict[TopicId, int] = {}
        """What others want, and how many do."""

    # The application.

    async def take(
        self, topics: Iterable[str], *, last: int | None = None, since: float | None = None, lasting: bool
    ) -> None:
        """The application wants these; what is `lasting` also after a restart with the same data folder."""
        topics = list(dict.fromkeys(topics))
        _check_last(last)
        ids = self._checked(topics)
        self._own.update(ids)
        disk = self._node.disk
        for topic in topics if disk is not None and lasting else ():
            assert disk is not None
            disk.do(disk.store.add_subscription, topic)
        await self.begin(ids, last=last, since=since)

    async def drop(self, topics: Iterable[str]) -> None:
        """The application is done with these."""
        topics = list(dict.fromkeys(topics))
        ids = list(map(self._node.topics.id_of, topics))
        self._own.difference_update(ids)
        disk = self._node.disk
        for topic in topics if disk is not None else ():
            assert disk is not None
            disk.do(disk.store.remove_subscription, topic)
        await self._end([topic for topic in ids if topic not in self._counts])

    def of_its_own(self, topic: str) -> bool:
        """Whether the application itself wants a topic, by its name or by a pattern."""
        return self._node.topics.id_of(topic) in self._own or self._node.patterns.of_its_own(topic)

    # Clients and patterns.

    async def more(
        self, topics: Iterable[str], *, last: int | None = None, since: float | None = None
    ) -> None:
        """One more wants each of these; who names one twice wants it twice. After a restart that is over:
        clients come again by themselves.
        """
        _check_last(last)
        await self.begin(self.count(topics), last=last, since=since)

    def count(self, topics: Iterable[str]) -> list[TopicId]:
        """The first half of `more`, at once: `less` may come from now on. `begin` or `begin_now` follows."""
        ids = self._checked(list(topics))
        for topic in ids:
            self._counts[topic] = self._counts.get(topic, 0) + 1
        return ids

    async def begin(
        self, topics: Sequence[TopicId], *, last: int | None = None, since: float | None = None
    ) -> None:
        """The second half: the node subscribes to what is wanted still."""
        for start in range(0, len(topics), CHUNK):
            some = topics[start : start + CHUNK]
            wanted = [topic for topic in some if topic in self._own or topic in self._counts]
            self._begin(wanted, last, since)
            if start + CHUNK < len(topics):
                await asyncio.sleep(0)
        if self._node.disk is not None:
            self._node.disk.committed()

    def begin_now(self, topics: Sequence[TopicId]) -> None:
        """The same for a few topics, within this turn of the event loop."""
        self._begin(topics, None, None)

    async def less(self, topics: Iterable[str]) -> None:
        """One is done with each of these."""
        unwanted = []
        for topic in map(self._node.topics.id_of, topics):
            if topic in self._counts:
                self._counts[topic] -= 1
                if not self._counts[topic]:
                    del self._counts[topic]
                    if topic not in self._own:
                        unwanted.append(topic)
        await self._end(unwanted)

    # Subscribing.

    def _checked(self, topics: Sequence[str]) -> list[TopicId]:
        """Before anything changes: all of them can be had."""
        for topic in topics:
            self._node.check_permission(topic)
        return [self._node.topics.id_of(topic) for topic in topics]

    def _begin(self, topics: Sequence[TopicId], last: int | None, since: float | None) -> None:
        node, catch_up = self._node, self._node.world.catch_up
        new = [topic for topic in dict.fromkeys(topics) if topic not in node.node.subscriptions]
        if new:
            node.world.own.settle()
            node.node.subscribe_all(new)
            if node.recorder is not None:
                node.recorder.wants(new)
        for topic in new:
            catch_up.changed(topic)
        if last or since is not None:
            for topic in topics:
                catch_up.ask_history(topic, last or MOST_HISTORY, since or 0.0)

    async def _end(self, topics: Sequence[TopicId]) -> None:
        node = self._node
        gate = node.world.gate
        for start in range(0, len(topics), ENDED):
            # Somebody may want one again since.
            some = topics[start : start + ENDED]
            gate.flush()  # What came in this moment is theirs still.
            ended = [topic for topic in some if topic not in self._own and topic not in self._counts]
            ended = [topic for topic in ended if topic in node.node.subscriptions]  # They may not have begun.
            for topic in ended:
                node.world.own.settle()
                node.node.unsubscribe(topic)
                if node.recorder is not None:
                    node.recorder.wants([topic], False)
                # A later subscription gets the retained value again.
                gate.forget(topic, unseen=node.topics.of(topic).startswith(RETAINED))
            gate.drop_unread(ended)
            if start + ENDED < len(topics):
                await asyncio.sleep(0)
        if node.disk is not None:
            node.disk.committed()


def _check_last(last: int | None) -> None:
    if last is not None and not 0 <= last <= MOST_HISTORY:
        raise BadInput(f"last={last}: say 0 to {MOST_HISTORY} events")
