"""A ring of homes for nodes that have no topic directory, whose ring would do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from topicweave.blocks.topic_directory.carrier import Carrier
from topicweave.blocks.topic_directory.parameters import DirectoryParameters
from topicweave.blocks.topic_directory.ring import HomesRing
from topicweave.model.ids import NodeId
from topicweave.port import Receivers, TimerKey, Timers, World

TIMER = "names-ring"
LOOKED_AT = 32
"""Peers of the node that are looked at per tick, as neighbours on the ring they may be."""


class OwnRing:
    """The ring and what is carried over it. `peers()` are those whom the node knows."""

    def __init__(
        self,
        world: World,
        node_id: NodeId,
        peers: Callable[[], Iterable[NodeId]],
        parameters: DirectoryParameters | None = None,
    ) -> None:
        self._world = world
        self.parameters = parameters or DirectoryParameters()
        self._peers = peers
        self.ring = HomesRing(
            world, node_id, self.parameters, self._sample, moved=lambda: None, lost=lambda _peer: None
        )
        self.carrier = Carrier(
            world, self.ring, self.parameters, arrived=lambda _sender, _carry: None, dead=lambda _peer: None
        )

    def receivers(self) -> Receivers:
        return {**self.ring.receivers(), **self.carrier.receivers()}

    def timers(self) -> Timers:
        return {TIMER: self._tick, **self.carrier.timers()}

    def start(self, contacts: Sequence[NodeId]) -> None:
        self.carrier.restart()
        self.ring.start(contacts)
        self._world.set_timer((TIMER,), self._world.random.random() * self.parameters.tick)

    def leave(self) -> None:
        self.carrier.flush()
        self.ring.leave()

    def lost(self, peer: NodeId) -> None:
        """The node found a peer unreachable."""
        if peer in self.ring.contacts():
            self.ring.remove(peer)

    def known_peers(self) -> set[NodeId]:
        return {*self.ring.known_peers(), *self.carrier.known_peers()}

    def _tick(self, key: TimerKey) -> None:
        self._world.set_timer(key, self.parameters.tick)
        peers = sorted(self._peers())
        if len(peers) > LOOKED_AT:
            peers = self._world.random.sample(peers, LOOKED_AT)
        self.ring.candidates(peers)
        self.ring.beat()
        self.carrier.flush()

    def _sample(self) -> NodeId | None:
        peers = sorted(self._peers())
        return self._world.random.choice(peers) if peers else None
