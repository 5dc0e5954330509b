"""A swarm's own certificate authority: `topicweave keys new-swarm`, `topicweave keys issue NAME`.

Files of a swarm: `swarm.crt` (for everybody) and `swarm.key` (stays where certificates are issued). Of a
node: `node.crt`, `node.key` and a copy of `swarm.crt`. Private keys are readable by their owner only and
never overwritten.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from topicweave.errors import BadInput
from topicweave.live.keyring import (
    CA_FILE,
    CERTIFICATE_FILE,
    KEY_FILE,
    MOST_CREDENTIAL,
    PERMISSIONS,
    REVOKED_FILE,
    Permissions,
)
from topicweave.live.revocation import revoke

CA_KEY_FILE = "swarm.key"
ISSUED_FILE = "issued.jsonl"
"""Which certificates there are, so that they can be revoked by name."""
CLOCK_SLACK = timedelta(minutes=5)
"""Certificates begin a little in the past, for nodes whose clocks are behind."""


def new_swarm(folder: str | Path, swarm: str = "topicweave", days: float = 3650) -> Path:
    """Make a swarm's authority in a folder; returns the folder."""
    folder = Path(folder)
    if (folder / CA_KEY_FILE).exists():
        raise BadInput(f"{folder} holds a swarm's key already; choose another folder")
    key = Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{swarm} swarm authority")])
    now = datetime.now(UTC)  # noqa: TID251 - certificates live by the wall clock
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SLACK)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(authority=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, None)
    )
    folder.mkdir(parents=True, exist_ok=True)
    _write_key(folder / CA_KEY_FILE, key)
    (folder / CA_FILE).write_bytes(certificate.public_bytes(Encoding.PEM))
    return folder


def issue(
    swarm_folder: str | Path,
    name: str,
    folder: str | Path | None = None,
    days: float = 365,
    permissions: Permissions | None = None,
) -> Path:
    """Make a node's key and certificate; returns their folder (by default named after the node, in the swarm's).

    A name may be issued again, into another folder: both certificates are good until they end or are revoked.
    """
    swarm_folder = Path(swarm_folder)
    if not name or len(name) > 64 or "/" in name or name.startswith("."):
        raise BadInput(f"node name {name!r}: 1 to 64 characters, no slash, not beginning with a dot")
    folder = Path(folder) if folder is not None else swarm_folder / name
    if (folder / KEY_FILE).exists():
        raise BadInput(f"{folder} holds a node's key already; issue it anew into another --folder")
    ca, ca_key = _authority(swarm_folder)
    key = Ed25519PrivateKey.generate()
    now = datetime.now(UTC)  # noqa: TID251 - certificates live by the wall clock
    ends = now + timedelta(days=days)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(ca.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, ends) - CLOCK_SLACK)
        .not_valid_after(ends)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(authority=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
            critical=False,
        )
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False
        )
    )
    if permissions is not None:
        allowed = x509.UnrecognizedExtension(PERMISSIONS, msgspec.json.encode(permissions))
        builder = builder.add_extension(allowed, critical=False)
    certificate = builder.sign(ca_key, None)
    if len(certificate.public_bytes(Encoding.DER)) > MOST_CREDENTIAL:
        raise BadInput(f"a certificate of more than {MOST_CREDENTIAL} bytes: give fewer or shorter topics")
    folder.mkdir(parents=True, exist_ok=True)
    _write_key(folder / KEY_FILE, key)
    (folder / CERTIFICATE_FILE).write_bytes(certificate.public_bytes(Encoding.PEM))
    (folder / CA_FILE).write_bytes(ca.public_bytes(Encoding.PEM))
    if (swarm_folder / REVOKED_FILE).exists():
        (folder / REVOKED_FILE).write_bytes((swarm_folder / REVOKED_FILE).read_bytes())
    with (swarm_folder / ISSUED_FILE).open("ab") as issued:
        entry = _Issued(name, str(certificate.serial_number), ends.isoformat(timespec="seconds"), str(folder))
        issued.write(msgspec.json.encode(entry) + b"\n")
    return folder


class _Issued(msgspec.Struct):
    name: str
    serial: str
    ends: str
    folder: str


def revoke_certificates(swarm_folder: str | Path, which: str) -> tuple[int, Path]:
    """Take back all certificates of a name, or the one in a file; returns how many are revoked in all, and
    the list's file.
    """
    swarm_folder = Path(swarm_folder)
    _, ca_key = _authority(swarm_folder)
    serials: set[int] = set()
    if Path(which).is_file():
        try:
            serials = {x509.load_pem_x509_certificate(Path(which).read_bytes()).serial_number}
        except ValueError as error:
            raise BadInput(f"{which}: not a certificate ({error})") from None
    elif (swarm_folder / ISSUED_FILE).exists():
        lines = (swarm_folder / ISSUED_FILE).read_bytes().splitlines()
        entries = [msgspec.json.decode(line, type=_Issued) for line in lines]
        serials = {int(entry.serial) for entry in entries if entry.name == which}
    if not serials:
        raise BadInput(
            f"no certificate of {which!r} was issued in {swarm_folder}; name a node or a .crt file"
        )
    path = swarm_folder / REVOKED_FILE
    return revoke(path, serials, ca_key), path


def _authority(folder: Path) -> tuple[x509.Certificate, Ed25519PrivateKey]:
    try:
        ca = x509.load_pem_x509_certificate((folder / CA_FILE).read_bytes())
        key = load_pem_private_key((folder / CA_KEY_FILE).read_bytes(), password=None)
    except (OSError, ValueError) as error:
        raise BadInput(
            f"{folder}: not a swarm's folder ({error}); make one with `topicweave keys new-swarm`"
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise BadInput(f"{folder}: the swarm's key is not Ed25519")
    return ca, key


def _usage(authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _write_key(path: Path, key: Ed25519PrivateKey) -> None:
    data = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
