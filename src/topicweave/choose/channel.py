"""How long work speaks with its caller. Nothing in this package prints."""

from __future__ import annotations

from collections.abc import Callable

from topicweave.runs.runner import Progress

Note = Callable[[str], None]
"""Called with one sentence that the user should know."""


class Channel:
    """Progress and notes go to whoever listens; notes are kept as well."""

    def __init__(self, progress: Progress | None = None, note: Note | None = None) -> None:
        self._progress = progress
        self._note = note
        self.notes: list[str] = []

    def progress(self, done: int, total: int, what: str) -> None:
        """(finished, of how many, what was finished last); the last is empty at the start."""
        if self._progress is not None:
            self._progress(done, total, what)

    def note(self, text: str, passing: bool = False) -> None:
        """A `passing` note tells how the work goes on, which differs from run to run; it is not kept."""
        if not passing:
            self.notes.append(text)
        if self._note is not None:
            self._note(text)
