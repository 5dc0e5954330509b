"""Worker processes start clean."""

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

SCRIPT = """
import topicweave

result = topicweave.compare(
    {"ann": ["news", "go"], "bob": ["news"], "eve": ["go", "news"], "dan": ["go"]},
    systems=["spidercast", "broker"],
    seeds=1,
    workers=2,
    out="kept",
)
print(len(result.to_pandas()))
"""


def test_a_script_needs_no_guard_around_a_comparison(tmp_path: Path) -> None:
    """Python's own worker processes run the main script again, which would start workers of its own."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path, check=False, timeout=300
    )
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr


ENDLESS = """
from tests.runs.endless import tell_and_go_on
from topicweave.runs.processes import each

list(each(tell_and_go_on, range(2), 2))
"""


def test_workers_do_not_outlive_a_command_that_was_killed() -> None:
    """Nobody asks for their results any more."""
    command = subprocess.Popen(
        [sys.executable, "-c", ENDLESS], cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True
    )
    assert command.stdout is not None
    workers = [os.pidfd_open(int(command.stdout.readline())) for _ in range(2)]
    command.kill()
    command.wait()
    try:
        for worker in workers:
            ended, _, _ = select.select([worker], [], [], 120.0)
            assert ended
    finally:
        for worker in workers:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(worker, signal.SIGKILL)
            os.close(worker)
