"""Certificates of the swarm, and signatures of events, addresses and subscriptions.

Rules kept
----------
1. A node's name is in its certificate, and its id follows from the name. A connection whose certificate says
   otherwise is closed.
2. A name may have several valid certificates: one is issued before the other ends. A signature names the
   certificate that it was made under, by the first 8 bytes of the certificate's BLAKE2b digest.
3. The certificate's Ed25519 key also signs the node's events: over a fixed prefix, publisher, topic, epoch,
   sequence and payload. So none of them can be changed, and no signature can be used for something else. The
   payload of a signed event is the certificate's name, the signature (64 bytes) and the application's bytes;
   systems see all of it as payload. Addresses are signed in the same way, under a prefix of their own. So are
   a node's statements (`World.vouch`): the certificate's name, the time (4 bytes) and the signature, which
   counts for `PROOF_LASTS` seconds.
4. Publishers' certificates travel like addresses: ahead of the first of their events on each link. A
   certificate that the swarm did not sign, that has expired or that was revoked is not believed.
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
from topicweave.live.names import RETAINED
from topicweave.live.revocation import Revocations
from topicweave.live.settings import Address
from topicweave.live.wire import AddressOf
from topicweave.model.event import Event, EventId
from topicweave.model.ids import NodeId, ring_id
from topicweave.port import PROOF_LASTS

KEY_ID, SIGNATURE = 8, 64
SEAL = KEY_ID + SIGNATURE
"""Bytes in front of a signed event's payload."""
CONTEXT = b"topicweave event v2\0"
ADDRESS_CONTEXT = b"topicweave address v1\0"
CONTACT_CONTEXT = b"topicweave contact v1\0"
PROOF = KEY_ID + 4 + SIGNATURE
"""Bytes of a proof of what a node said."""
MOST_VERIFIED = 16_384
MOST_SIGNATURES = 8192
"""Of its own events that a node remembers: it sends them again without signing them again."""
_PROVEN: OrderedDict[bytes, None] = OrderedDict()
"""Digests of what was verified lately: key, signature and signed bytes. That one fits the others is a fact,
not an opinion, so all nodes of a process share it: of a swarm in one process one node does the arithmetic.
"""
MOST_CREDENTIAL = 4096
"""Bytes; a certificate that `keys issue` makes has about 400, and what its topics need."""
MOST_PER_NAME = 4
CLOCK_SLACK = 300.0
"""Seconds by which clocks may differ before somebody takes a certificate for expired."""
PERMISSIONS = x509.ObjectIdentifier("1.3.6.1.4.1.32473.16.1")
"""The certificate's extension that says what its holder may publish and subscribe to (a number from the range
for examples, RFC 5612).
"""

CA_FILE = "swarm.crt"
CERTIFICATE_FILE = "node.crt"
KEY_FILE = "node.key"
REVOKED_FILE = "swarm.revoked"


Verdict = Literal["good", "forged", "unknown-key", "expired", "revoked"]
"""`unknown-key`: the publisher's certificate has not come yet; `expired`: it is not in force."""


class Permissions(msgspec.Struct, frozen=True):
    """Beginnings of topics' names; None allows all. What holds for a topic holds for its retained value."""

    publish: tuple[str, ...] | None = None
    subscribe: tuple[str, ...] | None = None

    def may_publish(self, topic: str) -> bool:
        return self.publish is None or topic.removeprefix(RETAINED).startswith(self.publish)

    def may_subscribe(self, topic: str) -> bool:
        return self.subscribe is None or topic.removeprefix(RETAINED).startswith(self.subscribe)


class Credential(msgspec.Struct, frozen=True):
    """A node's certificate, taken apart."""

    name: str
    der: bytes
    key: Ed25519PublicKey
    key_bytes: bytes
    key_id: bytes
    serial: int
    begins: float
    expires: float
    permissions: Permissions

    @property
    def node(self) -> NodeId:
        return ring_id(self.name)

    def in_force(self, wall: float) -> bool:
        return self.begins - CLOCK_SLACK <= wall <= self.expires + CLOCK_SLACK


def name_of(certificate: x509.Certificate) -> str:
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if len(names) != 1:
        raise ProtocolError("a certificate without a name")
    return str(names[0].value)


