"""`topicweave sweep`: a grid of runs on Spark."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from topicweave.cli.options import Telemetry
from topicweave.cli.spark import Conf, InCatalog, Master, Runs, Verbose
from topicweave.errors import UnknownName

if TYPE_CHECKING:
    from topicweave.pipeline.sweep import Swept

MEASURES = "degree_mean,degree_max,partitioned_topics,hit_ratio,noise,hops_mean,latency_p50,control_messages"


def sweep(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="What to sweep over.")],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of the results; the same folder continues a sweep.")
    ],
    measures: Annotated[
        str, typer.Option(metavar="A,B,…", help="Measures to print; all are in the table.")
    ] = MEASURES,
    format: Annotated[Literal["table", "json"], typer.Option(help="What to print.")] = "table",  # noqa: A002
    telemetry: Telemetry = None,
    retry: Annotated[bool, typer.Option("--retry", help="Repeat runs that failed.")] = False,
    table: InCatalog = None,
    runs: Runs = None,
    master: Master = None,
    conf: Conf = None,
    verbose: Verbose = False,
) -> None:
    """Run every combination of systems, parameters, workloads, settings and seeds, one Spark task each.

    Results are appended to DIR/results.parquet as they finish. The same command continues a sweep that was stopped or
    killed. Finished runs are kept (see --runs) and shared with the other commands. A run that fails is recorded in
    DIR/failures.parquet, and the others continue; the command then exits with 1.

    \b
    Example:
      topicweave sweep coverage.toml --out out/coverage --master 'local[*]'
      topicweave sweep coverage.toml --out out/coverage --telemetry out/coverage-telemetry

    \b
    coverage.toml:
      seeds = [0, 1, 2]              # or: replications = 3
      kind = "trial"                 # of run, with all its fields; "overlay" if not given
      settle = 20.0
      latency = ["50ms", "10-100ms"] # a list holds alternatives
      churn = ["", "600/60"]
      [[systems]]
      name = "spidercast"
      k_greedy = [3, 4]
      [[workloads]]
      model = "spidercast"           # or: folder = "workloads/mine"
      nodes = [200, 400]
    """
    from topicweave.cli.output import print_json, show
    from topicweave.cli.progress import progress
    from topicweave.cli.spark import in_catalog, spark_for
    from topicweave.pipeline import sweep as sweeping
    from topicweave.pipeline.executor import SparkExecutor
    from topicweave.pipeline.grid import read_grid
    from topicweave.runs.store import beside

    cells = read_grid(file)
    wanted = [name.strip() for name in measures.split(",") if name.strip()]
    store = runs or beside(out)
    with progress(file.stem) as report, spark_for("sweep", master, conf, verbose, light=True) as spark:
        executor = SparkExecutor(spark)
        done = sweeping.sweep(cells, out, store, executor, retry=retry, progress=report, telemetry=telemetry)
        try:
            # Not every kind of run has all of the usual ones.
            rows = sweeping.summary(spark, out, cells, wanted, all_of_them=measures != MEASURES)
        except UnknownName:
            # It may have none because runs failed.
            _name_failed(out, done)
            raise
        in_catalog(spark, out, table, overwrite=True)
    if format == "json":
        print_json({"runs": done.runs, "failures": done.failures, "rows": rows})
    else:
        show(_table(rows))
        typer.echo(f"{done.runs:,} runs, {done.failures:,} failed; results in {out / 'results.parquet'}")
    if done.dropped:
        typer.echo(
            f"{done.dropped:,} runs of another grid or of other code are out of the tables; {store} keeps their results",
            err=True,
        )
    if telemetry is not None:
        typer.echo(f"telemetry: topicweave measure {telemetry}", err=True)
    _name_failed(out, done)
    if done.failures:
        raise typer.Exit(1)


def _name_failed(out: Path, done: Swept) -> None:
    from topicweave.pipeline import sweep as sweeping

    for failure in sweeping.failures(out) if done.failures else []:
        typer.echo(
            f"failed: {failure['system']} {failure['parameters']} {failure['settings']} on {failure['workload']}, "
            f"seed {failure['seed']}: {failure['error']}",
            err=True,
        )


def _table(rows: list[dict[str, Any]]) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("measure", "workload", "system", "parameters", "settings"):
        table.add_column(heading)
    for heading in ("mean", "± 95 %", "runs"):
        table.add_column(heading, justify="right")
    workloads = short_names([row["workload"] for row in rows])
    for row in rows:
        interval = "–" if math.isnan(row["ci95"]) else f"{row['ci95']:.4g}"
        table.add_row(
            row["measure"],
            workloads[row["workload"]],
            row["system"],
            _settings(row["parameters"]),
            _settings(row["settings"]),
            f"{row['mean']:.4g}",
            interval,
            str(row["replications"]),
        )
    return table


def short_names(paths: list[str]) -> dict[str, str]:
    """Paths without the folders that they lie in, where that tells them apart.

    >>> short_names(["/data/a/facebook", "vitis-low nodes=20", "/data/b/x", "/data/c/x"])["/data/a/facebook"]
    'facebook'
    >>> short_names(["/data/b/x", "/data/c/x"])["/data/b/x"]
    '/data/b/x'
    """
    last = {path: path.rpartition("/")[2] for path in paths}
    return {path: name if list(last.values()).count(name) == 1 else path for path, name in last.items()}


def _settings(text: str) -> str:
    return " ".join(f"{name}={value}" for name, value in json.loads(text).items())
