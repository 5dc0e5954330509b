"""Which events were missed: noticed, asked for, and in the end announced. No I/O, no clock.

An event is missed if a later one of its publisher, topic and epoch came, or a neighbour has told of a later one (its *head*), and it did not come itself within
`patience`. Each missing number is announced once, as part of a range. What comes after all is handed over all the same.

Numbers below the first one that was heard of a stream may be older than the subscription: those are announced as `before`, and do not count as missed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

from topicweave.model.ids import NodeId, TopicId

MOST_STREAMS = 16_384
MOST_PIECES = 64

Reason = Literal["before", "passed", "told", "older life"]
"""`passed`: later events came. `told`: only a neighbour says that there was one. `older life`: the publisher began anew before it came."""


class Stream(NamedTuple):
    publisher: NodeId
    topic: TopicId
    epoch: int


class Missed(NamedTuple):
    stream: Stream
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


Unseen = Callable[[NodeId, TopicId, int, int, int], list[tuple[int, int]]]
"""Which numbers of a stream, of a range, have not come: `SeenEvents.unseen`."""


class GapWatch:
    def __init__(self, unseen: Unseen, highest: Callable[[NodeId, TopicId, int], int]) -> None:
        self._unseen = unseen
        self._highest = highest
        self._streams: OrderedDict[Stream, _Watched] = OrderedDict()
        self._open: set[Stream] = set()

    def __len__(self) -> int:
        return len(self._open)

    def base(self, stream: Stream) -> int:
        watched = self._streams.get(stream)
        return watched.base if watched is not None else 0

    def begins(self, stream: Stream, base: int) -> None:
        """The first event of a stream came: numbers from `base` on count as missed if they do not come."""
        if stream not in self._streams:
            self._watched(stream, base)
            self._open.add(stream)

    def arrived(self, stream: Stream) -> None:
        """Something of a stream with gaps came."""
        self._open.add(stream)

    def told(self, stream: Stream, head: int, known: bool) -> None:
        """A neighbour says how far a stream goes. `known`: whether events of the publisher on the topic came before."""
        watched = self._streams.get(stream)
        if watched is None:
            watched = self._watched(stream, 0 if known else head)
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
        found: list[Missed] = []
        for stream in list(self._open):
            watched = self._streams.get(stream)
            if watched is None:
                self._open.discard(stream)
            else:
                found += self._look_at(stream, watched, now, patience)
                if all(piece.announced for piece in watched.pieces):
                    self._open.discard(stream)
        return found

    def missing(self, most: int, noticed_before: float) -> list[tuple[Stream, int, int]]:
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

    def _watched(self, stream: Stream, base: int) -> _Watched:
        watched = self._streams[stream] = _Watched(base)
        if len(self._streams) > MOST_STREAMS:
            oldest, _ = self._streams.popitem(last=False)
            self._open.discard(oldest)
        return watched

    def _look_at(self, stream: Stream, watched: _Watched, now: float, patience: float) -> Iterable[Missed]:
        highest = self._highest(*stream)
        top = max(highest, watched.head)
        pieces = _carried_over(watched.pieces, self._unseen(*stream, 0, top), now)
        if highest < 0 and not pieces and watched.pieces:
            # Nothing of this epoch counts as unseen any more: a later one began.
            lost = [piece for piece in watched.pieces if not piece.announced]
            watched.pieces = []
            return [Missed(stream, piece.first, piece.last, "older life") for piece in lost]
        found: list[Missed] = []
        kept = []
        for piece in pieces[:MOST_PIECES]:
            due = not piece.announced and now - piece.since >= patience
            kept.append(piece._replace(announced=piece.announced or due))
            if due:
                found += _in_words(stream, piece, watched.base, highest)
        watched.pieces = kept
        return found


def _in_words(stream: Stream, piece: _Piece, base: int, highest: int) -> Iterable[Missed]:
    first, last = piece.first, piece.last
    if first < base:
        yield Missed(stream, first, min(last, base - 1), "before")
        first = base
    if first <= min(last, highest):
        yield Missed(stream, first, min(last, highest), "passed")
        first = highest + 1
    if first <= last:
        yield Missed(stream, first, last, "told")


def _carried_over(old: list[_Piece], runs: list[tuple[int, int]], now: float) -> list[_Piece]:
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
