"""`topicweave cluster …`: what a cluster's workers need, and whether they have it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from topicweave.cli.spark import Conf, Master, Verbose

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Prepare a Spark cluster.")


@app.command()
def pack(
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where to put them; a cache of yours if not given.")
    ] = None,
) -> None:
    """Pack the libraries that workers need into an archive, and this project into a wheel.

    Workers need a Python of the same minor version and nothing else. The archive is made once for each set of
    versions. It fits machines of the same system and processor as this one.

    \b
    Example:
      topicweave cluster pack
      topicweave workload describe /shared/w --master spark://head:7077 --conf spark.archives=…#env
    """
    from topicweave.pipeline.packing import MINOR, cache_folder, environment, project

    folder = out or cache_folder()
    archive = environment(folder)
    typer.echo(f"--conf spark.archives={archive.absolute()}#env")
    typer.echo(
        f"{archive.stat().st_size / 1e6:.0f} MB of libraries for Python {MINOR}; add the option above to every "
        f"command with --master. With spark-submit: --archives {archive.absolute()}#env "
        f"--conf spark.pyspark.python=./env/bin/python --py-files {project(folder).absolute()}",
        err=True,
    )


@app.command()
def check(master: Master = None, conf: Conf = None, verbose: Verbose = False) -> None:
    """Ask every worker whether its Python can do the work.

    \b
    Example:
      topicweave cluster check --master spark://head:7077 --conf spark.archives=…#env
    """
    from topicweave.cli.spark import spark_for
    from topicweave.pipeline.workers import ask_all, cores, here

    with spark_for("cluster check", master, conf, verbose, light=True) as spark:
        found = sorted(ask_all(spark, lambda _numbers: [here()]))
        for worker in found:
            typer.echo(worker)
        typer.echo(f"{len(found)} workers with {cores(spark)} cores are ready", err=True)
