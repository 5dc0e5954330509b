"""Worker processes start clean."""

import subprocess
import sys
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
