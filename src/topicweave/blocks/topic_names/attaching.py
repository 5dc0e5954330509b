"""The name directory for any node, whatever its system."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from topicweave.blocks.directory_view import DirectoryView
from topicweave.blocks.topic_directory.messages import Beat, Carry, Found, Got, Look, Release
from topicweave.blocks.topic_names.directory import NameDirectory
from topicweave.blocks.topic_names.own_ring import OwnRing
from topicweave.blocks.topic_names.parameters import NamesParameters
from topicweave.blocks.views import InterestView
from topicweave.model.ids import NodeId
from topicweave.port import Message, Node, Receivers, Timers

KINDS: tuple[type[Message], ...] = (Beat, Look, Found, Release, Carry, Got)
"""What a node without a topic directory says and hears because of names."""


def attach_names(
    node: Node, view: InterestView, parameters: NamesParameters | None = None, private: bool = False
) -> NameDirectory:
    """Let a node that was just made take part. Where its view has a topic directory, names use that one's
    ring; otherwise the node gets one.

    The node's own `start`, `leave`, `peer_lost`, `known_peers` and `gauges` are what they were, and the
    directory's beside it.
    """
    if isinstance(view, DirectoryView):
        names = NameDirectory(node.world, node.id, view.directory, parameters, private)
        ring = None
    else:
        ring = OwnRing(node.world, node.id, node.known_peers)
        names = NameDirectory(node.world, node.id, ring, parameters, private)
        node.use(ring)
    node.use(names)
    _accompany(node, names, ring)
    return names


def _accompany(node: Node, names: NameDirectory, ring: OwnRing | None) -> None:
    """Wrap what the world tells and asks this one node."""
    start, leave, lost, known, gauges = (
        node.start,
        node.leave,
        node.peer_lost,
        node.known_peers,
        node.gauges,
    )

    def started(contacts: Sequence[NodeId]) -> None:
        start(contacts)
        if ring is not None:
            ring.start(contacts)
        names.start()

    def left() -> None:
        names.leave()
        if ring is not None:
            ring.leave()
        leave()

    def peer_lost(peer: NodeId) -> None:
        lost(peer)
        if ring is not None:
            ring.lost(peer)

    def known_peers() -> Iterable[NodeId]:
        ours = names.known_peers() | (ring.known_peers() if ring is not None else set())
        return ours.union(known())

    def all_gauges() -> Mapping[str, float]:
        return {**gauges(), **names.gauges()}

    changed: dict[str, Callable[..., Any]] = {
        "start": started,
        "leave": left,
        "peer_lost": peer_lost,
        "known_peers": known_peers,
        "gauges": all_gauges,
    }
    for what, does in changed.items():
        setattr(node, what, does)


class _Deaf:
    """Hears what others say because of names, and does nothing about it."""

    def __init__(self, taken: Iterable[type[Message]]) -> None:
        self._taken = set(taken)

    def receivers(self) -> Receivers:
        return {kind: _ignore for kind in KINDS if kind not in self._taken}

    def timers(self) -> Timers:
        return {}


def _ignore(_sender: NodeId, _message: Message) -> None:
    """Nothing to do."""


def ignore_names(node: Node) -> None:
    """Let a node that takes no part understand what those who do may send it."""
    node.use(_Deaf(node.message_types))
