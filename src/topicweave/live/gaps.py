"""Missed events: the node notices them, asks for them, and in the end announces them. No I/O, no clock.

An event is missed if a later one of its publisher, topic and epoch came, or a neighbour told of a later one
(its *head*), and it did not come itself within `patience`. Each missing number is announced once in a life of
the node, as part of a range, even if there is no room to remember that it is missing. If a missed event comes
after all, the application gets it.

When a publisher's epoch ends here, because a later one was seen, the node remembers how far the epoch came,
for the last few epochs. So neighbours can tell it, and it can tell them, that there was more.

Numbers below the first one that was heard of a stream may be older than the subscription. They are announced
as `before` and do not count as missed.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from topicweave.blocks.seen import Gaps, Numbered, SeenEvents
from topicweave.model.ids import NodeId, TopicId

MOST_STREAMS = 16_384
"""Of one more, what is missing of the oldest is announced at once."""

MOST_ENDED = 4
"""Epochs of a publisher on a topic."""

Reason = Literal["before", "passed", "told", "older life"]
"""`passed`: later events came. `told`: only a neighbour says that there was one. `older life`: the publisher
began anew before it came.
"""


class EventStream(NamedTuple):
    publisher: NodeId
    topic: TopicId
    epoch: int


class Missed(NamedTuple):
    stream: EventStream
    first: int
    last: int
    reason: Reason


class _Piece(NamedTuple):
    first: int
    last: int
    since: float
    announced: bool


class _Watched:
    __slots__ = ("base", "head", "pieces")

    def __init__(self, base: int) -> None:
        self.base = base
        self.head = -1
        self.pieces: list[_Piece] = []


class GapWatch:
    """Looks at what `seen` has not seen, and is told by it what it forgets."""

    def __init__(self, seen: SeenEvents) -> None:
        self._seen = seen
        seen.on_forgotten = self._forgotten
        self._streams: OrderedDict[EventStream, _Watched] = OrderedDict()
        self._open: set[EventStream] = set()
        """Those with something to announce, perhaps; all of them are watched."""
        self._due: list[Missed] = []
        # (publisher, topic) -> ended epoch -> the highest number, and whether any of it was seen here.
        self._ended: OrderedDict[tuple[NodeId, TopicId], dict[int, tuple[int, bool]]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def base(self, stream: EventStream) -> int:
        watched = self._streams.get(stream)
        return watched.base if watched is not None else 0

    def begins(self, stream: EventStream, base: int) -> None:
        """Numbers of a stream from `base` on count as missed if they do not come."""
        if stream not in self._streams:
            self._watch(stream, base)
        self._open.add(stream)

    def came(self, event: Numbered, before: int, heard: bool) -> None:
        """An event that does not follow `before`, the highest number of its stream until then (-1: it is the first).

        `heard`: whether events of its publisher on its topic came earlier."""
        stream = EventStream(event.publisher, event.topic, event.epoch)
        self.begins(stream, event.sequence if before < 0 and not heard else before + 1)

    def told(self, stream: EventStream, head: int, known: bool) -> None:
        """A neighbour says how far a stream goes. `known`: whether events of the publisher on the topic came before."""
        if self.superseded(stream):
            self._told_ended(stream, head)
            return
        watched = self._streams.get(stream)
        if watched is None:
            highest = self._seen.highest(*stream)
            watched = self._watch(stream, highest + 1 if known or highest >= 0 else head)
        if head > watched.head:
            watched.head = head
            self._open.add(stream)

    def forget(self, topic: TopicId) -> None:
        """The topic is not wanted any more."""
        for stream in [stream for stream in self._streams if stream.topic == topic]:
            del self._streams[stream]
            self._open.discard(stream)
        for ended in [ended for ended in self._ended if ended[1] == topic]:
            del self._ended[ended]

    def ended(self, publisher: NodeId, topic: TopicId) -> dict[int, int]:
        """How far a publisher's last epochs before the current one went, as far as anybody told."""
        return {epoch: head for epoch, (head, _) in self._ended.get((publisher, topic), {}).items()}

    def look(self, now: float, patience: float) -> list[Missed]:
        """What is to be announced now."""
        found, self._due = self._due, []
        for stream in list(self._open):
            watched = self._streams[stream]
            found += self._look_at(stream, watched, now, patience)
            if all(piece.announced for piece in watched.pieces):
                self._open.discard(stream)
        return found

    def missing(self, most: int, noticed_before: float) -> list[tuple[EventStream, int, int]]:
        """What to ask neighbours for: noticed, but not just now (it may be under way), and not yet given up."""
        wanted = [
            (stream, max(piece.first, self._streams[stream].base), piece.last)
            for stream in self._open
            for piece in self._streams[stream].pieces
            if not piece.announced
            and piece.since <= noticed_before
            and piece.last >= self._streams[stream].base
        ]
        return wanted[:most]

    def _watch(self, stream: EventStream, base: int) -> _Watched:
        watched = self._streams[stream] = _Watched(base)
        if len(self._streams) > MOST_STREAMS:
            oldest, _ = next(iter(self._streams.items()))
            self._due += self._look_at(oldest, self._streams[oldest], 0.0, -math.inf)
            del self._streams[oldest]
            self._open.discard(oldest)
        return watched

    def _forgotten(self, publisher: NodeId, topic: TopicId, epoch: int, highest: int, gaps: Gaps) -> None:
        """These count as seen from now on, whether or not they came: announce them while they are known."""
        stream = EventStream(publisher, topic, epoch)
        watched = self._streams.get(stream)
        superseded = self.superseded(stream)
        if superseded:
            self._note_ended(stream, max(highest, watched.head if watched is not None else -1), True)
        if watched is None:
            return  # What was missing was announced when it was dropped.
        if superseded:
            told = [(highest + 1, watched.head)] if watched.head > highest else []
            watched.pieces = _carried_over(watched.pieces, [*gaps, *told], 0.0)
            self._open.add(stream)
            return
        for piece in _carried_over(watched.pieces, gaps, 0.0):
            if not piece.announced:
                self._due += _in_words(stream, piece, watched.base, highest)
        if self._seen.highest(*stream) < 0:
            del self._streams[stream]
            self._open.discard(stream)

    def _note_ended(self, stream: EventStream, head: int, seen: bool) -> None:
        key = (stream.publisher, stream.topic)
        epochs = {**self._ended.pop(key, {}), stream.epoch: (head, seen)}
        self._ended[key] = {epoch: epochs[epoch] for epoch in sorted(epochs)[-MOST_ENDED:]}
        if len(self._ended) > MOST_STREAMS:
            self._ended.popitem(last=False)

    def _told_ended(self, stream: EventStream, head: int) -> None:
        """What did not come of an ended epoch will not. One that nothing is known of counts as missed if an
        earlier one was seen.
        """
        epochs = self._ended.get((stream.publisher, stream.topic), {})
        had, seen = epochs.get(
            stream.epoch, (-1, any(ours for epoch, (_, ours) in epochs.items() if epoch < stream.epoch))
        )
        forgotten = len(epochs) == MOST_ENDED and stream.epoch < min(epochs)
        if head > had and not forgotten:
            if seen:
                self._due.append(Missed(stream, had + 1, head, "older life"))
            self._note_ended(stream, head, seen)

    def superseded(self, stream: EventStream) -> bool:
        """Whether a later epoch of the publisher was seen on the topic."""
        state = self._seen.state(stream.publisher, stream.topic)
        return state is not None and state[0] > stream.epoch

    def _look_at(self, stream: EventStream, watched: _Watched, now: float, patience: float) -> list[Missed]:
        if self.superseded(stream):
            lost = [piece for piece in watched.pieces if not piece.announced]
            watched.pieces, watched.head = [], -1
            return [Missed(stream, piece.first, piece.last, "older life") for piece in lost]
        highest = self._seen.highest(*stream)
        unseen = self._seen.unseen(*stream, 0, max(highest, watched.head))
        found: list[Missed] = []
        kept: list[_Piece] = []
        for piece in _carried_over(watched.pieces, unseen, now):
            if not piece.announced and now - piece.since >= patience:
                found += _in_words(stream, piece, watched.base, highest)
                piece = piece._replace(announced=True)
            last = kept[-1] if kept else None
            if last is not None and last.announced and piece.announced and last.last + 1 == piece.first:
                kept[-1] = last._replace(last=piece.last)
            else:
                kept.append(piece)
        watched.pieces = kept
        return found


def _in_words(stream: EventStream, piece: _Piece, base: int, highest: int) -> Iterable[Missed]:
    first, last = piece.first, piece.last
    if first < base:
        yield Missed(stream, first, min(last, base - 1), "before")
        first = base
    if first <= min(last, highest):
        yield Missed(stream, first, min(last, highest), "passed")
        first = highest + 1
    if first <= last:
        yield Missed(stream, first, last, "told")


def _carried_over(old: list[_Piece], ranges: Sequence[tuple[int, int]], now: float) -> list[_Piece]:
    """The ranges that are missing now, cut where it matters since when they are known to be."""
    pieces: list[_Piece] = []
    for first, last in ranges:
        at = first
        for piece in old:
            if piece.last < at or piece.first > last:
                continue
            if piece.first > at:
                pieces.append(_Piece(at, piece.first - 1, now, False))
            start, end = max(at, piece.first), min(last, piece.last)
            pieces.append(_Piece(start, end, piece.since, piece.announced))
            at = end + 1
        if at <= last:
            pieces.append(_Piece(at, last, now, False))
    return pieces
