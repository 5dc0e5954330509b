"""What has changed in a profile: the few proposals that differ from the last ones told, instead of all
(`messages.ProfileChange`).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from topicweave.systems.vitis.messages import Profile, ProfileChange

_CELL, _PLACE = np.dtype("<u8"), np.dtype("<u4")


def change(before: Profile, after: Profile) -> ProfileChange | None:
    """What turns one profile of a node into another; None if they are of different interests, or columns do not fit."""
    if before.descriptor.version != after.descriptor.version or len(before.proposals) != len(after.proposals):
        return None
    old, new = (np.frombuffer(profile.proposals, _CELL).reshape(3, -1) for profile in (before, after))
    places = (old != new).any(axis=0).nonzero()[0]
    return ProfileChange(
        before.number,
        after.number,
        after.chosen,
        places.astype(_PLACE).tobytes(),
        new[:, places].tobytes(),
    )


def changed(before: Profile, said: ProfileChange) -> Profile | None:
    """The profile after a change; None if the change makes no sense."""
    if len(said.places) % 4 or len(said.proposals) != 6 * len(said.places) or len(before.proposals) % 24:
        return None
    proposals = _patched(before.proposals, said.places, said.proposals)
    return Profile(before.descriptor, said.chosen, proposals, said.number) if proposals is not None else None


@lru_cache(maxsize=16)
def _patched(before: bytes, places: bytes, proposals: bytes) -> bytes | None:
    """Once for all neighbours of a node that are simulated in one process; None if there is no such place."""
    if not places:
        return before
    columns, where = np.frombuffer(before, _CELL).reshape(3, -1).copy(), np.frombuffer(places, _PLACE)
    if int(where.max()) >= columns.shape[1]:
        return None
    columns[:, where] = np.frombuffer(proposals, _CELL).reshape(3, -1)
    return columns.tobytes()
