"""What tests share. Spark is started once per run, and only if a test asks for it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A whole system in the simulator takes as long as it takes; pytest's own timeout catches what hangs.
settings.register_profile("topicweave", deadline=None)
settings.load_profile("topicweave")


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """A real Spark in this process's keeping: two cores, few partitions, nothing left behind."""
    from topicweave.pipeline.session import spark_session

    settings = {
        "spark.sql.shuffle.partitions": "2",
        # On a handful of rows, planning anew and compiling each query takes longer than running it; test_measure.py
        # turns both on, as they are for users.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
    }
    with spark_session("local[2]", app="tests", **settings) as session:
        yield session
