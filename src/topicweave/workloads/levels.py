"""What patterns of hierarchical names want: whole zones, and one device of every zone.

No paper's model, but what `zone/7/#` and `zone/+/device/3/#` of sensors come to when all their topics are
subscribed to. Topic `t` is that of zone `t % zones` and device `t // zones`: the run kind `patterns` names it
so.
"""

from __future__ import annotations

import numpy as np

from topicweave.errors import BadInput
from topicweave.model.arrays import IntArray
from topicweave.workloads.distinct import distinct_choices

_ZONES, _DEVICES = 71, 72  # streams of random numbers of this module's own
_CHUNK = 1 << 12


def leveled_lists(
    first: int, last: int, zones: int, devices: int, whole: int, across: int, seed: int
) -> tuple[IntArray, IntArray]:
    """The lists of a range of nodes: all of `whole` zones, and `across` devices of all zones.

    >>> nodes, topics = leveled_lists(0, 1, zones=3, devices=2, whole=1, across=1, seed=0)
    >>> topics.tolist()
    [0, 1, 2, 4]
    """
    if not (0 <= whole <= zones and 0 <= across <= devices and whole + across > 0):
        raise BadInput(
            f"{whole} of {zones} zones and {across} of {devices} devices: impossible; choose no more than there are, and at least one pattern per node"
        )
    parts = [
        _chunk(
            np.arange(start, min(start + _CHUNK, last), dtype=np.int64), zones, devices, whole, across, seed
        )
        for start in range(first, max(last, first + 1), _CHUNK)
    ]
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _chunk(
    rows: IntArray, zones: int, devices: int, whole: int, across: int, seed: int
) -> tuple[IntArray, IntArray]:
    wanted = np.zeros((len(rows), devices, zones), np.bool_)
    places = np.arange(len(rows))[:, np.newaxis]
    if whole:
        wanted[places, :, distinct_choices(seed, _ZONES, rows, zones, whole)] = True
    if across:
        wanted[places, distinct_choices(seed, _DEVICES, rows, devices, across), :] = True
    node, topic = np.nonzero(wanted.reshape(len(rows), devices * zones))
    return rows[node], topic.astype(np.int64)
