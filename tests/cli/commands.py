"""Running commands: inside this process (quick), or as a user does (real)."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from typer.testing import CliRunner, Result

from topicweave.cli.app import app

COMMAND = [sys.executable, "-m", "topicweave.cli"]


def call(*words: object) -> Result:
    """In this process. An exception that no command should let through fails the test."""
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


def run(*words: object, cwd: Path | None = None, **environment: str) -> "subprocess.CompletedProcess[str]":
    """In a process of its own."""
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def interrupt_after(line: str, words: Sequence[object]) -> "subprocess.CompletedProcess[str]":
    """Press Ctrl-C (a signal to all processes of the command) as soon as stderr says `line`."""
    command = subprocess.Popen(
        [*COMMAND, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert command.stderr is not None
    seen = ""
    while line not in seen:
        read = command.stderr.readline()
        assert read, f"it ended before it said {line!r}; it said {seen!r}"
        seen += read
    os.killpg(command.pid, signal.SIGINT)
    out, err = command.communicate()
    return subprocess.CompletedProcess(command.args, command.returncode, out, seen + err)
