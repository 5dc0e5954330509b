import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from topicweave.errors import BadInput, TopicweaveError
from topicweave.pipeline import java
from topicweave.pipeline.session import (
    LIGHT,
    _settings,
    default_settings,
    executors_python,
    keeps_tables,
    spark_session,
)


def test_workers_run_this_python_and_rows_cross_by_arrow(spark: SparkSession) -> None:
    def with_interpreter(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            where = pa.array([sys.executable] * batch.num_rows)
            yield pa.RecordBatch.from_arrays([batch["id"], where], names=["id", "python"])

    table = spark.range(1000).mapInArrow(with_interpreter, "id long, python string").toArrow()
    assert sorted(table["id"].to_pylist()) == list(range(1000))
    assert set(table["python"].to_pylist()) == {sys.executable}


def test_one_shuffle_partition_is_one_partition(spark: SparkSession) -> None:
    with spark_session(**{"spark.sql.shuffle.partitions": "1"}) as same:
        grouped = same.range(100).selectExpr("id % 7 as rest").groupBy("rest").count()
        assert grouped.rdd.getNumPartitions() == 1
        assert {row["rest"]: row["count"] for row in grouped.collect()} == {
            rest: len(range(rest, 100, 7)) for rest in range(7)
        }


def test_a_running_session_is_used_and_left_as_it_was(spark: SparkSession) -> None:
    name = "spark.sql.shuffle.partitions"
    before = spark.conf.get(name)
    with spark_session("local[1]", **{name: "5", "spark.driver.memory": "1g"}) as inner:
        assert inner is spark
        assert inner.conf.get(name) == "5"
    assert spark.conf.get(name) == before
    assert spark.range(3).count() == 3


def test_times_are_utc_and_nothing_listens_beyond_this_machine(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sparkContext.getConf().get("spark.driver.host") == "127.0.0.1"


def test_what_users_set_goes_before_what_we_would_choose(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "# ours\nspark.master   spark://head:7077\nspark.driver.memory=9g\n"
        "spark.sql.session.timeZone CET\nspark.driver.extraJavaOptions -Dx=1 -Dy=2\n"
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    given = default_settings()
    assert given["spark.master"] == "spark://head:7077"
    settings = _settings("local[2]", "app", given, {"spark.sql.shuffle.partitions": "7"})
    assert "spark.driver.memory" not in settings, "Spark takes it from the file"
    assert settings["spark.driver.extraJavaOptions"].startswith("-Dx=1 -Dy=2 -Dlog4j2")
    assert settings["spark.sql.session.timeZone"] == "UTC", "or tables would differ"
    assert settings["spark.sql.shuffle.partitions"] == "7"
    assert settings["spark.master"] == "local[2,4]"
    assert _settings("local[2]", "app", {}, {})["spark.driver.memory"] == "2g"
    assert "spark.driver.memory" not in _settings("spark://head:7077", "app", {}, {})
    assert "spark.ui.enabled" not in settings


def test_a_warehouse_is_kept_for_tables_that_last() -> None:
    assert keeps_tables({"spark.sql.warehouse.dir": "/data"})
    assert keeps_tables({"spark.sql.catalogImplementation": "hive"})
    assert not keeps_tables({"spark.sql.catalogImplementation": "in-memory"})


def test_java_compiles_quickly_where_it_has_little_to_do_unless_told_otherwise() -> None:
    def options(master: str, **wanted: str) -> str:
        return _settings(master, "app", {"spark.driver.extraJavaOptions": "-Dx=1"}, wanted)[
            "spark.driver.extraJavaOptions"
        ]

    light = {LIGHT: "yes"}
    assert options("local[2]", **light).startswith("-XX:TieredStopAtLevel=1 -Dx=1 "), (
        "theirs go last, and count"
    )
    assert options("local[2]").startswith("-Dx=1 ")
    assert options("spark://head:7077", **light).startswith("-Dx=1 "), "the executors have their own Java"


def test_executors_run_the_python_that_is_set_or_packed() -> None:
    packed = "/cache/topicweave-env-123.tar.gz"
    assert executors_python({"spark.archives": f"a.zip,{packed}#env"}) == "./env/bin/python"
    assert executors_python({"spark.archives": packed}) == "./topicweave-env-123.tar.gz/bin/python"
    assert executors_python({"spark.archives": packed, "spark.pyspark.python": "/p"}) == "/p"
    assert executors_python({"spark.archives": "other.tar.gz#env"}) is None


def test_a_spark_connect_server_is_refused_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for master, remote in (("sc://head", ""), (None, "sc://head")):
        monkeypatch.setenv("SPARK_REMOTE", remote)
        with pytest.raises(BadInput, match="sc://head: a Spark Connect server"), spark_session(master):
            pass


def test_without_a_java_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.setattr(java, "JVM_FOLDER", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with (
        pytest.raises(TopicweaveError, match=r"Spark needs Java 17 .*apt-get install") as error,
        spark_session(),
    ):
        pass
    assert "\n" not in str(error.value)


WHOLE_LIFE = """
import os
from pathlib import Path
from urllib.parse import urlparse
from topicweave.errors import TopicweaveError
from topicweave.pipeline.session import spark_session

with spark_session() as first:
    assert first.range(3).count() == 3
    assert first.sparkContext.master.startswith("local[*")
    assert "127.0.0.1" in first.sparkContext.uiWebUrl, "its page is there, for this machine alone"
assert "PYSPARK_PYTHON" not in os.environ, "the environment is not as it was"

try:
    with spark_session("nowhere://here"):
        pass
except TopicweaveError as error:
    print(error)

with spark_session("local[1]") as third:
    third.sql("CREATE TABLE mine AS SELECT 1 AS one")
    assert third.table("mine").count() == 1
    warehouse = Path(urlparse(third.conf.get("spark.sql.warehouse.dir")).path)
    assert [path.name for path in warehouse.iterdir()] == ["mine"]
    try:
        third.sql("select nothing")
    except Exception as error:
        failed = error
print("nothing" in str(failed), warehouse.exists())

try:
    with spark_session("local[1]") as fourth:
        fourth.sparkContext._gateway.proc.kill()
        fourth.range(3).count()
except TopicweaveError as error:
    print(error)
"""


def test_a_process_may_start_several_hears_nothing_but_errors_and_leaves_no_files(tmp_path: Path) -> None:
    """A life of its own, because a session of this process is already running."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK")}
    life = subprocess.run(
        [sys.executable, "-c", WHOLE_LIFE],
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert life.stdout.splitlines() == [
        "Spark did not start at nowhere://here: Could not parse Master URL: 'nowhere://here'",
        "True False",
        "Spark's Java process ended: it was killed, or ran out of memory",
    ]
    noise = [line for line in life.stderr.splitlines() if "WARN" in line or "log4j" in line]
    assert noise == []
    assert list(tmp_path.iterdir()) == []
