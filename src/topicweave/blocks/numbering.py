"""Numbers for the events a node publishes: one counter per topic, and an epoch per life (see `Event`)."""

from __future__ import annotations

from collections.abc import Mapping

from topicweave.model.event import Event
from topicweave.model.ids import NodeId, TopicId


class EventNumbers:
    """Makes a publisher's events.

    >>> numbers = EventNumbers(publisher=7)
    >>> numbers.begin(now=2.0)
    >>> [numbers.next_event(topic, b"").sequence for topic in (1, 1, 5)]
    [0, 1, 0]
    """

    def __init__(self, publisher: NodeId) -> None:
        self._publisher = publisher
        self._epoch = 0
        self._sequences: dict[TopicId, int] = {}

    def begin(self, now: float) -> None:
        """A life begins; one that kept its memory, or was told of an earlier one, goes on with its epoch.

        Microseconds tell a new life's events from those of the last one, if the memory of it was lost.
        """
        self._epoch = self._epoch or 1 + int(now * 1e6)

    def resume(self, epoch: int, sequences: Mapping[TopicId, int]) -> None:
        """Go on where an earlier life ended."""
        self._epoch = epoch
        self._sequences = dict(sequences)

    def next_event(self, topic: TopicId, payload: bytes) -> Event:
        sequence = self._sequences.get(topic, 0)
        self._sequences[topic] = sequence + 1
        return Event(self._publisher, topic, self._epoch, sequence, payload)
