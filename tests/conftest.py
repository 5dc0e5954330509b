"""What tests share. Spark is started once per process, and only if a test asks for it."""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests import java_archive
from tests.miniature_data import write_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A whole system in the simulator takes as long as it takes; pytest's own timeout catches what hangs.
settings.register_profile("topicweave", deadline=None)
settings.load_profile("topicweave")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background of a script, which ignores Ctrl-C. Tests press it, and commands that they
    # start would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests start hundreds of processes. With this set, each would compile all that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

for name, value in java_archive.options().items():
    os.environ.setdefault(name, value)

LONGEST = (
    "live",
    "spark",
    "second spark",
    "arrays",
    "mqtt",
    "cluster",
    "tests/benchmarks/",
    "tests/examples/",
    "tests/cli/test_compare.py",
    "tests/choose/",
    "tests/systems/",
    "tests/blocks/test_peer_sampling.py",
    "tests/blocks/test_oscar.py",
)
"""Side by side, these begin first: what is begun last should be short."""

SECOND_SPARK = {
    "test_import.py",
    "test_in_a_terminal.py",
    "test_interrupt.py",
    "test_s3.py",
    "test_stream.py",
    "test_sweep.py",
}
"""Half of what shares a Spark shares another one: files whose tests wait a good deal for processes of their own."""

FOLDERS = {
    "tests/live/mqtt/": "mqtt",
    "tests/live/": "live",
    "tests/bulk/": "arrays",
    "tests/papers/": "arrays",
}
"""Whose files belong together."""


def pytest_xdist_auto_num_workers() -> int:
    """Two more than there are cores: live nodes and processes that tests start are waited for most of the time."""
    return min(6, (os.cpu_count() or 1) + 2)


def group(item: pytest.Item) -> str:
    """What one process runs: all that share a Spark (there are two, see below), or the cluster; all that wait
    for live nodes; all that Numba compiles the same functions for; a benchmark; else a file.
    """
    file = item.nodeid.partition("::")[0]
    if "spark" in getattr(item, "fixturenames", ()):
        return "second spark" if Path(file).name in SECOND_SPARK else "spark"
    if item.get_closest_marker("cluster"):
        return "cluster"
    if item.get_closest_marker("bench"):
        return item.nodeid
    for folder, name in FOLDERS.items():
        if file.startswith(folder):
            return name
    return file


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    groups = {item: group(item) for item in items}
    for item, name in groups.items():
        item.add_marker(pytest.mark.xdist_group(name))
    ranks = {
        name: next((rank for rank, long in enumerate(LONGEST) if name.startswith(long)), len(LONGEST))
        for name in set(groups.values())
    }
    items.sort(key=lambda item: ranks[groups[item]])


def pytest_collection_finish() -> None:
    """Let Python look for garbage seldom, and not through what pytest has read: a tenth of the time of tests/blocks."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """A real Spark in this process's keeping: two cores, few partitions, nothing left behind."""
    from topicweave.pipeline.session import spark_session

    if "PYTEST_XDIST_WORKER" in os.environ:
        # Where groups are lost (pytest 9.2 with pytest-xdist 3.8), every process would start one, and nobody
        # would notice.
        first, second = (tmp_path_factory.getbasetemp().parent / name for name in ("spark", "second-spark"))
        try:
            first.touch(exist_ok=False)
        except FileExistsError:
            second.touch(exist_ok=False)

    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.python.daemon.module": "tests.python_workers",
        # On a handful of rows, planning anew and compiling each query takes longer than running it; test_measure.py
        # turns both on, as they are for users.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    with spark_session("local[2]", app="tests", **settings) as session:
        yield session


@pytest.fixture(scope="session")
def miniature(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A made-up data folder, written once."""
    folder = tmp_path_factory.mktemp("miniature")
    write_all(folder)
    return folder


@pytest.fixture
def made_up_data(miniature: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """TOPICWEAVE_DATASETS names a made-up data folder."""
    monkeypatch.setenv("TOPICWEAVE_DATASETS", str(miniature))
    return miniature


@pytest.fixture
def real_data() -> Path:
    """The folder of the real data sets, for tests marked `real_data`."""
    folder = Path(os.environ.get("TOPICWEAVE_DATASETS", ""))
    assert folder.is_dir(), "set TOPICWEAVE_DATASETS to the folder of the real data sets (docs/workloads.md)"
    return folder
