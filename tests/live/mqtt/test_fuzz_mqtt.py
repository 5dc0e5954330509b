"""Half a minute of fuzz_mqtt.py: bytes that break a promise are found, or none are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("atheris")

ROOT = Path(__file__).parent.parent.parent.parent


@pytest.mark.fuzz
def test_no_bytes_of_a_client_raise_anything_but_an_mqtt_error(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "tests/live/mqtt/fuzz_mqtt.py"), "-max_total_time=30", "-seed=1"]
    paths = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    answer = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr[-3000:]
    assert "Done " in answer.stderr
