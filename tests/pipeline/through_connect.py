"""What a client of Spark Connect gets from us, as JSON: run by test_connect.py in a process of its own.

Words: a folder with a recorded run (`recording.recorded_run`), and an empty one.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from topicweave.errors import TopicweaveError
from topicweave.pipeline import generated, imported, measure, sampled, tables_in
from topicweave.pipeline.graphs import api
from topicweave.pipeline.java import find_java


def tried(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except TopicweaveError as error:
        return str(error)


def main(recorded: Path, empty: Path) -> None:
    os.environ |= {"JAVA_HOME": str(find_java().home), "PYSPARK_PYTHON": sys.executable}
    from pyspark.sql import SparkSession

    # Starts a server on loopback, and is its client.
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    tables = {
        name: spark.read.parquet(f"{recorded}/telemetry/{name}.parquet")
        for name in ("links", "publishes", "deliveries", "control")
    }
    wishes = spark.read.parquet(f"{recorded}/workload/subscriptions.parquet")
    graph = api.of_frames({"links": tables["links"], "subscriptions": wishes})
    changes = spark.createDataFrame(
        [(0.0, "a", "join"), (5.0, "a", "leave")], "time double, node string, change string"
    )
    (empty / "edges.txt").write_text("1 2\n2 3\n")
    found = {
        "client": type(spark).__module__,
        "measure": {row["measure"]: row["value"] for row in measure(tables, wishes).collect()},
        "tables_in": tables_in(spark, recorded / "workload")["subscriptions"].count(),
        "generated": generated(spark, "vitis-low", nodes=50)["subscriptions"].count(),
        "components": api.named_components(spark, graph).toArrow().to_pylist(),
        "distances": api.named_distances(spark, graph).toArrow().to_pylist(),
        "similar": api.named_similar(spark, graph)[0].toArrow().to_pylist(),
        "cooccurrence": api.named_cooccurrence(spark, graph)[0].toArrow().to_pylist(),
        "communities": api.named_communities(spark, graph)[0].toArrow().to_pylist(),
        "survival": api.sessions_survival(spark, api.of_frames({"churn": changes})).median,
        "last_moment": api.last_moment(spark, graph, None)[1],
        "imported": tried(lambda: imported(spark, "edges", empty / "edges.txt", empty / "out")),
        "sampled": tried(lambda: sampled(spark, "topics", recorded / "workload", empty / "out", topics=3)),
    }
    spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