def permissions_of(certificate: x509.Certificate) -> Permissions:
    try:
        found = certificate.extensions.get_extension_for_oid(PERMISSIONS).value
    except x509.ExtensionNotFound:
        return Permissions()
    assert isinstance(found, x509.UnrecognizedExtension)
    try:
        return msgspec.json.decode(found.value, type=Permissions)
    except msgspec.DecodeError:
        raise ProtocolError("a certificate whose permissions make no sense") from None


class Keyring:
    """One node's key, its swarm's authority, and the publishers met so far."""

    def __init__(self, folder: str | Path, limit: int) -> None:
        self._folder = Path(folder)
        self._limit = limit
        self._credentials: OrderedDict[NodeId, dict[bytes, Credential]] = OrderedDict()
        self._signatures: OrderedDict[EventId, bytes] = OrderedDict()
        self.revocations = Revocations()
        self._read()
        self.name = self.own.name
        self.id = ring_id(self.name)

    own: Credential
    _ca: x509.Certificate
    _ca_key: Ed25519PublicKey
    _key: Ed25519PrivateKey

    def reload(self) -> None:
        """Read the folder again: a certificate issued anew, a list of revoked ones. What does not fit leaves
        all as it was.
        """
        name, before = self.name, (self._ca, self._ca_key, self._key, self.own)
        try:
            self._read()
            if self.own.name != name:
                raise BadInput(f"{self._folder}: the keys are {self.own.name!r}'s, this node is {name!r}")
        except BadInput:
            self._ca, self._ca_key, self._key, self.own = before
            raise
        self._signatures.clear()

    def _read(self) -> None:
        folder = self._folder
        try:
            self._ca = x509.load_pem_x509_certificate((folder / CA_FILE).read_bytes())
            own = x509.load_pem_x509_certificate((folder / CERTIFICATE_FILE).read_bytes())
            key = load_pem_private_key((folder / KEY_FILE).read_bytes(), password=None)
            ca_key = self._ca.public_key()
        except (OSError, ValueError) as error:
            raise BadInput(
                f"{folder}: not a node's keys ({error}); make them with `topicweave keys issue`"
            ) from None
        if not isinstance(key, Ed25519PrivateKey) or not isinstance(ca_key, Ed25519PublicKey):
            raise BadInput(f"{folder}: keys must be Ed25519; make them with `topicweave keys issue`")
        if own.public_key() != key.public_key():
            raise BadInput(f"{folder}: {KEY_FILE} is not the key of {CERTIFICATE_FILE}; issue both anew")
        self._ca_key, self._key = ca_key, key
        try:
            self.own = self._take_apart(own.public_bytes(Encoding.DER))
            self._put(self.own)
            if (folder / REVOKED_FILE).exists():
                self.revocations.learn((folder / REVOKED_FILE).read_bytes(), ca_key)
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

    # Certificates.

    def learn(self, der: bytes) -> Credential:
        """Take a node's certificate, if the swarm's authority signed it.

        Whether it is in force is looked at when it is used: peers with other clocks may pass on one that just expired.
        """
        credential = self._take_apart(der)
        self._put(credential)
        return credential

    def _take_apart(self, der: bytes) -> Credential:
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
        return Credential(
            name_of(certificate),
            der,
            key,
            key.public_bytes_raw(),
            hashlib.blake2b(der, digest_size=KEY_ID).digest(),
            certificate.serial_number,
            certificate.not_valid_before_utc.timestamp(),
            certificate.not_valid_after_utc.timestamp(),
            permissions_of(certificate),
        )

    def _put(self, credential: Credential) -> None:
        node = credential.node
        of_name = self._credentials.setdefault(node, {})
        of_name[credential.key_id] = credential
        if len(of_name) > MOST_PER_NAME:
            ends_first = min(of_name.values(), key=lambda one: (one.der == self.own.der, one.expires))
            del of_name[ends_first.key_id]
        self._credentials.move_to_end(node)
        if len(self._credentials) > self._limit:
            oldest = next(iter(self._credentials))
            # Our own is always needed.
            self._credentials.move_to_end(oldest) if oldest == self.own.node else self._credentials.popitem(
                last=False
            )

    def credential(self, node: NodeId, key_id: bytes | None = None) -> Credential | None:
        """The certificate of that name, or the one that ends last."""
        of_name = self._credentials.get(node)
        if not of_name:
            return None
        if key_id is not None:
            return of_name.get(key_id)
        return self.own if node == self.own.node else max(of_name.values(), key=lambda one: one.expires)

    def problem(self, credential: Credential, wall: float) -> Literal["", "expired", "revoked"]:
        """Why a certificate is not to be believed, if so."""
        if credential.serial in self.revocations:
            return "revoked"
        return "" if credential.in_force(wall) else "expired"

    # Events.

    def sign(self, event: Event) -> Event:
        """The same event with the node's signature in its payload; made once per event while it is remembered."""
        body = event.payload[SEAL:]
        signature = self._signatures.get(event.id)
        if signature is None:
            signature = self._key.sign(_signed_bytes(event, body))
            _remember(self._signatures, event.id, signature, MOST_SIGNATURES)
        return msgspec.structs.replace(event, payload=self.own.key_id + signature + body)

    def verify(self, event: Event, wall: float) -> Verdict:
        """Whether the publisher signed the event."""
        payload = event.payload
        if len(payload) < SEAL:
            return "forged"
        credential = self.credential(event.publisher, payload[:KEY_ID])
        if credential is None:
            return "unknown-key"
        if problem := self.problem(credential, wall):
            return problem
        if not _fits(credential, payload[KEY_ID:SEAL], _signed_bytes(event, payload[SEAL:])):
            return "forged"
        self._credentials.move_to_end(event.publisher)
        return "good"

    # Addresses.

    def sign_address(self, address: Address, issued: int) -> bytes:
        record = AddressOf(self.id, address, issued)
        signature: bytes = self._key.sign(_address_bytes(record))
        return self.own.key_id + signature

    def verify_address(self, record: AddressOf, wall: float) -> bool:
        """Whether the node said itself that it listens there."""
        credential = self.credential(record.id, record.signature[:KEY_ID])
        return (
            credential is not None
            and not self.problem(credential, wall)
            and _fits(credential, record.signature[KEY_ID:], _address_bytes(record))
        )

    # What nodes vouch for.

    def vouch(self, statement: bytes, wall: float) -> bytes:
        issued = struct.pack(">I", int(wall))
        signature: bytes = self._key.sign(_vouched_bytes(self.id, issued, statement))
        return self.own.key_id + issued + signature

    def vouched(self, by: NodeId, statement: bytes, proof: bytes, wall: float) -> Verdict:
        """Whether a node said so, lately."""
        if len(proof) != PROOF:
            return "forged"
        issued = proof[KEY_ID : KEY_ID + 4]
        age = wall - int.from_bytes(issued, "big")
        if not -CLOCK_SLACK <= age <= PROOF_LASTS + CLOCK_SLACK:
            return "expired"
        credential = self.credential(by, proof[:KEY_ID])
        if credential is None:
            return "unknown-key"
        if problem := self.problem(credential, wall):
            return problem
        if not _fits(credential, proof[KEY_ID + 4 :], _vouched_bytes(by, issued, statement)):
            return "forged"
        self._credentials.move_to_end(by)
        return "good"

    def learn_revoked(self, data: bytes) -> bool:
        """Whether a list of revoked certificates is newer than what is known; it must be the authority's."""
        return self.revocations.learn(data, self._ca_key)


def _fits(credential: Credential, signature: bytes, signed: bytes) -> bool:
    fact = hashlib.blake2b(credential.key_bytes + signature + signed, digest_size=32).digest()
    if fact not in _PROVEN:
        try:
            credential.key.verify(signature, signed)
        except InvalidSignature:
            return False
        _remember(_PROVEN, fact, None, MOST_VERIFIED)
    return True


def _remember(table: OrderedDict[Any, Any], key: Any, value: Any, limit: int) -> None:
    table[key] = value
    if len(table) > limit:
        table.popitem(last=False)


def _signed_bytes(event: Event, body: bytes) -> bytes:
    return CONTEXT + struct.pack(">QQQQ", *event.id) + body


def _vouched_bytes(node: NodeId, issued: bytes, statement: bytes) -> bytes:
    return CONTACT_CONTEXT + struct.pack(">Q", node) + issued + statement


def _address_bytes(record: AddressOf) -> bytes:
    numbers = struct.pack(">QHQ", record.id, record.address.port, record.issued)
    return ADDRESS_CONTEXT + numbers + record.address.host.encode()
