"""Signs of life on a ring: when each peer was heard, and which peers are in doubt.

A peer that is silent for too long counts as dead, and hearsay about it is ignored for a while. But a cut
network looks just the same. So for that while the node asks the peer now and then, and an answer ends the
doubt. A peer that said goodbye is not asked.
"""

from __future__ import annotations

import msgspec

from topicweave.model.ids import NodeId


class Doubt(msgspec.Struct):
    until: float
    stamp: int
    """Of the last place known: only later news speaks for it."""
    ask: bool


class SignsOfLife:
    """Of the peers that are watched."""

    def __init__(self, suspect_after: float, doubt: float, now: float) -> None:
        self._suspect_after = suspect_after
        self._doubt = doubt
        self._looked = now
        self.heard: dict[NodeId, float] = {}
        self.doubts: dict[NodeId, Doubt] = {}

    def restart(self, now: float) -> None:
        """Timers and time were lost with the last life: everybody gets a new term."""
        self._looked = now
        self.heard = dict.fromkeys(self.heard, now)

    def watch(self, peer: NodeId, now: float) -> None:
        self.heard.setdefault(peer, now)

    def unwatch(self, peer: NodeId) -> None:
        self.heard.pop(peer, None)

    def hear(self, peer: NodeId, now: float) -> None:
        """Somebody spoke, who need not be watched."""
        self.doubts.pop(peer, None)
        if peer in self.heard:
            self.heard[peer] = now

    def met(self, peer: NodeId, now: float) -> None:
        """Some part of a watched peer spoke; where it is on the ring, that does not say."""
        if peer in self.heard:
            self.heard[peer] = now

    def silent(self, now: float) -> list[NodeId]:
        """Who has been silent for too long; nobody, if this node slept and could not have heard anybody."""
        if now - self._looked > self._suspect_after:
            self.restart(now)
        self._looked = now
        deadline = now - self._suspect_after
        return [peer for peer, heard in self.heard.items() if heard < deadline]

    def late(self, now: float, after: float) -> list[NodeId]:
        """Who should have been heard by now."""
        deadline = now - after
        return [peer for peer, heard in self.heard.items() if heard < deadline]

    def doubt(self, peer: NodeId, stamp: int, ask: bool, now: float) -> None:
        self.doubts[peer] = Doubt(now + self._doubt, stamp, ask)

    def credible(self, peer: NodeId, stamp: int) -> bool:
        """Whether hearsay about somebody is to be believed."""
        doubt = self.doubts.get(peer)
        return doubt is None or doubt.stamp < stamp

    def forget_old_doubts(self, now: float) -> None:
        for peer in [peer for peer, doubt in self.doubts.items() if doubt.until <= now]:
            del self.doubts[peer]
