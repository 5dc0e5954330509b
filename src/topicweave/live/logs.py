"""Logs of nodes run from the command line: to stderr, as text or as JSON."""

from __future__ import annotations

import json
import logging

from topicweave.errors import BadInput

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


def set_up_logs(level: str, as_json: bool) -> None:
    if level not in LEVELS:
        raise BadInput(f"log level {level!r}: say one of {', '.join(LEVELS)}")
    handler = logging.StreamHandler()
    text = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(_Json() if as_json else text)
    logger = logging.getLogger("topicweave")
    logger.handlers[:] = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False
