"""A live world's part in proofs: a node's own are signed with its key, those of others are checked against
their certificates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from topicweave.model.ids import NodeId

if TYPE_CHECKING:
    from topicweave.live.clock import Clock
    from topicweave.live.counters import Counters
    from topicweave.live.keyring import Keyring
    from topicweave.live.transport import Transport


class Vouching:
    """The part of `port.World` that speaks of proofs; a world fills in the rest."""

    keyring: Keyring | None
    counters: Counters
    _clock: Clock
    _transport: Transport | None
    _unproven: bool
    """Whether what nobody vouches for counts, too."""
    _sender: NodeId | None = None
    """Whose message the node was given last."""

    @property
    def vouches_by(self) -> bytes:
        return b"" if self.keyring is None else self.keyring.own.key_id

    def vouch(self, statement: bytes) -> bytes:
        return b"" if self.keyring is None else self.keyring.vouch(statement, self._clock.trusted())

    def vouched(self, by: NodeId, statement: bytes, proof: bytes) -> bool:
        if self.keyring is None:
            return True
        if not proof:
            return self._unproven
        verdict = self.keyring.vouched(by, statement, proof, self._clock.trusted())
        if verdict == "good":
            return True
        self.counters.unproven_contacts += 1
        if verdict == "unknown-key" and self._sender is not None and self._transport is not None:
            # It will be shown again.
            self._transport.ask_for_credential(self._sender, by, proof[:8])
        return False
