"""Who can be reached where: an address book of bounded size.

An address that a peer told us itself, over a connection of its own, is confirmed: hearsay does not replace it until it has
failed. Addresses that fail are forgotten, unless the user gave them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from topicweave.live.settings import Address
from topicweave.model.ids import NodeId


class AddressBook:
    """The longest unused entry goes when there are too many."""

    def __init__(self, owner: NodeId, limit: int, loopback_only: bool) -> None:
        self._owner = owner
        self._limit = limit
        self._loopback_only = loopback_only
        self._entries: OrderedDict[NodeId, tuple[Address, bool]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[tuple[NodeId, Address]]:
        for peer, (address, _) in self._entries.items():
            yield peer, address

    def get(self, peer: NodeId) -> Address | None:
        entry = self._entries.get(peer)
        if entry is None:
            return None
        self._entries.move_to_end(peer)
        return entry[0]

    def confirmed(self, peer: NodeId) -> bool:
        return self._entries.get(peer, (None, False))[1]

    def confirm(self, peer: NodeId, address: Address) -> None:
        """The peer itself said so."""
        self._put(peer, address, True)

    def hear(self, peer: NodeId, address: Address) -> None:
        """Somebody else said so."""
        if not self.confirmed(peer):
            self._put(peer, address, False)

    def failed(self, peer: NodeId) -> None:
        """Nobody, or somebody else, answers there."""
        self._entries.pop(peer, None)

    def _put(self, peer: NodeId, address: Address, confirmed: bool) -> None:
        # Without authentication only this machine is spoken to, whatever peers say.
        if peer == self._owner or (self._loopback_only and not address.loopback):
            return
        self._entries[peer] = (address, confirmed)
        self._entries.move_to_end(peer)
        if len(self._entries) > self._limit:
            self._entries.popitem(last=False)
