"""Failure detection by heartbeats: when to beat, and whom to suspect.

Rules kept
----------
1. The block sends nothing itself. The system makes the heartbeat, since it has state to put on it (Vitis its
   profile, Alg. 6), and tells the block whom it `heard`: any message is a sign
   of life, not only a heartbeat.
2. A watched peer not heard of for longer than `timeout` is suspected at the next look, once, and is not watched
   any more. Without `ask` a look is a beat. So the silent are suspected between `timeout` and `timeout + period`
   seconds after their last word, and whoever speaks at least every `timeout` seconds never is.
3. With `ask` there are `LOOKS` looks per period, and whoever is a look late with its beat is asked for a sign
   of life at each of them. So beats may be few: a lost one is asked for before its sender is suspected, and
   the dead are found no later.
4. One timer serves all peers, and there is none while nobody is watched. Its first delay is random, so nodes
   that start together do not beat together.
5. A node that did not get its own timer for longer than `timeout` (it slept, or was stopped) could not have
   heard anybody: it suspects itself, not its peers, and gives all of them a new term.
"""

from __future__ import annotations

from collections.abc import Callable

from topicweave.model.ids import NodeId
from topicweave.port import Receivers, TimerKey, Timers, World

LOOKS = 4


class FailureDetector:
    """`beat` gets the list of watched peers once per period; `suspect` one peer that fell silent; `ask` those
    that are late, if given.

    All may watch and unwatch. A node with two detectors gives them different names.
    """

    def __init__(
        self,
        world: World,
        period: float,
        timeout: float,
        beat: Callable[[list[NodeId]], None],
        suspect: Callable[[NodeId], None],
        name: str = "heartbeat",
        ask: Callable[[list[NodeId]], None] | None = None,
    ) -> None:
        if not 0 < period < timeout:
            raise ValueError(f"need 0 < period < timeout, got period {period} and timeout {timeout}")
        self.world = world
        self.period = period
        self.timeout = timeout
        self._beat = beat
        self._suspect = suspect
        self._ask = ask
        self._pause = period if ask is None else period / LOOKS
        self._looks = 0
        self._key: TimerKey = (name,)
        self._heard: dict[NodeId, float] = {}
        self._ticked = world.now

    @property
    def watched(self) -> list[NodeId]:
        return list(self._heard)

    def __contains__(self, peer: NodeId) -> bool:
        return peer in self._heard

    def start(self) -> None:
        """Go on after a restart that kept the memory: everybody watched gets a new term."""
        if self._heard:
            self._begin()

    def watch(self, peer: NodeId) -> None:
        """Expect signs of life from now on; nothing changes for a peer that is watched already."""
        if not self._heard:
            self._heard[peer] = self.world.now
            self._begin()
        elif peer not in self._heard:
            self._heard[peer] = self.world.now

    def unwatch(self, peer: NodeId) -> None:
        if self._heard.pop(peer, None) is not None and not self._heard:
            self.world.cancel_timer(self._key)

    def heard(self, peer: NodeId) -> None:
        """A sign of life; of no interest if the peer is not watched."""
        if peer in self._heard:
            self._heard[peer] = self.world.now

    def receivers(self) -> Receivers:
        return {}

    def timers(self) -> Timers:
        return {self._key[0]: self._tick}

    def _begin(self) -> None:
        self._new_term()
        self.world.set_timer(self._key, self.world.random.uniform(0.0, self.period))

    def _new_term(self) -> None:
        self._looks = 0
        self._ticked = self.world.now
        self._heard = dict.fromkeys(self._heard, self.world.now)

    def _tick(self, _key: TimerKey) -> None:
        now = self.world.now
        if now - self._ticked > self.timeout:
            self._new_term()
        self._ticked = now
        deadline, longest_ago = now - self.timeout, min(self._heard.values(), default=now)
        if longest_ago < deadline:
            self._suspect_all(deadline)
        if not self._heard:
            return
        self.world.set_timer(self._key, self._pause)
        if self._ask is None or self._looks % LOOKS == 0:
            self._beat(list(self._heard))
        self._looks += 1
        due = now - self.period - self._pause
        if self._ask is not None and longest_ago < due:
            late = [peer for peer, heard in self._heard.items() if heard < due]
            if late:
                self._ask(late)

    def _suspect_all(self, deadline: float) -> None:
        for peer in [peer for peer, heard in self._heard.items() if heard < deadline]:
            if self._heard.get(peer, deadline) < deadline:  # not unwatched while we told of another one
                del self._heard[peer]
                self._suspect(peer)
