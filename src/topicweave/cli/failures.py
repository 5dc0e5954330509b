"""How commands fail: one line that says what is wrong, and an exit code; never a traceback for what the user
can fix.
"""

from __future__ import annotations

import errno
import os
from typing import Any

import typer
from typer.core import TyperGroup

from topicweave.errors import TopicweaveError, without_secrets

BAD_INPUT = 2
INTERRUPTED = 130


def debugging() -> bool:
    """Whether the user wants to see where an error came from."""
    return os.environ.get("TOPICWEAVE_DEBUG", "") not in ("", "0")


def complain(text: str) -> None:
    """One line to stderr, whatever the text; keys in URIs are not shown."""
    typer.echo(" ".join(without_secrets(text).split()), err=True)


class Commands(TyperGroup):
    """The group of all commands: what goes wrong in any of them ends up here."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            complain("stopped; run the same command again to continue")
            raise typer.Exit(INTERRUPTED) from None
        except TopicweaveError as error:
            if debugging():
                raise
            complain(f"error: {error}")
            raise typer.Exit(BAD_INPUT) from None
        except OSError as error:
            # A closed pipe (`| head`) is nobody's mistake: typer ends quietly.
            if debugging() or error.errno == errno.EPIPE:
                raise
            place = f"{error.filename}: " if error.filename else ""
            complain(f"error: {place}{error.strerror or error}")
            raise typer.Exit(BAD_INPUT) from None
