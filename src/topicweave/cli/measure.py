"""`topicweave measure`: every measure of recorded runs, from telemetry of any size."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topicweave.cli.options import Format
from topicweave.cli.spark import Conf, InCatalog, Master, Verbose


def measure(
    telemetry: Annotated[Path, typer.Argument(metavar="DIR", help="A folder of telemetry tables.")],
    workload: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="The workload that was run. If not given, what nodes recorded of it."
        ),
    ] = None,
    run: Annotated[
        str | None, typer.Option(metavar="NAME", help="One run; all of them if not given.")
    ] = None,
    start: Annotated[float, typer.Option(metavar="S", help="Count events published from here on.")] = 0.0,
    end: Annotated[float | None, typer.Option(metavar="S", help="… and until here; to the last row.")] = None,
    grace: Annotated[float, typer.Option(metavar="S", help="Give newcomers this long to settle.")] = 0.0,
    window: Annotated[float, typer.Option(metavar="S", help="A delivery later than this is a miss.")] = float(
        "inf"
    ),
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also write a table: run, measure, value.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing table.")] = False,
    table: InCatalog = None,
    format: Format = "table",  # noqa: A002
    master: Master = None,
    conf: Conf = None,
    verbose: Verbose = False,
) -> None:
    """Compute every measure of the runs in a folder of links, publishes, deliveries and control tables.

    Up to six million rows in memory, unless --master is given; beyond that on Spark, after one pass over the
    deliveries of all runs.

    \b
    Example:
      topicweave measure out/telemetry
      topicweave measure out/telemetry --workload workloads/mine --out out/measures
    """
    from functools import partial

    from rich.table import Table

    from topicweave.cli.output import print_json, show
    from topicweave.cli.spark import in_catalog, spark_for
    from topicweave.errors import BadInput
    from topicweave.pipeline.measuring.api import measure_folder, write_measures
    from topicweave.pipeline.staging import mark_of, refuse_losing

    if out is not None:
        refuse_losing(out, overwrite)
    elif table is not None:
        raise BadInput("--table: give --out as well; the catalog's table is made of that one")
    options = {"start": start, "end": end, "grace": grace, "window": window}
    answers = measure_folder(
        telemetry,
        workload,
        partial(spark_for, "measure", master, conf, verbose, steps=True, light=True),
        run=run,
        in_memory=master is None,
        **options,
    )
    if out is not None:
        sources = {str(folder): mark_of(folder) for folder in (telemetry, workload) if folder}
        plan = {"command": "measure", "run": run, **options, "window": str(window)}
        write_measures(answers, out, plan, overwrite, sources)
        if table is not None:
            with spark_for("measure", master, conf, verbose) as spark:
                in_catalog(spark, out, table, overwrite)
    if format == "json":
        print_json(answers)
        return
    shown = Table(box=None, pad_edge=False)
    shown.add_column("measure")
    for name in answers:
        shown.add_column(name, justify="right")
    for measure_name in dict.fromkeys(one for found in answers.values() for one in found):
        shown.add_row(
            measure_name, *(f"{found.get(measure_name, float('nan')):.6g}" for found in answers.values())
        )
    show(shown)
