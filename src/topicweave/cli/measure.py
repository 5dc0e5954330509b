"""`topicweave measure`: every measure of recorded runs, from telemetry of any size."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topicweave.cli.options import Format
from topicweave.cli.spark import Conf, Master, Verbose


def measure(
    telemetry: Annotated[Path, typer.Argument(metavar="DIR", help="A folder of telemetry tables.")],
    workload: Annotated[Path, typer.Option(metavar="DIR", help="The workload that was run.")],
    run: Annotated[
        str | None, typer.Option(metavar="NAME", help="One run; all of them if not given.")
    ] = None,
    start: Annotated[float, typer.Option(metavar="S", help="Count events published from here on.")] = 0.0,
    end: Annotated[float | None, typer.Option(metavar="S", help="… and until here; to the last row.")] = None,
    grace: Annotated[float, typer.Option(metavar="S", help="Give newcomers this long to settle.")] = 0.0,
    window: Annotated[float, typer.Option(metavar="S", help="A delivery later than this is a miss.")] = float(
        "inf"
    ),
    format: Format = "table",  # noqa: A002
    master: Master = None,
    conf: Conf = None,
    verbose: Verbose = False,
) -> None:
    """Compute every measure of the runs in a folder of links, publishes, deliveries and control tables, on Spark.

    \b
    Example:
      topicweave measure out/telemetry --workload workloads/mine
    """
    from rich.table import Table

    from topicweave.cli.output import print_json, show
    from topicweave.cli.spark import spark_for
    from topicweave.errors import BadInput
    from topicweave.pipeline.measure import measure_on_spark, read_tables, runs_in

    if not (workload / "subscriptions.parquet").exists():
        raise BadInput(f"{workload}: no subscriptions.parquet; give the folder of the workload that was run")
    with spark_for("measure", master, conf, verbose) as spark:
        tables = read_tables(spark, telemetry)
        subscriptions = spark.read.parquet(str((workload / "subscriptions.parquet").absolute()))
        churn_path = workload / "churn.parquet"
        churn = spark.read.parquet(str(churn_path.absolute())) if churn_path.exists() else None
        answers = {
            name: measure_on_spark(
                tables, subscriptions, run=name, churn=churn, start=start, end=end, grace=grace, window=window
            )
            for name in ([run] if run is not None else runs_in(tables))
        }
    if format == "json":
        print_json(answers)
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("measure")
    for name in answers:
        table.add_column(name, justify="right")
    for measure_name in dict.fromkeys(one for found in answers.values() for one in found):
        table.add_row(
            measure_name, *(f"{found.get(measure_name, float('nan')):.6g}" for found in answers.values())
        )
    show(table)
