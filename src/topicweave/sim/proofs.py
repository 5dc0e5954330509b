"""Proofs of simulated nodes: as long as real ones, made and checked in no time, and not to be had by anybody else."""

from __future__ import annotations

import hashlib
import struct

from topicweave.model.ids import NodeId
from topicweave.port import PROOF_LASTS

LENGTH = 76
"""Bytes of a live node's proof: see `live.keyring`."""


class SimulatedProofs:
    """Every node has a secret, drawn from `seed`. `unproven`: what nobody vouches for counts, too."""

    def __init__(self, seed: int = 0, lasts: float = PROOF_LASTS, unproven: bool = False) -> None:
        self._seed, self._lasts, self.unproven = seed, lasts, unproven
        self._lives: dict[NodeId, int] = {}
        self.checks = 0
        """How many were checked."""

    def key_of(self, node: NodeId) -> bytes:
        return struct.pack(">QI", node, self._lives.get(node, 0))

    def renew_key(self, node: NodeId) -> None:
        """Proofs that the node made by its last key count no more."""
        self._lives[node] = self._lives.get(node, 0) + 1

    def make(self, node: NodeId, statement: bytes, now: float) -> bytes:
        issued = struct.pack(">d", now)
        return issued + self._seal(node, issued + statement)

    def holds(self, node: NodeId, statement: bytes, proof: bytes, now: float) -> bool:
        if not proof:
            return self.unproven
        self.checks += 1
        issued = proof[:8]
        if len(proof) != LENGTH or proof[8:] != self._seal(node, issued + statement):
            return False
        [moment] = struct.unpack(">d", issued)
        return bool(0.0 <= now - moment <= self._lasts)

    def _seal(self, node: NodeId, signed: bytes) -> bytes:
        secret = b"%d/%s" % (self._seed, self.key_of(node))
        return hashlib.blake2b(signed, key=secret, digest_size=64).digest() + bytes(LENGTH - 8 - 64)
