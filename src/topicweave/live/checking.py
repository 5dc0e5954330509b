"""What would keep a node from starting, found without starting it. Nothing is left behind, opened for others, or
locked.
"""

from __future__ import annotations

import socket
import ssl
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from topicweave.errors import TopicweaveError
from topicweave.live.clock import Clock
from topicweave.live.names import TopicNames
from topicweave.live.patterns import check_possible
from topicweave.live.settings import Address, Settings
from topicweave.model.patterns import is_pattern
from topicweave.systems.registry import find_system


def problems(settings: Settings) -> list[str]:
    """One line each; none: the node would start."""
    checks = (_system, _topics, _keys, _data, _ports, _mqtt)
    return [found for check in checks for found in _found(check, settings)]


def _found(check: Callable[[Settings], Iterator[str]], settings: Settings) -> list[str]:
    try:
        return list(check(settings))
    except TopicweaveError as error:
        return [str(error)]


def _system(settings: Settings) -> Iterator[str]:
    settings.system_parameters(find_system(settings.system))
    yield from ()


def _topics(settings: Settings) -> Iterator[str]:
    try:
        system, known = find_system(settings.system), TopicNames()
    except TopicweaveError:
        return  # `_system` says it
    for topic in dict.fromkeys(settings.subscribe):
        try:
            if is_pattern(topic):
                check_possible(topic, settings, system)
            else:
                known.id_of(topic)
        except TopicweaveError as error:
            yield f"subscribe, {topic[:20]!r}: {error}"


def _keys(settings: Settings) -> Iterator[str]:
    if not settings.keys:
        return
    from topicweave.live.keyring import Keyring

    keyring = Keyring(settings.keys, settings.limits.credentials)
    if settings.name and settings.name != keyring.name:
        yield f"name {settings.name!r}: the keys in {settings.keys} are {keyring.name!r}'s"
    problem = keyring.problem(keyring.own, Clock(0.0, None).trusted())
    if problem:
        yield f"{settings.keys}: the certificate is {problem}; issue it anew with `topicweave keys issue`"
    for topic in settings.subscribe:
        if not keyring.own.permissions.may_subscribe(topic):
            yield f"subscribe {topic!r}: the certificate does not allow it"


def _data(settings: Settings) -> Iterator[str]:
    for what, folder in (("data", settings.data), ("telemetry", settings.telemetry)):
        place = Path(folder)
        if not folder:
            continue
        while not place.exists() and place != place.parent:
            place = place.parent
        if not place.is_dir():
            yield f"{what} {folder}: {place} is no folder"
        elif reason := _unwritable(place):
            yield f"{what} {folder}: {place} cannot be written to ({reason})"


def _unwritable(folder: Path) -> str:
    """Why nothing can be written there: tried with a file without a name, since permissions do not say all."""
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        return str(error.strerror)
    return ""


def _ports(settings: Settings) -> Iterator[str]:
    for what in ("listen", "http", "mqtt"):
        given: str = getattr(settings, what)
        if not given:
            continue
        address = Address.parse(given, what)
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as port:
            port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                port.bind((address.host, address.port))
            except OSError as error:
                yield f"{what} {given}: {error.strerror}"


def _mqtt(settings: Settings) -> Iterator[str]:
    if not settings.mqtt:
        return
    from topicweave.live.mqtt.accounts import Accounts

    Accounts(settings.mqtt_passwords, settings.mqtt_permissions)
    if settings.mqtt_certificate:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
                settings.mqtt_certificate, settings.mqtt_key or None
            )
        except (OSError, ssl.SSLError) as error:
            yield f"mqtt_certificate {settings.mqtt_certificate}: {error}"
