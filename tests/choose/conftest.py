"""A package of a stranger's, as pip would install it."""

import subprocess
import sys
from pathlib import Path

import pytest

SYSTEM = """
from topicweave.systems.spidercast.node import SpiderCastNode
from topicweave.systems.spidercast.parameters import SpiderCastParameters
from topicweave.systems.system import System

FLOCK = System(
    name="flock",
    summary="a stranger's system",
    source="a stranger",
    parameters=SpiderCastParameters,
    build=SpiderCastNode,
    connects_topics=True,
)
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder for PYTHONPATH with a working system and three that do not work."""
    folder = tmp_path / "site"
    metadata = folder / "flock_systems-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: flock-systems\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[topicweave.systems]\n"
        "flock = flock_systems:FLOCK\n"
        "herd = herd_that_is_not_there:HERD\n"
        "spidercast = flock_systems:FLOCK\n"
        "pack = flock_systems:__name__\n"
    )
    (folder / "flock_systems.py").write_text(SYSTEM)
    return folder


def python(code: str, path: Path, cwd: Path) -> str:
    """What a program prints, in a process of its own."""
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(path)},
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
