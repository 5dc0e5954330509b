"""Why joining fails, and with whom. Both sides report it in the log, on stderr and by /health."""

from __future__ import annotations

import logging
import ssl
from collections import OrderedDict
from typing import Any, NamedTuple

log = logging.getLogger("topicweave.live")

MOST = 32
AGAIN = 60.0
"""Seconds before the same trouble is logged again."""


class Trouble(NamedTuple):
    who: str
    what: str
    times: int
    last: float
    logged: float


def why(error: BaseException) -> str:
    """An exception of a connection, in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not accepted ({error.verify_message}): another swarm's authority, or expired"
        )
    if isinstance(error, ssl.SSLError):
        text = str(error)
        if "UNKNOWN_CA" in text or "unknown ca" in text:
            return "it does not accept our certificate: another swarm's authority"
        if "EXPIRED" in text or "expired" in text:
            return "it does not accept our certificate: expired"
        return f"no TLS connection ({error.reason or text}): does it have keys, and of the same swarm?"
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens there" if error.errno else str(error)
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return str(error) or type(error).__name__


class Troubles:
    """The last ones, by whom they are with."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._troubles: OrderedDict[str, Trouble] = OrderedDict()

    def note(self, who: str, what: str, now: float) -> None:
        old = self._troubles.pop(who, None)
        logged = old.logged if old is not None and old.what == what else -AGAIN
        if now - logged >= AGAIN:
            log.warning("%s: %s: %s", self._owner, who, what)
            logged = now
        self._troubles[who] = Trouble(who, what, 1 + (old.times if old is not None else 0), now, logged)
        if len(self._troubles) > MOST:
            self._troubles.popitem(last=False)

    def settled(self, who: str) -> None:
        self._troubles.pop(who, None)

    def lately(self, now: float, within: float = AGAIN) -> list[Trouble]:
        return [trouble for trouble in self._troubles.values() if now - trouble.last <= within]

    def as_list(self, now: float) -> list[dict[str, Any]]:
        return [
            {"with": one.who, "what": one.what, "times": one.times, "seconds_ago": round(now - one.last, 1)}
            for one in self._troubles.values()
        ]
