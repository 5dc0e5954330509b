"""DataFrames in and out, and tables in Spark's catalog."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from topicweave import pipeline
from topicweave.cli.spark import in_catalog
from topicweave.errors import BadInput
from topicweave.pipeline import catalog
from topicweave.pipeline.generate import generate


def test_a_drawn_workload_has_the_rows_of_the_written_one(spark: SparkSession, tmp_path: Path) -> None:
    generate("magnet-spatial", {"nodes": 50, "average": 5}, 3, tmp_path / "w")
    drawn = pipeline.generated(spark, "magnet-spatial", seed=3, nodes=50, average=5)
    written = pipeline.tables_in(spark, tmp_path / "w")
    assert drawn.keys() == written.keys() == {"topics", "hosts", "subscriptions"}
    for name, rows in drawn.items():
        assert sorted(rows.collect()) == sorted(written[name].select(*rows.columns).collect())


def test_a_sample_of_a_data_frame_is_that_of_its_folder(spark: SparkSession, tmp_path: Path) -> None:
    generate("vitis-low", {"nodes": 60}, 1, tmp_path / "w")
    wishes = pipeline.tables_in(spark, tmp_path / "w")["subscriptions"]
    few = pipeline.sampled(spark, "topics", wishes, tmp_path / "few", topics=20, seed=3)
    same = pipeline.sampled(spark, "topics", str(tmp_path / "w"), tmp_path / "same", topics=20, seed=3)
    assert sorted(few["subscriptions"].collect()) == sorted(same["subscriptions"].collect())
    with pytest.raises(BadInput, match="already there"):
        pipeline.sampled(spark, "topics", wishes, tmp_path / "few", topics=20, seed=3)


def test_a_parquet_trace_is_imported(spark: SparkSession, tmp_path: Path) -> None:
    """By the names of its columns; a row without a topic is set aside with its number."""
    table = pa.table(
        {"item": [7, 8, None, 7], "when": [0.0, 1.0, 2.0, 3.0], "user": ["ann", "bob", "eve", "ann"]}
    )
    pq.write_table(table, tmp_path / "trace.parquet", row_group_size=2)
    tables = pipeline.imported(
        *(spark, "pairs", tmp_path / "trace.parquet", tmp_path / "w"),
        node="user",
        topic="item",
        max_rejects=0.5,
    )
    assert sorted(map(tuple, tables["subscriptions"].collect())) == [("ann", "7"), ("bob", "8")]
    (reject,) = tables["rejects"].collect()
    assert (reject["line"], reject["text"]) == (3, "['eve', None]")


def test_tables_are_saved_in_the_catalog(spark: SparkSession, tmp_path: Path) -> None:
    """In a local warehouse; by run where there are runs, and read back."""
    spark.sql(f"CREATE DATABASE tw LOCATION '{(tmp_path / 'warehouse').as_uri()}'")
    try:
        generate("vitis-low", {"nodes": 30}, 1, tmp_path / "w")
        saved = catalog.save(spark, tmp_path / "w", "tw.mine")
        assert saved.keys() == {"tw.mine_subscriptions", "tw.mine_topics", "tw.mine_hosts"}
        assert spark.table("tw.mine_subscriptions").select("node").distinct().count() == 30
        with pytest.raises(BadInput, match=r"there is a table tw\.mine_"):
            catalog.save(spark, tmp_path / "w", "tw.mine")
        (tmp_path / "m").mkdir()
        rows = pa.table({"run": ["a", "a", "b"], "measure": ["x", "y", "x"], "value": [1.0, 2.0, 3.0]})
        pq.write_table(rows, tmp_path / "m" / "measures.parquet")
        assert catalog.save(spark, tmp_path / "m", "tw.measures") == {"tw.measures": 3}
        assert {path.name for path in (tmp_path / "warehouse" / "measures").glob("run=*")} == {
            "run=a",
            "run=b",
        }
        with pytest.raises(BadInput, match="catalog ends with the command"):
            in_catalog(spark, tmp_path / "m", "measures", overwrite=False)
        with pytest.raises(BadInput, match="no database 'nowhere'"):
            catalog.save(spark, tmp_path / "m", "nowhere.measures")
    finally:
        spark.sql("DROP DATABASE tw CASCADE")
