"""`topicweave graph …`: what overlays, interests and sessions look like, at any size, on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from topicweave.cli.options import Format, sharing
from topicweave.cli.spark import Conf, Master, Verbose, spark_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from topicweave.pipeline.measuring.spark import TableSource

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Graphs of any size: overlays, interests, sessions."
)

Telemetry = Annotated[Path, typer.Argument(metavar="DIR", help="A folder with links.parquet.")]
Lists = Annotated[
    Path, typer.Argument(metavar="DIR", help="A workload: a folder with subscriptions.parquet.")
]
OfTopics = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Split the graph by the topics of this workload; by default it is one graph."
    ),
]
OfRun = Annotated[str | None, typer.Option(metavar="NAME", help="Which run, if the folder has several.")]
Least = Annotated[int, typer.Option(metavar="N", help="Leave out pairs that fewer nodes want.")]
SHOWN = 20


class Asked(NamedTuple):
    """Where Spark runs, and what becomes of the rows: all commands ask for it in the same words."""

    format: str
    master: str | None
    conf: list[str] | None
    verbose: bool
    out: Path | None = None
    overwrite: bool = False

    def spark(self, command: str) -> AbstractContextManager[SparkSession]:
        if self.out is not None:
            from topicweave.pipeline.staging import refuse_losing

            refuse_losing(self.out, self.overwrite)
        return spark_for(f"graph {command}", self.master, self.conf, self.verbose)

    def keep(
        self, rows: DataFrame, name: str, order: Sequence[str], *sources: Path | None, **options: object
    ) -> None:
        """All rows as a table, if one is wanted; with what it was made from, and how."""
        if self.out is None:
            return
        from topicweave.pipeline.graphs.api import TABLES
        from topicweave.pipeline.parts import write_table
        from topicweave.pipeline.staging import mark_of, staged, write_about

        rows.persist()  # they are sampled, written and shown
        plan = {"command": f"graph {name}", **options}
        parents = {str(folder): mark_of(folder) for folder in sources if folder}
        with staged(self.out, plan, self.overwrite, parents) as staging:
            write_table(rows, staging.table(name), TABLES[name], order[0], order)
            write_about(staging, plan)

    def show(self, rows: DataFrame, by: str) -> None:
        """The first rows: all of them are in --out."""
        from topicweave.cli.output import print_json

        others = [name for name in rows.columns if name != by]
        first = rows.orderBy([by, *others], ascending=[False] + [True] * len(others)).limit(SHOWN).toArrow()
        if self.format == "json":
            print_json(first.to_pylist())
            return
        _table(first.column_names, [[_cell(value) for value in row.values()] for row in first.to_pylist()])


def _asked(
    format: Format = "table",  # noqa: A002
    master: Master = None,
    conf: Conf = None,
    verbose: Verbose = False,
) -> Asked:
    return Asked(format, master, conf, verbose)


def _kept(
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Also write all rows as a table.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing table.")] = False,
    format: Format = "table",  # noqa: A002
    master: Master = None,
    conf: Conf = None,
    verbose: Verbose = False,
) -> Asked:
    return Asked(format, master, conf, verbose, out, overwrite)


@app.command()
@sharing(_kept, "asked")
def components(
    telemetry: Telemetry,
    workload: OfTopics = None,
    run: OfRun = None,
    *,
    asked: Asked,
) -> None:
    """Find connected components of the last snapshot; with a workload, those of every topic's own links.

    \b
    Example:
      topicweave graph components out/telemetry --workload workloads/mine
    """
    from topicweave.pipeline.graphs.api import named_components

    with asked.spark("components") as spark:
        from pyspark.sql import functions as sf

        rows = named_components(spark, _overlay(spark, telemetry, workload, run)).persist()
        asked.keep(rows, "components", ("topic", "node"), telemetry, workload, run=run)
        parts = rows.groupBy("topic", "component").count()
        found = parts.groupBy("topic").agg(sf.sum("count").alias("nodes"), sf.count("*").alias("components"))
        asked.show(found, by="components")


@app.command()
@sharing(_kept, "asked")
def diameter(
    telemetry: Telemetry,
    workload: OfTopics = None,
    run: OfRun = None,
    registers: Annotated[
        int, typer.Option(metavar="N", help="Bytes for each node and topic: more, and estimates are better.")
    ] = 64,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the estimate.")] = 0,
    *,
    asked: Asked,
) -> None:
    """Estimate distances in the last snapshot by HyperANF: the diameter (at least), the effective one (90%),
    and the mean.

    \b
    Example:
      topicweave graph diameter out/telemetry --workload workloads/mine
    """
    from topicweave.pipeline.graphs.api import named_distances

    with asked.spark("diameter") as spark:
        rows = named_distances(spark, _overlay(spark, telemetry, workload, run), registers, seed)
        asked.keep(
            rows, "distances", ("topic",), telemetry, workload, run=run, registers=registers, seed=seed
        )
        asked.show(rows, by="diameter")


@app.command()
@sharing(_kept, "asked")
def similar(
    workload: Lists,
    threshold: Annotated[float, typer.Option(metavar="S", help="How alike (Jaccard), from 0 to 1.")] = 0.5,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the hash functions.")] = 0,
    *,
    asked: Asked,
) -> None:
    """Find pairs of nodes with like interests, by MinHash: 87% of those at 0.5, and nearly all above 0.7.

    \b
    Example:
      topicweave graph similar workloads/mine --threshold 0.7 --out out/similar
    """
    from topicweave.pipeline.graphs.api import named_similar

    with asked.spark("similar") as spark:
        rows, crowded = named_similar(spark, _files(spark, workload, "subscriptions"), threshold, seed)
        if crowded:
            typer.echo(f"{crowded:,} groups were too large to compare all of their pairs", err=True)
        asked.keep(rows, "similar", ("node", "other"), workload, threshold=threshold, seed=seed)
        asked.show(rows, by="similarity")


@app.command()
@sharing(_kept, "asked")
def cooccurrence(
    workload: Lists,
    least: Least = 1,
    *,
    asked: Asked,
) -> None:
    """Count for each pair of topics how many nodes want both.

    \b
    Example:
      topicweave graph cooccurrence workloads/mine --least 10
    """
    from topicweave.pipeline.graphs.api import named_cooccurrence

    with asked.spark("cooccurrence") as spark:
        rows, left_out = named_cooccurrence(spark, _files(spark, workload, "subscriptions"), least)
        _tell_left_out(left_out)
        asked.keep(rows, "cooccurrence", ("topic", "other"), workload, least=least)
        asked.show(rows, by="nodes")


@app.command()
@sharing(_kept, "asked")
def communities(
    workload: Lists,
    least: Least = 1,
    *,
    asked: Asked,
) -> None:
    """Find communities of topics that the same nodes want, by label propagation.

    \b
    Example:
      topicweave graph communities workloads/mine --least 10 --out out/communities
    """
    from topicweave.pipeline.graphs.api import named_communities

    with asked.spark("communities") as spark:
        rows, left_out = named_communities(spark, _files(spark, workload, "subscriptions"), least)
        _tell_left_out(left_out)
        rows = rows.persist()
        asked.keep(rows, "communities", ("community", "topic"), workload, least=least)
        asked.show(rows.groupBy("community").count().toDF("community", "topics"), by="topics")


@app.command()
@sharing(_asked, "asked")
def survival(
    workload: Annotated[Path, typer.Argument(metavar="DIR", help="A folder with churn.parquet.")],
    resolution: Annotated[
        float, typer.Option(metavar="S", help="Lengths are counted in units of this.")
    ] = 1.0,
    end: Annotated[
        float | None, typer.Option(metavar="S", help="When the record ends; its last change.")
    ] = None,
    *,
    asked: Asked,
) -> None:
    """Estimate how long sessions last (Kaplan and Meier). Sessions that go on when the record ends count as
    lasting longer.

    \b
    Example:
      topicweave graph survival workloads/mine --resolution 60
    """
    from topicweave.cli.output import print_json
    from topicweave.pipeline.graphs.api import sessions_survival

    with asked.spark("survival") as spark:
        found = sessions_survival(spark, _files(spark, workload, "churn"), resolution, end)
    if asked.format == "json":
        print_json(
            {name: column.tolist() for name, column in found._asdict().items()} | {"median": found.median}
        )
        return
    typer.echo(
        f"{found.ended.sum():,} sessions ended, {found.lasting.sum():,} go on; half last longer than {found.median:g} s"
    )
    step = max(1, len(found.seconds) // SHOWN)
    rows = zip(found.seconds[::step].tolist(), found.longer[::step].tolist(), strict=True)
    _table(("seconds", "last longer"), [(f"{seconds:g}", f"{share:.4f}") for seconds, share in rows])


def _overlay(spark: SparkSession, telemetry: Path, workload: Path | None, run: str | None) -> TableSource:
    """The last moment of a run's links, and the workload's lists if they are asked for."""
    from topicweave.pipeline.graphs.api import at_moment, last_moment, tables_in

    files = {"links": _parts(telemetry, "links")}
    if workload is not None:
        files["subscriptions"] = _parts(workload, "subscriptions")
    source = tables_in(spark, files)
    return at_moment(source, *last_moment(spark, source, run))


def _files(spark: SparkSession, folder: Path, table: str) -> TableSource:
    from topicweave.pipeline.graphs.api import tables_in

    return tables_in(spark, {table: _parts(folder, table)})


def _parts(folder: Path, table: str) -> list[Any]:
    from topicweave.errors import BadInput
    from topicweave.pipeline.staging import table_files

    if not (found := table_files(folder, table)):
        raise BadInput(f"{folder}: no {table}.parquet")
    return found


def _tell_left_out(nodes: int) -> None:
    if nodes:
        typer.echo(f"{nodes:,} nodes have so many topics that they were left out", err=True)


def _cell(value: Any) -> str:
    return "–" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.table import Table

    from topicweave.cli.output import show

    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading)
    for row in rows:
        table.add_row(*row)
    show(table)
