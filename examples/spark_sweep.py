"""A grid of runs on Spark: two systems, two sizes, two seeds; means with confidence intervals.

    python examples/spark_sweep.py [OUT] [MASTER]

The grid is in sweep.toml beside this file. `topicweave sweep` does the same from the command line.
"""

import sys
from pathlib import Path

from topicweave.pipeline.grid import read_grid
from topicweave.pipeline.session import spark_session
from topicweave.pipeline.sweep import summary, sweep


def main(out: Path, master: str) -> None:
    runs = read_grid(Path(__file__).with_name("sweep.toml"))
    with spark_session(master) as spark:
        done = sweep(spark, runs, out)
        rows = summary(spark, out, runs, ["degree_mean", "hit_ratio"])
    for row in rows:
        print(
            f"{row['measure']:12} {row['workload']:32} {row['system']:11} {row['mean']:7.2f} ± {row['ci95']:.2f}"
        )
    print(f"{done.runs} runs, {done.failures} failed; results in {out / 'results.parquet'}")


if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    main(Path(arguments.get(1, "out/example-sweep")), arguments.get(2, "local[*]"))
