"""Certificates that the swarm's authority revoked: a numbered, signed list that spreads from peer to peer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from topicweave.live.frames import ProtocolError

CONTEXT = b"topicweave revocations v1\0"
MOST_REVOKED = 2000
Serial = Annotated[bytes, msgspec.Meta(min_length=1, max_length=20)]


class _List(msgspec.Struct, frozen=True, array_like=True):
    number: Annotated[int, msgspec.Meta(ge=1, le=(1 << 62))]
    """Grows with each list: the highest counts."""
    serials: Annotated[tuple[Serial, ...], msgspec.Meta(max_length=MOST_REVOKED)]


class _Signed(msgspec.Struct, frozen=True, array_like=True):
    content: bytes
    signature: Annotated[bytes, msgspec.Meta(min_length=64, max_length=64)]


def _bytes(serial: int) -> bytes:
    return serial.to_bytes(20, "big").lstrip(b"\0")


class Revocations:
    """The newest list known."""

    def __init__(self) -> None:
        self.number = 0
        self.data = b""
        """As the authority signed it; empty if there is none."""
        self._serials: frozenset[bytes] = frozenset()

    def __contains__(self, serial: int) -> bool:
        return bool(self._serials) and _bytes(serial) in self._serials

    def __len__(self) -> int:
        return len(self._serials)

    def learn(self, data: bytes, authority: Ed25519PublicKey) -> bool:
        """Whether it is news."""
        try:
            signed = msgspec.msgpack.decode(data, type=_Signed)
            authority.verify(signed.signature, CONTEXT + signed.content)
            content = msgspec.msgpack.decode(signed.content, type=_List)
        except (msgspec.DecodeError, InvalidSignature):
            raise ProtocolError("a list of revoked certificates that is not the authority's") from None
        if content.number <= self.number:
            return False
        self.number, self.data, self._serials = content.number, data, frozenset(content.serials)
        return True


def revoke(path: Path, serials: set[int], key: Ed25519PrivateKey) -> int:
    """Add certificates to the list in a file; returns how many it holds."""
    old: tuple[bytes, ...] = ()
    number = 0
    if path.exists():
        known = msgspec.msgpack.decode(
            msgspec.msgpack.decode(path.read_bytes(), type=_Signed).content, type=_List
        )
        old, number = known.serials, known.number
    merged = tuple(sorted({*old, *map(_bytes, serials)}))
    content = msgspec.msgpack.encode(_List(number + 1, merged))
    path.write_bytes(msgspec.msgpack.encode(_Signed(content, key.sign(CONTEXT + content))))
    return len(merged)
