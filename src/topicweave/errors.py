"""The one family of errors a user ever sees."""

from __future__ import annotations


class TopicweaveError(Exception):
    """Something the user can fix: the message says what is wrong, where, and what to do.

    The command line prints the message alone; programs catch this type.
    """


class BadInput(TopicweaveError):
    """A table, file or value handed in from outside does not hold what it should."""


class UnknownName(TopicweaveError):
    """A name (system, study, model, …) that nothing is registered under."""

    def __init__(self, what: str, name: str, known: list[str]) -> None:
        super().__init__(f"unknown {what} {name!r}; known: {', '.join(sorted(known))}")
        self._made_of = (what, name, known)

    def __reduce__(self) -> tuple[type[UnknownName], tuple[str, str, list[str]]]:
        """Lets it travel from a worker process: by default an error is remade from its message alone."""
        return UnknownName, self._made_of
