"""Frames: how bytes on a connection are cut into pieces. See docs/wire-format.md.

A frame is a length (4 bytes, big-endian), and then so many bytes: the first is the frame's kind, the others
are its body. Whatever arrives, the splitter never holds more than one frame of the permitted size and what
one read brought.
"""

from __future__ import annotations

from enum import IntEnum

HEADER = 5
"""Bytes of a frame before its body: the length and the kind."""


class Kind(IntEnum):
    HELLO = 1
    MESSAGES = 2
    ADDRESSES = 3
    CREDENTIAL = 4
    NEED_CREDENTIAL = 5
    PING = 6
    PONG = 7
    BYE = 8
    INTERESTS = 9
    VERDICTS = 10
    ASK = 11
    REVOKED = 12
    EPOCH = 13


class ProtocolError(Exception):
    """They broke the protocol: the link is closed and the error counted; a node never sees it."""

    fault = "broke the protocol"
    """What it counts as; see `budgets`."""


class TooManyTopics(ProtocolError):
    """An honest peer may want more than this node takes. It comes back with as many, so it is banned at once."""

    fault = "told of more topics than limits.topics_per_peer"


def frame(kind: Kind, body: bytes) -> bytes:
    """
    >>> frame(Kind.PING, b"\\x07").hex(" ")
    '00 00 00 02 06 07'
    """
    return (len(body) + 1).to_bytes(4, "big") + bytes((kind,)) + body


class FrameSplitter:
    """Takes bytes as they come, gives whole frames."""

    __slots__ = ("_buffer", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        """The longest frame (kind and body) that is accepted; may change between two calls."""
        self._buffer = bytearray()

    def __len__(self) -> int:
        return len(self._buffer)

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def next(self) -> tuple[int, bytes] | None:
        """The next whole frame's kind and body, or None until more has come."""
        buffer = self._buffer
        if len(buffer) < 4:
            return None
        length = int.from_bytes(buffer[:4], "big")
        if not 1 <= length <= self.limit:
            raise ProtocolError(f"a frame of {length} bytes; 1 to {self.limit} are allowed")
        end = 4 + length
        if len(buffer) < end:
            return None
        kind, body = buffer[4], bytes(buffer[HEADER:end])
        del buffer[:end]
        return kind, body
