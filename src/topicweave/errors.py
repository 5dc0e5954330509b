"""The one family of errors a user ever sees."""

from __future__ import annotations

import re

_KEYS = re.compile(r"(\w:/{1,2})[^\s/@?]+@")
_OPTIONS = re.compile(r"(?i)([?&][^\s=&]*(?:key|secret|token|password)[^\s=&]*=)[^\s&'\")]+")


def without_secrets(text: str) -> str:
    """A text in which the keys that stand in URIs are not shown.

    >>> without_secrets("s3://AKIA:wJalr@bucket/w?region=eu-west-1: no such folder")
    's3://***@bucket/w?region=eu-west-1: no such folder'
    """
    return _OPTIONS.sub(r"\1***", _KEYS.sub(r"\1***@", text))


class TopicweaveError(Exception):
    """Something the user can fix: the message says what is wrong, where, and what to do.

    The command line prints the message alone; programs catch this type. Keys in URIs are not shown.
    """

    def __str__(self) -> str:
        return without_secrets(super().__str__())


class BadInput(TopicweaveError):
    """A table, file or value handed in from outside does not hold what it should."""


class NotKept(TopicweaveError):
    """It is done, but not on disk: it may be forgotten when the process ends."""


class UnknownName(TopicweaveError):
    """A name (system, study, model, …) that nothing is registered under."""

    def __init__(self, what: str, name: str, known: list[str]) -> None:
        super().__init__(f"unknown {what} {name!r}; known: {', '.join(sorted(known))}")
        self._made_of = (what, name, known)

    def __reduce__(self) -> tuple[type[UnknownName], tuple[str, str, list[str]]]:
        """Lets it travel from a worker process: by default an error is remade from its message alone."""
        return UnknownName, self._made_of
