"""What waits to be sent to one peer: bounded in bytes, gossip ahead of events.

Gossip (messages that carry no event) is little and urgent: heartbeats that wait behind thousands of events
would let a live node be taken for dead. So it has a lane of its own, which goes first. Each lane keeps its
order.

The policy, when a message does not fit, into the queue or into the node's `memory`:
1. The oldest gossip goes, down to three quarters of the bound.
2. If events alone fill the queue, the new message is refused, and the caller is told: a publisher sees it in
   its receipt, and the counters tell of every one. Events already queued are never dropped for newer ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from topicweave.live.counters import Counters
from topicweave.live.memory import Memory

PAGE = 64 * 1024
"""Bytes of the account of memory that a queue takes at a time."""


class Outbox:
    """Encoded messages in two lanes."""

    __slots__ = ("_counters", "_events", "_gossip", "_limit", "_memory", "_reserved", "size")

    def __init__(self, limit: int, counters: Counters, memory: Memory | None = None) -> None:
        self._limit = limit
        self._memory = memory or Memory()
        self._reserved = 0
        self._counters = counters
        self._events: list[bytes] = []
        self._gossip: list[bytes] = []
        self.size = 0

    def __len__(self) -> int:
        return len(self._gossip) + len(self._events)

    def put(self, message: bytes, carries_event: bool) -> bool:
        """Whether the message was taken."""
        size = self.size + len(message)
        if size > self._reserved and not self._reserve(size):
            self._drop_gossip(len(message))
            size = self.size + len(message)
            if size > self._reserved and not self._reserve(size):
                if carries_event:
                    self._counters.events_dropped += 1
                else:
                    self._counters.gossip_dropped += 1
                return False
        if carries_event:
            self._events.append(message)
        else:
            self._gossip.append(message)
        self.size = size
        return True

    def put_events(self, messages: Sequence[bytes], size: int) -> bool:
        """Whether there was room for all of them, `size` bytes together, without dropping anything; else none
        was taken.
        """
        size += self.size
        if size > self._reserved and not self._reserve(size):
            return False
        self._events.extend(messages)
        self.size = size
        return True

    def take(self, limit: int) -> list[bytes]:
        """The next messages, of about `limit` bytes together, at least one."""
        if self.size <= limit:
            taken = self._gossip + self._events
            self._empty()
            return taken
        taken, size = [], 0
        for lane in (self._gossip, self._events):
            count = 0
            for message in lane:
                if taken and size + len(message) > limit:
                    break
                taken.append(message)
                size += len(message)
                count += 1
            del lane[:count]
        self.size -= size
        spare = (self._reserved - self.size) // PAGE * PAGE
        self._reserved -= spare
        self._memory.give("queues", spare)
        return taken

    def clear(self) -> None:
        """The peer is unreachable: nothing that waits will be sent."""
        self._counters.events_dropped += len(self._events)
        self._counters.gossip_dropped += len(self._gossip)
        self._empty()

    def _empty(self) -> None:
        self._gossip, self._events, self.size = [], [], 0
        self._memory.give("queues", self._reserved)
        self._reserved = 0

    def _reserve(self, size: int) -> bool:
        """Whether so many bytes may wait."""
        if size > self._limit:
            return False
        more = min(self._limit, -(-size // PAGE) * PAGE) - self._reserved
        if not self._memory.take("queues", more):
            return False
        self._reserved += more
        return True

    def _drop_gossip(self, room: int) -> None:
        bound = self._limit if self.size + room > self._limit else self._reserved
        aim = max(0, min(bound * 3 // 4, bound - room))
        count = 0
        while self.size > aim and count < len(self._gossip):
            self.size -= len(self._gossip[count])
            count += 1
        del self._gossip[:count]
        self._counters.gossip_dropped += count
