"""Logs of nodes run from the command line: to stderr, as text or as JSON. Written by a thread: a full pipe
holds up no node.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import queue
import threading

from topicweave.errors import BadInput

MOST_LINES = 10_000
"""That wait to be written; more are left out, and counted."""
LAST_WORDS = 1.0
"""Seconds that the end of the process waits for them."""
STDERR = 2
LEVELS = ("debug", "info", "warning", "error")


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class _Threaded(logging.Handler):
    """Past Python's own buffer with its lock: a thread that hangs in a pipe keeps no process from ending."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: queue.Queue[str] = queue.Queue(MOST_LINES)
        self._left_out = 0
        threading.Thread(target=self._work, name="logs", daemon=True).start()
        atexit.register(self._finish)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._lines.put_nowait(self.format(record))
        except queue.Full:
            self._left_out += 1

    def _work(self) -> None:
        while True:
            line = self._lines.get()
            if self._left_out:
                line = f"{self._left_out} lines were left out: nobody read them\n{line}"
                self._left_out = 0
            left = f"{line}\n".encode()
            try:
                while left:
                    left = left[os.write(STDERR, left) :]
            except OSError:
                pass  # Nobody can be told.
            self._lines.task_done()

    def _finish(self) -> None:
        """`Queue.join` with an end: from Python 3.12 on no thread can be started here."""
        written = self._lines.all_tasks_done
        with written:
            written.wait_for(lambda: not self._lines.unfinished_tasks, LAST_WORDS)


def set_up_logs(level: str, as_json: bool) -> None:
    if level not in LEVELS:
        raise BadInput(f"log level {level!r}: say one of {', '.join(LEVELS)}")
    handler = _Threaded()
    text = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(_Json() if as_json else text)
    logger = logging.getLogger("topicweave")
    logger.handlers[:] = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False
