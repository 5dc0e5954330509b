"""A swarm's own certificate authority: `topicweave keys new-swarm`, `topicweave keys issue NAME`.

Files of a swarm: `swarm.crt` (for everybody) and `swarm.key` (stays where certificates are issued). Of a node: `node.crt`, `node.key` and a copy of
`swarm.crt`. Private keys are readable by their owner only and never overwritten.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

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
from topicweave.live.keyring import CA_FILE, CERTIFICATE_FILE, KEY_FILE

CA_KEY_FILE = "swarm.key"
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


def issue(swarm_folder: str | Path, name: str, folder: str | Path | None = None, days: float = 365) -> Path:
    """Make a node's key and certificate; returns their folder (by default named after the node, in the swarm's)."""
    swarm_folder = Path(swarm_folder)
    if not name or len(name) > 64 or "/" in name or name.startswith("."):
        raise BadInput(f"node name {name!r}: 1 to 64 characters, no slash, not beginning with a dot")
    folder = Path(folder) if folder is not None else swarm_folder / name
    if (folder / KEY_FILE).exists():
        raise BadInput(f"{folder} holds a node's key already; remove it first to issue it anew")
    try:
        ca = x509.load_pem_x509_certificate((swarm_folder / CA_FILE).read_bytes())
        ca_key = load_pem_private_key((swarm_folder / CA_KEY_FILE).read_bytes(), password=None)
    except (OSError, ValueError) as error:
        raise BadInput(
            f"{swarm_folder}: not a swarm's folder ({error}); make one with `topicweave keys new-swarm`"
        ) from None
    if not isinstance(ca_key, Ed25519PrivateKey):
        raise BadInput(f"{swarm_folder}: the swarm's key is not Ed25519")
    key = Ed25519PrivateKey.generate()
    now = datetime.now(UTC)  # noqa: TID251 - certificates live by the wall clock
    ends = now + timedelta(days=days)
    certificate = (
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
        .sign(ca_key, None)
    )
    folder.mkdir(parents=True, exist_ok=True)
    _write_key(folder / KEY_FILE, key)
    (folder / CERTIFICATE_FILE).write_bytes(certificate.public_bytes(Encoding.PEM))
    (folder / CA_FILE).write_bytes(ca.public_bytes(Encoding.PEM))
    return folder


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
