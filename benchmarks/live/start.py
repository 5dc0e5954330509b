"""How long a node takes from the shell's command to the line that says where it listens."""

from __future__ import annotations

import subprocess
import sys
import time

COMMAND = "from topicweave.cli import main; main()"
"""What the installed script does."""


def start_times(runs: int) -> list[float]:
    """Seconds of wall time, ascending; the first run, which fills the system's caches, is not counted."""
    times = []
    for _ in range(runs + 1):
        began = time.monotonic()
        node = subprocess.Popen(
            [sys.executable, "-c", COMMAND, "node", "--insecure", "--subscribe", "news"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert node.stdout is not None
        line = node.stdout.readline()
        times.append(time.monotonic() - began)
        node.terminate()
        node.wait()
        if "listen" not in line:
            raise RuntimeError(f"the node said {line!r}")
    return sorted(times[1:])
