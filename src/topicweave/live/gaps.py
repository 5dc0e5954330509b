"""Which events were missed: noticed, asked for, and in the end announced. No I/O, no clock.

An event is missed if a later one of its publisher, topic and epoch came, or a neighbour has told of a later one (its *head*), and it did not come itself within
`patience`. Each missing number is announced once in a life of the node, as part of a range, also if there is no room to remember that it is missing. What comes after all is handed over all the same.

Numbers below the first one that was heard of a stream may be older than the subscription: those are announced as `before`, and do not count as missed.
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

Reason = Literal["before", "passed", "told", "older life"]
"""`passed`: later events came. `told`: only a neighbour says that there was one. `older life`: the publisher began anew before it came."""


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
        if watched is None:
            return  # What was missing was announced when it was dropped.
        if self._superseded(stream):
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

    def _superseded(self, stream: EventStream) -> bool:
        state = self._seen.state(stream.publisher, stream.topic)
        return state is not None and state[0] > stream.epoch

    def _look_at(self, stream: EventStream, watched: _Watched, now: float, patience: float) -> list[Missed]:
        if self._superseded(stream):
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


def _carried_over(old: list[_Piece], runs: Sequence[tuple[int, int]], now: float) -> list[_Piece]:
    """The runs that are missing now, cut where it matters since when they are known to be."""
    pieces: list[_Piece] = []
    for first, last in runs:
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
