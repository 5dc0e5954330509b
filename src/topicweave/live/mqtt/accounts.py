"""Who may come in and what they may do, from the two files that users of Mosquitto have: passwords and an
access control list.

Passwords: one `name:hash` per line, as `mosquitto_passwd` writes them (PBKDF2 with SHA-512). Access: `user
NAME` begins what one user may do, `topic [read|write|readwrite|deny] FILTER` allows or forbids, `pattern …`
is the same for everybody with `%u` (user) and `%c` (client id). Lines in front of the first `user` are for
those without a name. With such a file, what is not allowed is forbidden.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterator
from pathlib import Path

import msgspec

from topicweave.errors import BadInput
from topicweave.model.patterns import matches, overlap

VERBS = {"read": (True, False), "write": (False, True), "readwrite": (True, True), "deny": (False, False)}
MOST_ITERATIONS = 1_000_000


class Permission(msgspec.Struct, frozen=True):
    filter: str
    read: bool
    write: bool
    deny: bool = False


class Accounts:
    """Without files, everybody may come in and do everything: a door on loopback."""

    def __init__(self, passwords: str = "", permissions: str = "") -> None:
        self._hashes = _read_passwords(Path(passwords)) if passwords else None
        self._permissions = _read_permissions(Path(permissions)) if permissions else None

    def known(self, name: str | None, password: bytes | None) -> bool:
        """Whether it is who it says. Takes a while, on purpose: not for an event loop."""
        if self._hashes is None:
            return True
        hashed = self._hashes.get(name or "")
        if hashed is None or password is None:
            return False
        iterations, salt, expected = hashed
        return hmac.compare_digest(
            hashlib.pbkdf2_hmac("sha512", password, salt, iterations, len(expected)), expected
        )

    def may_read_some(self, name: str | None, client_id: str, pattern: str) -> bool:
        """Whether there is anything that a pattern may match and this client may read."""
        if self._permissions is None:
            return True
        return any(
            permission.read and overlap(filter_, pattern)
            for filter_, permission in self._of(self._permissions, name, client_id)
        )

    def _of(
        self, permissions: dict[str, list[Permission]], name: str | None, client_id: str
    ) -> Iterator[tuple[str, Permission]]:
        for permission in [*permissions.get(name or "", []), *permissions.get("%", [])]:
            filter_ = permission.filter
            if "%" in filter_:
                if any(sign in value for value in (name or "", client_id) for sign in "+#/"):
                    continue  # A name that says more than a name.
                filter_ = filter_.replace("%u", name or "").replace("%c", client_id)
            yield filter_, permission

    def may(self, name: str | None, client_id: str, topic: str, *, write: bool) -> bool:
        if self._permissions is None:
            return True
        allowed = False
        for filter_, permission in self._of(self._permissions, name, client_id):
            if matches(filter_, topic):
                if permission.deny:
                    return False
                allowed = allowed or (permission.write if write else permission.read)
        return allowed


def _lines(path: Path) -> list[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: {error}") from None
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), start=1)]
    return [(number, line) for number, line in lines if line and not line.startswith("#")]


def _read_passwords(path: Path) -> dict[str, tuple[int, bytes, bytes]]:
    found = {}
    for number, line in _lines(path):
        name, _, hashed = line.partition(":")
        try:
            kind, iterations, salt, digest = hashed.removeprefix("$").split("$")
            if kind != "7" or not 0 < int(iterations) <= MOST_ITERATIONS:
                raise ValueError
            found[name] = (int(iterations), base64.b64decode(salt, validate=True), base64.b64decode(digest))
        except (ValueError, binascii.Error):
            raise BadInput(
                f"{path}, line {number}: no name and hash as `mosquitto_passwd` writes them"
            ) from None
    return found


def _read_permissions(path: Path) -> dict[str, list[Permission]]:
    """By user; those without a name under "", those for everybody under "%"."""
    found: dict[str, list[Permission]] = {}
    user = ""
    for number, line in _lines(path):
        word, _, rest = line.partition(" ")
        rest = rest.strip()
        if word == "user" and rest:
            user = rest
        elif word in ("topic", "pattern") and rest:
            verb, _, filter_ = rest.partition(" ")
            if verb not in VERBS or not filter_:
                verb, filter_ = "readwrite", rest
            read, write = VERBS[verb]
            whose = "%" if word == "pattern" else user
            found.setdefault(whose, []).append(Permission(filter_.strip(), read, write, verb == "deny"))
        else:
            raise BadInput(
                f"{path}, line {number}: say user NAME, topic [read|write|readwrite|deny] FILTER or pattern …"
            )
    return found
