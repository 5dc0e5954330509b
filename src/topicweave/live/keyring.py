"""Who is who, and who said what: certificates of the swarm and signatures of events.

Rules kept
----------
1. A node's name is in its certificate, its id is the name's: a connection whose certificate says otherwise is closed.
2. The certificate's Ed25519 key also signs the node's events: over a fixed prefix, publisher, topic, epoch, sequence and payload, so
   that none of them can be changed and no signature can be used for something else.
3. A signed event's payload is the signature (64 bytes) followed by what the application gave: to systems it is all payload.
4. Certificates of publishers travel like addresses: before the first of their events on each link. What does not bear the
   swarm's signature, or has expired, is not learnt.
"""

from __future__ import annotations

import hashlib
import ssl
import struct
from collections import OrderedDict
from pathlib import Path
from typing import Any, Literal

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import NameOID

from topicweave.errors import BadInput
from topicweave.live.frames import ProtocolError
from topicweave.model.event import Event, EventId
from topicweave.model.ids import NodeId, ring_id

SIGNATURE = 64
CONTEXT = b"topicweave event v1\0"
UNSIGNED = bytes(SIGNATURE)
"""Stands where the signature will be."""
MOST_VERIFIED = 16_384
_PROVEN: OrderedDict[bytes, None] = OrderedDict()
"""Digests of what was verified lately: key, signature and signed bytes. That one fits the others is a fact, not an opinion, so all nodes of a
process share it: of a swarm in one process one node does the arithmetic."""
MOST_CREDENTIAL = 2048
"""Bytes; a certificate that `keys issue` makes has about 400."""

CA_FILE = "swarm.crt"
CERTIFICATE_FILE = "node.crt"
KEY_FILE = "node.key"


Verdict = Literal["good", "forged", "unknown", "expired"]
"""`unknown`: the publisher's certificate has not come yet; `expired`: it is not in force."""


class Credential(msgspec.Struct, frozen=True):
    """A publisher's certificate, taken apart."""

    name: str
    der: bytes
    key: Ed25519PublicKey
    key_bytes: bytes
    begins: float
    expires: float

    def in_force(self, now: float) -> bool:
        return self.begins <= now <= self.expires


def name_of(certificate: x509.Certificate) -> str:
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if len(names) != 1:
        raise ProtocolError("a certificate without a name")
    return str(names[0].value)


class Keyring:
    """One node's key, its swarm's authority, and the publishers met so far."""

    def __init__(self, folder: str | Path, limit: int) -> None:
        self._folder = Path(folder)
        try:
            self._ca = x509.load_pem_x509_certificate((self._folder / CA_FILE).read_bytes())
            own = x509.load_pem_x509_certificate((self._folder / CERTIFICATE_FILE).read_bytes())
            key = load_pem_private_key((self._folder / KEY_FILE).read_bytes(), password=None)
            ca_key = self._ca.public_key()
        except (OSError, ValueError) as error:
            raise BadInput(
                f"{folder}: not a node's keys ({error}); make them with `topicweave keys issue`"
            ) from None
        if not isinstance(key, Ed25519PrivateKey) or not isinstance(ca_key, Ed25519PublicKey):
            raise BadInput(f"{folder}: keys must be Ed25519; make them with `topicweave keys issue`")
        self._ca_key = ca_key
        self._key = key
        self._limit = limit
        self._credentials: OrderedDict[NodeId, Credential] = OrderedDict()
        self._signed: OrderedDict[EventId, Event] = OrderedDict()
        self.name = name_of(own)
        self.id = ring_id(self.name)
        self._own = own.public_bytes(Encoding.DER)
        try:
            self.learn(self._own)
        except ProtocolError as error:
            raise BadInput(f"{folder}: {error}; issue the node's keys anew") from None

    # TLS.

    def context(self, server: bool) -> ssl.SSLContext:
        """Mutual TLS 1.3: only certificates of this swarm, in both directions."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        # Nodes have names, not hosts: `identify` compares the name, for all connections alike.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cafile=str(self._folder / CA_FILE))
        context.load_cert_chain(str(self._folder / CERTIFICATE_FILE), str(self._folder / KEY_FILE))
        if server:
            context.num_tickets = 0  # Every connection proves itself anew.
        return context

    def identify(self, der: bytes) -> NodeId:
        """Whose certificate it is, that TLS has found good."""
        return self.learn(der)

    # Publishers.

    def learn(self, der: bytes) -> NodeId:
        """Take a publisher's certificate, if the swarm's authority signed it.

        Whether it is in force is looked at when it is used: peers with other clocks may pass on one that just expired.
        """
        if len(der) > MOST_CREDENTIAL:
            raise ProtocolError(f"a certificate of {len(der)} bytes")
        try:
            certificate = x509.load_der_x509_certificate(der)
            key = certificate.public_key()
            certificate.verify_directly_issued_by(self._ca)
            constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
        except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound) as error:
            raise ProtocolError(f"a certificate not of this swarm ({type(error).__name__})") from None
        if not isinstance(key, Ed25519PublicKey) or constraints.ca:
            raise ProtocolError("a certificate that is no node's")
        name = name_of(certificate)
        publisher = ring_id(name)
        self._credentials[publisher] = Credential(
            name,
            der,
            key,
            key.public_bytes_raw(),
            certificate.not_valid_before_utc.timestamp(),
            certificate.not_valid_after_utc.timestamp(),
        )
        self._credentials.move_to_end(publisher)
        if len(self._credentials) > self._limit:
            oldest = next(iter(self._credentials))
            # Our own is always needed.
            self._credentials.move_to_end(oldest) if oldest == self.id else self._credentials.popitem(
                last=False
            )
        return publisher

    def credential(self, publisher: NodeId) -> Credential | None:
        return self._credentials.get(publisher)

    # Events.

    def sign(self, event: Event) -> Event:
        """The same event with the node's signature in its payload; made once per event while it is remembered."""
        signed = self._signed.get(event.id)
        if signed is None:
            body = event.payload[SIGNATURE:]
            signature = self._key.sign(_signed_bytes(event, body))
            signed = msgspec.structs.replace(event, payload=signature + body)
            _remember(self._signed, event.id, signed, 64)
        return signed

    def verify(self, event: Event, now: float) -> Verdict:
        """Whether the publisher signed the event."""
        credential = self._credentials.get(event.publisher)
        if credential is None:
            return "unknown"
        if not credential.in_force(now):
            return "expired"
        signature, signed = event.payload[:SIGNATURE], _signed_bytes(event, event.payload[SIGNATURE:])
        fact = hashlib.blake2b(credential.key_bytes + signature + signed, digest_size=32).digest()
        if fact not in _PROVEN:
            try:
                credential.key.verify(signature, signed)
            except InvalidSignature:
                return "forged"
            _remember(_PROVEN, fact, None, MOST_VERIFIED)
        self._credentials.move_to_end(event.publisher)
        return "good"


def _remember(table: OrderedDict[Any, Any], key: Any, value: Any, limit: int) -> None:
    table[key] = value
    if len(table) > limit:
        table.popitem(last=False)


def _signed_bytes(event: Event, body: bytes) -> bytes:
    return CONTEXT + struct.pack(">QQQQ", *event.id) + body
