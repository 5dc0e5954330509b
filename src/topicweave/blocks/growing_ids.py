"""Identifiers that grow: points of a ring of which only the order matters, with always room for one more between two.

Magnet (§3.2) puts a newcomer at the mean of two neighbours' identifiers. Means of means exhaust any fixed width:
every arrival at one spot halves what is left there. So a position is a binary fraction of any length.

Rules kept
----------
1. A position is a fraction in [0, 1), as big-endian bytes without zero bytes at the end. Bytes compare as the
   fractions do.
2. A *place* is a position and the node that is there. Places are ordered by position, then node, so that two nodes that
   took the same position (a partition can do that) still have an order. Clockwise is the growing order, wrapping at 1.
3. `mean` is exact as long as that fits the bound; at the bound it is rounded, and where rounding finds nothing strictly
   between, there is *no room*: the defined step then is to respace.
4. Respacing moves nodes clockwise only, and never past the next one, so that at no moment two nodes change
   their order. It spreads the nodes after the full spot evenly over the shortest stretch that is sparse
   enough: the more nodes it holds, the sparser it must be (as in order maintenance: Itai, Konheim and Rodeh
   1981), so that long stretches are rare.
"""

from __future__ import annotations

from topicweave.model.ids import NodeId

Position = bytes
RingPlace = tuple[Position, NodeId]

MAX_BYTES = 64
"""The bound unless a system sets another: 512 bits."""

NOBODY = -1
"""The node of a place that is just a point: before all nodes at the same position."""

_SPARE = 4


def position_of(identifier: int) -> Position:
    """A 64-bit identifier (of a node or a topic) as a point of the ring.

    >>> position_of(1 << 63), position_of(0)
    (b'\\x80', b'')
    """
    return identifier.to_bytes(8, "big").rstrip(b"\0")


def is_position(value: bytes, most: int = MAX_BYTES) -> bool:
    """Whether bytes from a peer are a position as rule 1 has it."""
    return len(value) <= most and not value.endswith(b"\0")


def inside(place: RingPlace, start: RingPlace, end: RingPlace) -> bool:
    """Whether a place lies on the clockwise arc [start, end). If both are the same the arc is the whole ring."""
    if start < end:
        return start <= place < end
    return place >= start or place < end


def gap(start: Position, end: Position, width: int) -> int:
    """How far it is clockwise, in units of the last of `width` bytes; the whole ring if both are the same."""
    return (_number(end, width) - _number(start, width) - 1) % (1 << 8 * width) + 1


def mean(start: Position, end: Position, most: int = MAX_BYTES) -> Position | None:
    """The point halfway clockwise; None if there is none within the bound (rule 3).

    Of a ring with one node both are the same, and the mean is opposite to it.

    >>> mean(b"\\x10", b"\\x20"), mean(b"\\xf0", b"\\x20"), mean(b"\\x80", b"\\x80"), mean(b"\\x01", b"\\x02", most=1)
    (b'\\x18', b'\\x08', b'', None)
    """
    width = min(max(len(start), len(end)) + 1, most)
    if len(start) > width or len(end) > width:
        return None  # Made under another bound.
    half = gap(start, end, width) // 2
    return _position(_number(start, width) + half, width) if half else None


def stretch_suffices(start: Position, end: Position, nodes: int, most: int = MAX_BYTES) -> bool:
    """Whether (start, end) has enough room to space that many nodes and one more evenly (rule 4)."""
    need = (nodes + 1) << (_SPARE + nodes.bit_length())
    return gap(start, end, most) >= need


def spaced(
    start: Position, end: Position, index: int, nodes: int, now: Position, most: int = MAX_BYTES
) -> Position:
    """Where the `index`-th (from 1) of the nodes between start and end goes, which is at `now`: never back."""
    width = gap(start, end, most)
    even = width * index // (nodes + 1)
    if gap(start, now, most) >= even:
        return now
    return _position(_number(start, most) + even, most)


def respace(ring: list[Position], place: int, most: int = MAX_BYTES) -> int:
    """Make room after `ring[place]` in a whole ring of growing positions; returns how many nodes moved.

    The rule of a distributed step: each node knows its successor only, see `blocks.ring`.
    """
    count = len(ring)
    start = ring[place]
    for nodes in range(1, count):
        end = ring[(place + nodes + 1) % count]
        if stretch_suffices(start, end, nodes, most):
            break
    else:
        raise ValueError(f"{count} nodes are too many for positions of {most} bytes")
    moved = 0
    for index in range(nodes, 0, -1):
        at = (place + index) % count
        new = spaced(start, end, index, nodes, ring[at], most)
        moved += new != ring[at]
        ring[at] = new
    return moved


def _number(position: Position, width: int) -> int:
    return int.from_bytes(position[:width].ljust(width, b"\0"), "big")


def _position(number: int, width: int) -> Position:
    return (number % (1 << 8 * width)).to_bytes(width, "big").rstrip(b"\0")
