"""What tests share. Spark is started once per run, and only if a test asks for it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.miniature_data import write_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A whole system in the simulator takes as long as it takes; pytest's own timeout catches what hangs.
settings.register_profile("topicweave", deadline=None)
settings.load_profile("topicweave")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Side by side (`make test`), one process runs a file, and one runs all that share the Spark below."""
    for item in items:
        shared = "spark" in getattr(item, "fixturenames", ())
        item.add_marker(pytest.mark.xdist_group("spark" if shared else item.nodeid.partition("::")[0]))


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """A real Spark in this process's keeping: two cores, few partitions, nothing left behind."""
    from topicweave.pipeline.session import spark_session

    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        # On a handful of rows, planning anew and compiling each query takes longer than running it; test_measure.py
        # turns both on, as they are for users.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
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
    """TOPICWEAVE_DATA names a made-up data folder."""
    monkeypatch.setenv("TOPICWEAVE_DATA", str(miniature))
    return miniature


@pytest.fixture
def real_data() -> Path:
    """The folder of the real data sets, for tests marked `real_data`."""
    folder = Path(os.environ.get("TOPICWEAVE_DATA", ""))
    assert folder.is_dir(), "set TOPICWEAVE_DATA to the folder of the real data sets (docs/workloads.md)"
    return folder
