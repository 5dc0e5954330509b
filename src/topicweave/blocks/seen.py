"""Which events were seen already, in bounded memory.

Rule kept: an event for which `first_time` was once true never gives true again, as long as its stream is
remembered. A stream is one publisher on one topic. Per stream a window over the last sequence numbers is kept;
whatever is older than the window counts as seen, so an event may be dropped that was held up very long, but
none is taken twice. An older epoch of a publisher counts as seen, too. Beyond `streams` streams the longest
unused is forgotten.
"""

from __future__ import annotations

from collections import OrderedDict

from topicweave.model.event import EventId
from topicweave.model.ids import NodeId, TopicId

WINDOW = 1024


class SeenEvents:
    """Sliding windows of sequence numbers.

    >>> seen = SeenEvents()
    >>> event = EventId(publisher=1, topic=2, epoch=0, sequence=5)
    >>> seen.first_time(event), seen.first_time(event), seen.first_time(event._replace(sequence=4))
    (True, False, True)
    """

    def __init__(self, streams: int = 65536) -> None:
        self._limit = streams
        # (publisher, topic) -> [epoch, highest sequence, bits: bit i set when highest - i was seen]
        self._streams: OrderedDict[tuple[NodeId, TopicId], list[int]] = OrderedDict()

    def first_time(self, event: EventId) -> bool:
        """Whether the event is new; from now on it is not."""
        stream = (event.publisher, event.topic)
        state = self._streams.get(stream)
        if state is None or event.epoch > state[0]:
            self._put(stream, [event.epoch, event.sequence, 1])
            return True
        self._streams.move_to_end(stream)
        epoch, highest, bits = state
        if event.epoch < epoch or event.sequence <= highest - WINDOW:
            return False
        if event.sequence > highest:
            ahead = event.sequence - highest
            state[1] = event.sequence
            state[2] = ((bits << ahead) & ((1 << WINDOW) - 1)) | 1 if ahead < WINDOW else 1
            return True
        bit = 1 << (highest - event.sequence)
        state[2] |= bit
        return not bits & bit

    def __contains__(self, event: EventId) -> bool:
        """Whether the event counts as seen, without marking it."""
        state = self._streams.get((event.publisher, event.topic))
        if state is None:
            return False
        epoch, highest, bits = state
        if event.epoch != epoch:
            return event.epoch < epoch
        if event.sequence > highest:
            return False
        return event.sequence <= highest - WINDOW or bool(bits >> (highest - event.sequence) & 1)

    def state(self, publisher: NodeId, topic: TopicId) -> tuple[int, int, int] | None:
        """Epoch, highest sequence and bits of one stream: what `restore` takes in a later life."""
        state = self._streams.get((publisher, topic))
        return None if state is None else (state[0], state[1], state[2])

    def restore(self, publisher: NodeId, topic: TopicId, state: tuple[int, int, int]) -> None:
        """Remember a stream as an earlier life knew it."""
        self._put((publisher, topic), list(state))

    def __len__(self) -> int:
        return len(self._streams)

    def _put(self, stream: tuple[NodeId, TopicId], state: list[int]) -> None:
        self._streams[stream] = state
        self._streams.move_to_end(stream)
        if len(self._streams) > self._limit:
            self._streams.popitem(last=False)
