"""A grid of runs on Spark: SpiderCast twice and Vitis, with two seeds each; means with confidence intervals.

    python examples/spark_sweep.py [OUT] [MASTER]

The grid is in sweep.toml beside this file. `topicweave sweep` does the same from the command line.
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

from topicweave.pipeline.executor import SparkExecutor
from topicweave.pipeline.grid import read_grid
from topicweave.pipeline.session import spark_session
from topicweave.pipeline.sweep import summary, sweep


def run(spark: SparkSession, out: Path) -> None:
    cells = read_grid(Path(__file__).with_name("sweep.toml"))
    done = sweep(cells, out, out / "runs", SparkExecutor(spark))
    for row in summary(spark, out, cells, ["degree_mean", "hit_ratio"]):
        what = f"{row['system']} {row['parameters']}"
        print(f"{row['measure']:12} {what:28} {row['mean']:6.2f} ± {row['ci95']:.2f}")
    print(f"{done.runs} runs, {done.failures} failed; results in {out / 'results.parquet'}")


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    with spark_session(given.get(2, "local[*]")) as session:
        run(session, Path(given.get(1, "out/example-sweep")))
