"""`topicweave stream`: measures over a folder that nodes append telemetry to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topicweave.cli.spark import LOCAL, Conf, Master, Verbose


def stream(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Nodes append files to DIR/deliveries.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where windows and the checkpoint go.")],
    window: Annotated[float, typer.Option(metavar="S", help="Seconds of event time in a window.")] = 60.0,
    lateness: Annotated[
        float, typer.Option(metavar="S", help="How late a row may come and still count.")
    ] = 300.0,
    once: Annotated[bool, typer.Option("--once", help="Count what is there, then end.")] = False,
    master: Master = LOCAL,
    conf: Conf = None,
    verbose: Verbose = False,
) -> None:
    """Count receptions, noise and hops per window while they come in; Ctrl-C ends it, the same command goes on.

    \b
    Example:
      topicweave stream out/live --out out/live-measures --window 10
    """
    from topicweave.cli.spark import spark_for
    from topicweave.pipeline.stream import start_stream

    with spark_for("stream", master, conf, verbose) as spark:
        query = start_stream(spark, folder, out, window=window, lateness=lateness, until_idle=once)
        try:
            query.awaitTermination()
        finally:
            query.stop()
    typer.echo(f"windows in {out / 'windows.parquet'}")
