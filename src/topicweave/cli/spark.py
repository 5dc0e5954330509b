"""Spark for a command: started where the user says, silent unless asked, its failures told in one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topicweave.errors import BadInput, TopicweaveError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from topicweave.runs.runner import Executor

Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Where Spark runs: a cluster's spark://…, yarn, k8s://…, or local[*], here. "
        "If not given: where spark-submit or spark-defaults.conf says, else here.",
    ),
]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark's own; may be given several times."),
]
Verbose = Annotated[
    bool, typer.Option("--verbose", help="Show Spark's messages, and where an error came from.")
]
InCatalog = Annotated[
    str | None,
    typer.Option(
        "--table",
        metavar="DB.NAME",
        help="Also save the result in Spark's catalog: as DB.NAME, or DB.NAME_TABLE where there are several tables.",
    ),
]
Elsewhere = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Run on Spark there, one task per run: 'local[*]', spark://…, yarn."),
]
Runs = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Where finished runs are kept, for all commands; if not given, `runs` beside --out.",
    ),
]


@contextmanager
def spark_for(
    command: str,
    master: str | None,
    conf: Sequence[str] | None,
    verbose: bool,
    *,
    steps: bool = False,
    light: bool = False,
) -> Iterator[SparkSession]:
    """A session for the length of a command, its workers looked at before it starts.

    With `steps` its user sees what it is at; other commands have a progress of their own. With `light` Java
    has little to do.
    """
    from topicweave.cli.progress import step_progress
    from topicweave.pipeline import watching
    from topicweave.pipeline.packing import ship_project
    from topicweave.pipeline.session import LIGHT, VERBOSE, is_local, spark_session
    from topicweave.pipeline.workers import check_python, described

    settings = dict(_setting(text) for text in conf or [])
    if light:
        settings[LIGHT] = "yes"
    if verbose:
        settings |= {VERBOSE: "yes", "spark.ui.showConsoleProgress": "true", "spark.log.level": "INFO"}
    with (
        one_line_failures(verbose),
        spark_session(master, app=f"topicweave {command}", **settings) as spark,
        described(spark, f"topicweave {command}"),
    ):
        if verbose and spark.sparkContext.uiWebUrl:
            typer.echo(f"Spark's page: {spark.sparkContext.uiWebUrl}", err=True)
        if not is_local(spark.sparkContext.master):
            ship_project(spark)
            check_python(spark)
        if not steps or verbose:
            yield spark
            return
        with step_progress(command) as report, watching.steps(spark, report):
            yield spark


def in_catalog(spark: SparkSession, folder: Path, name: str | None, overwrite: bool) -> None:
    """Save a folder's tables under a name, if one is given."""
    if name is None:
        return
    from topicweave.pipeline import catalog

    catalog.refuse_forgetful(spark, name)
    for table, rows in catalog.save(spark, folder, name, overwrite).items():
        typer.echo(f"{table}: {rows:,} rows", err=True)


@contextmanager
def executor_for(
    command: str, workers: int | None, master: str | None, conf: Sequence[str] | None, verbose: bool
) -> Iterator[Executor]:
    """What carries runs out for the length of a command: Spark where a master is named, else processes of
    this machine.
    """
    if master is None:
        from topicweave.runs.runner import Processes

        yield Processes(workers)
        return
    from topicweave.pipeline.executor import SparkExecutor

    with spark_for(command, master, conf, verbose, light=True) as spark:
        yield SparkExecutor(spark)


def _setting(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name.startswith("spark."):
        raise BadInput(f"--conf {text!r}: not a setting; write it as spark.something=value")
    return name, value


@contextmanager
def one_line_failures(verbose: bool) -> Iterator[None]:
    """Spark's exceptions are pages long; their cause is a line."""
    try:
        yield
    except (TopicweaveError, OSError, KeyboardInterrupt):
        raise
    except Exception as error:
        if verbose or not _is_sparks(error):
            raise
        from topicweave.pipeline.causes import cause
        from topicweave.pipeline.session import kept_log

        log = kept_log()
        where = f"Spark's log is {log}" if log else "add --verbose to see where"
        raise TopicweaveError(
            f"a Spark job failed: {cause(str(error))}; {where}, "
            "or run the same command again to continue with what is finished"
        ) from error


def _is_sparks(error: Exception) -> bool:
    return type(error).__module__.split(".")[0] in ("pyspark", "py4j")
