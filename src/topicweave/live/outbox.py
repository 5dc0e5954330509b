"""What waits to be sent to one peer: bounded in bytes.

The policy, when a message does not fit:
1. The oldest gossip (messages that carry no event) goes, down to three quarters of the bound, so that the search is
   not repeated for each message.
2. If events alone fill the queue, the new message is refused, and the caller is told: a publisher sees it in its receipt, and the
   counters tell of every one. Events already queued are never dropped for newer ones.
"""

from __future__ import annotations

from collections import deque

from topicweave.live.counters import Counters


class Outbox:
    """Encoded messages in order."""

    __slots__ = ("_counters", "_limit", "_queue", "size")

    def __init__(self, limit: int, counters: Counters) -> None:
        self._limit = limit
        self._counters = counters
        self._queue: deque[tuple[bytes, bool]] = deque()
        self.size = 0

    def __len__(self) -> int:
        return len(self._queue)

    def put(self, message: bytes, carries_event: bool) -> bool:
        """Whether the message was taken."""
        if self.size + len(message) > self._limit:
            self._drop_gossip(len(message))
            if self.size + len(message) > self._limit:
                self._refuse(carries_event)
                return False
        self._queue.append((message, carries_event))
        self.size += len(message)
        return True

    def take(self, limit: int) -> list[bytes]:
        """The oldest messages, of about `limit` bytes together, at least one."""
        queue, size = self._queue, 0
        taken: list[bytes] = []
        while queue and (not taken or size + len(queue[0][0]) <= limit):
            message, _ = queue.popleft()
            taken.append(message)
            size += len(message)
        self.size -= size
        return taken

    def clear(self) -> None:
        """The peer is unreachable: nothing that waits will be sent."""
        for _, carries_event in self._queue:
            self._refuse(carries_event)
        self._queue.clear()
        self.size = 0

    def _refuse(self, carries_event: bool) -> None:
        if carries_event:
            self._counters.events_dropped += 1
        else:
            self._counters.gossip_dropped += 1

    def _drop_gossip(self, room: int) -> None:
        aim = max(0, min(self._limit * 3 // 4, self._limit - room))
        kept: deque[tuple[bytes, bool]] = deque()
        for message, carries_event in self._queue:
            if self.size > aim and not carries_event:
                self.size -= len(message)
                self._counters.gossip_dropped += 1
            else:
                kept.append((message, carries_event))
        self._queue = kept
