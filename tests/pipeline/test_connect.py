"""A client of Spark Connect, of PySpark's own server on loopback: what works through it gives the same, the
rest refuses.
"""

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.pipeline import through_connect
from tests.pipeline.recording import recorded_run
from topicweave.pipeline.graphs import api
from topicweave.pipeline.measuring.api import measure_folder

pytestmark = pytest.mark.spark_connect


def listed(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


def test_through_spark_connect(spark: SparkSession, tmp_path: Path) -> None:
    recorded, empty = tmp_path / "recorded", tmp_path / "empty"
    for folder in (recorded, empty):
        folder.mkdir()
    recorded_run(recorded)
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ["SPARK_CONNECT_LIBRARIES"]])
    done = subprocess.run(
        [sys.executable, "-m", through_connect.__name__, str(recorded), str(empty)],
        check=False,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found["client"].startswith("pyspark.sql.connect")

    (measures,) = measure_folder(
        recorded / "telemetry", recorded / "workload", lambda: nullcontext(spark)
    ).values()
    assert found["measure"] == pytest.approx(measures, rel=1e-12, nan_ok=True)
    wishes = pq.read_table(recorded / "workload" / "subscriptions.parquet").select(["node", "topic"])
    assert (found["tables_in"], found["generated"]) == (len(wishes), 50 * 50)
    links = pq.read_table(recorded / "telemetry" / "links.parquet").select(["node", "peer"])
    graph = api.of_frames(
        {"links": spark.createDataFrame(links), "subscriptions": spark.createDataFrame(wishes)}
    )
    for name, rows in (
        ("components", api.named_components(spark, graph)),
        ("distances", api.named_distances(spark, graph)),
        ("similar", api.named_similar(spark, graph)[0]),
        ("cooccurrence", api.named_cooccurrence(spark, graph)[0]),
        ("communities", api.named_communities(spark, graph)[0]),
    ):
        assert found[name], name
        assert listed(found[name]) == listed(rows.toArrow().to_pylist()), name
    moments = pq.read_table(recorded / "telemetry" / "links.parquet")["time"].to_pylist()
    assert (found["survival"], found["last_moment"]) == (5.0, max(moments))
    for name in ("imported", "sampled"):
        assert found[name].startswith(f"{name}: not through Spark Connect; use a session of a master")
    assert not (empty / "out").exists()
