"""The address book: at which address each node can be reached. Bounded in size.

In a swarm with keys an address counts only if its node signed it. So no node can make others dial an address
in somebody else's name. Of two addresses the one that was signed later counts. Without keys nodes talk on
this machine only. Then an address that a peer told us itself is confirmed, and hearsay does not replace it
until it has failed. Addresses that fail are forgotten.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator

from topicweave.live.settings import Address
from topicweave.live.wire import AddressOf
from topicweave.model.ids import NodeId


class AddressBook:
    """The longest unused entry goes when there are too many. `proves` says whether a record's signature is
    good; None asks for none.
    """

    def __init__(self, owner: NodeId, limit: int, proves: Callable[[AddressOf], bool] | None) -> None:
        self._owner = owner
        self._limit = limit
        self._proves = proves
        self._entries: OrderedDict[NodeId, tuple[AddressOf, bool]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[tuple[NodeId, Address]]:
        for peer, (record, _) in self._entries.items():
            yield peer, record.address

    def get(self, peer: NodeId) -> Address | None:
        record = self.record(peer)
        return None if record is None else record.address

    def record(self, peer: NodeId) -> AddressOf | None:
        entry = self._entries.get(peer)
        if entry is None:
            return None
        self._entries.move_to_end(peer)
        return entry[0]

    def confirmed(self, peer: NodeId) -> bool:
        entry = self._entries.get(peer)
        return entry is not None and entry[1]

    def confirm(self, record: AddressOf) -> None:
        """The peer itself said so."""
        if self._proves is None or self._proves(record):
            self._put(record, True)

    def hear(self, record: AddressOf) -> bool:
        """Somebody else said so. False if it is not proven."""
        known = self._entries.get(record.id)
        if known is not None and known[0] == record:
            return True
        if self._proves is None:
            if known is None or not known[1]:
                self._put(record, False)
            return True
        if not self._proves(record):
            return False
        if known is None or record.issued > known[0].issued:
            self._put(record, False)
        return True

    def remember(self, record: AddressOf) -> None:
        """This node knew so in an earlier life, or was told by its user."""
        if record.id not in self._entries:
            self._put(record, False)

    def failed(self, peer: NodeId) -> None:
        """Nobody, or somebody else, answers there."""
        self._entries.pop(peer, None)

    def _put(self, record: AddressOf, confirmed: bool) -> None:
        # Without authentication only this machine is spoken to, whatever peers say.
        if record.id == self._owner or (self._proves is None and not record.address.loopback):
            return
        self._entries[record.id] = (record, confirmed)
        self._entries.move_to_end(record.id)
        if len(self._entries) > self._limit:
            self._entries.popitem(last=False)
