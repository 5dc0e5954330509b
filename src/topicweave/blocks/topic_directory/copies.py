"""Whether a home and those who keep its records have the same: told in a few bytes, however many they are.

Rules kept
----------
1. A home does not tell its keepers who renewed. It tells them, once in a while, a mark of each slice of its records:
   a sum over all of them of whose record of which topic it is, how long it lasts, and which part it names.
2. A keeper that has the same in a slice keeps it for another of its subscribers' terms. It asks for the slices
   that differ, and gets them as a whole. In these it does not count any more what the home does not send.
3. A keeper goes by what it has from the home. What subscribers said to the keeper itself it keeps, too, until it
   ends, but does not count it.
"""

from __future__ import annotations

from collections.abc import Iterable

from topicweave.blocks.topic_directory.messages import SLICES
from topicweave.model.ids import RING_SIZE, NodeId, TopicId

SLACK = 30.0
"""Seconds for which a kept record outlives the term within which its subscriber speaks to a new home: what it says
may wait on its way.
"""


def slice_of(topic: TopicId) -> int:
    return topic % SLICES


def mark_of(
    topic: TopicId, subscriber: NodeId, epoch: int, term: int, label: NodeId | None, leads: bool
) -> int:
    """A number of 32 bits for one record. The sum of those of two is another one if they swap something.

    >>> one, other = mark_of(1, 2, 0, 60, None, False), mark_of(3, 4, 0, 60, None, False)
    >>> one + other == mark_of(1, 4, 0, 60, None, False) + mark_of(3, 2, 0, 60, None, False)
    False
    """
    mixed = (
        topic * 0x9E3779B97F4A7C15
        + subscriber * 0xC2B2AE3D27D4EB4F
        + (epoch << 16 ^ term) * 0x165667B19E3779F9
    )
    mixed = (mixed + (0 if label is None else label ^ 0x27D4EB2F165667C5) + leads) % RING_SIZE
    mixed = (mixed ^ mixed >> 32) * 0xD6E8FEB86659FD93 % RING_SIZE
    return (mixed ^ mixed >> 29) >> 32


def marks(sums: Iterable[int]) -> bytes:
    """Of all slices.

    >>> marks([1, 2**32 + 2]).hex()
    '0000000100000002'
    """
    return b"".join((one % (1 << 32)).to_bytes(4, "big") for one in sums)


def differing(ours: bytes, theirs: bytes) -> bytes:
    """The slices of which two have different marks.

    >>> list(differing(marks([1, 2, 3]), marks([1, 5, 4])))
    [1, 2]
    """
    return bytes(
        number
        for number in range(len(theirs) // 4)
        if ours[4 * number : 4 * number + 4] != theirs[4 * number : 4 * number + 4]
    )
