"""Frames in a file, a line of JSON each, and played again."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from topicweave.errors import BadInput
from topicweave.live.dashboard.picture import KEPT_LINES, KEPT_SECONDS
from topicweave.live.dashboard.showing import Show
from topicweave.live.dashboard.words import Figures, Frame, Line, NodeKey, NodeState, TopicKey

_encode = msgspec.json.Encoder().encode
_frame = msgspec.json.Decoder(Frame).decode
LONGEST_PAUSE = 1.0
"""Seconds between two frames, whatever the recording says."""


class FrameFile:
    """Written while it is open. The first frame holds everything."""

    def __init__(self, file: Path, first: Frame) -> None:
        try:
            self._file: IO[bytes] = file.open("wb")
        except OSError as error:
            raise BadInput(f"{file}: {error.strerror}") from None
        self.add(first)

    def add(self, frame: Frame) -> None:
        self._file.write(_encode(frame) + b"\n")

    def __enter__(self) -> FrameFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def recorded_frames(file: Path) -> Iterator[Frame]:
    """One after another; a last line that was cut off is left out."""
    number = 0
    try:
        with file.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.endswith(b"\n"):
                    break
                try:
                    frame = _frame(line)
                except msgspec.DecodeError as error:
                    raise BadInput(f"{file}:{number}: no frame of a recording ({error})") from None
                if number == 1 and not frame.whole:
                    break
                yield frame
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror}") from None
    if number < 2:
        raise BadInput(f"{file}: no recording; `topicweave swarm --dashboard --record FILE` makes one")


class Replayed:
    """What a recording has told so far."""

    def __init__(self) -> None:
        self._time, self._title = 0.0, ""
        self._nodes: dict[NodeKey, NodeState] = {}
        self._topics: dict[TopicKey, str] = {}
        self._series: deque[Figures] = deque(maxlen=KEPT_SECONDS)
        self._log: deque[Line] = deque(maxlen=KEPT_LINES)

    def take(self, frame: Frame) -> None:
        if frame.whole:
            self._nodes, self._topics = {}, {}
            self._series.clear()
            self._log.clear()
            self._title = f"{frame.title} (recorded)"
        self._time = frame.time
        for node in frame.nodes:
            self._nodes[node.id] = node
        self._topics.update(frame.topics)
        self._series.extend(frame.figures)
        self._log.extend(frame.log)

    def whole(self) -> Frame:
        return Frame(
            self._time,
            True,
            self._title,
            nodes=list(self._nodes.values()),
            topics=self._topics,
            figures=list(self._series),
            log=list(self._log),
        )


async def play(file: Path, show: Show, replayed: Replayed) -> None:
    """Over and over, at the pace at which it was recorded."""
    while True:
        last: float | None = None
        for frame in recorded_frames(file):
            if last is not None:
                await asyncio.sleep(min(max(frame.time - last, 0.001), LONGEST_PAUSE))
            last = frame.time
            replayed.take(frame)
            show.tell(replayed.whole() if frame.whole else frame)
        await asyncio.sleep(LONGEST_PAUSE)
