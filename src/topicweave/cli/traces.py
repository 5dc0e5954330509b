"""`topicweave workload import | sample | describe`: raw traces into workloads, and what is in them, on Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from topicweave.cli.options import Seed, sharing
from topicweave.cli.spark import Conf, InCatalog, Master, Verbose, in_catalog

Out = Annotated[Path, typer.Option(metavar="DIR", help="The folder to write.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing folder of tables.")]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A workload's folder.")]

sampling = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Make a smaller workload out of a large one."
)


def formats() -> None:
    """List the formats that `workload import` reads.

    \b
    Example:
      topicweave workload formats
    """
    from rich.table import Table

    from topicweave.cli.output import show
    from topicweave.data.formats import FORMATS

    table = Table(box=None, pad_edge=False)
    for heading in ("FORMAT", "what a line holds", "between fields"):
        table.add_column(heading)
    for name, one in FORMATS.items():
        table.add_row(name, one.summary, {"\t": "tab", "": "–"}.get(one.delimiter, one.delimiter))
    show(table)


def import_(
    format: Annotated[str, typer.Argument(metavar="FORMAT", help="See `topicweave workload formats`.")],  # noqa: A002
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A file (plain, .gz, .xz, .tar) or a folder.")],
    out: Out,
    delimiter: Annotated[
        str | None,
        typer.Option(metavar="SIGN", help="Between fields: a sign, or whitespace, tab, comma, colon, pipe."),
    ] = None,
    header: Annotated[bool, typer.Option("--header", help="The first line names the columns.")] = False,
    columns: Annotated[
        str, typer.Option(metavar="A,B,…", help="Names of the columns of a file without a header.")
    ] = "",
    node: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column of the node, by name or by number from 1."),
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column of the topic, by name or by number from 1."),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column of the time, by name or by number from 1."),
    ] = None,
    direction: Annotated[
        Literal["follows", "followed", "both"],
        typer.Option(
            help="Of a graph of users: the first of a line follows the second, is followed by it, or both."
        ),
    ] = "follows",
    max_rejects: Annotated[
        float, typer.Option(min=0, max=1, metavar="SHARE", help="More wrong lines than this stop the import.")
    ] = 0.01,
    overwrite: Overwrite = False,
    table: InCatalog = None,
    master: Master = None,
    conf: Conf = None,
    verbose: Verbose = False,
) -> None:
    """Read a trace into a folder of Parquet tables. Wrong lines go to rejects.parquet.

    \b
    Examples:
      topicweave workload import edges soc-Epinions1.txt.xz --out workloads/epinions
      topicweave workload import edges facebook_combined.txt.gz --direction both --out workloads/facebook
      topicweave workload import pairs followers.csv --header --node follower --topic followed --out workloads/tw
    """
    from topicweave.cli.spark import spark_for
    from topicweave.data.files import source_files
    from topicweave.data.formats import LineOptions, find_format
    from topicweave.pipeline.importing import import_trace
    from topicweave.pipeline.staging import refuse_losing

    names = tuple(name.strip() for name in columns.split(",") if name.strip())
    options = LineOptions(delimiter, header, names, node, topic, time, direction, max_rejects)
    # What can be seen at once should not have to wait for Spark.
    wanted = find_format(format)
    wanted.refuse_unused(options)
    files = source_files(path)
    refuse_losing(out, overwrite)
    if line := wanted.taken_for_data(options, files[0]):
        typer.echo(
            f"note: {path}: the first line, {line[:60]!r}, is taken for data; if it names the columns, say --header",
            err=True,
        )
    with spark_for("import", master, conf, verbose, steps=True) as spark:
        counts = import_trace(spark, format, path, out, options, overwrite=overwrite)
        in_catalog(spark, out, table, overwrite)
    typer.echo(
        f"{out}: " + ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in counts.items())
    )
    if counts["rejects"]:
        typer.echo(f"{counts['rejects']:,} lines did not fit: see {out / 'rejects.parquet'}", err=True)


def describe(
    folder: Folder,
    format: Annotated[Literal["table", "json"], typer.Option(help="What to print.")] = "table",  # noqa: A002
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write a page with figures.")] = None,
    sample: Annotated[
        int, typer.Option(min=0, metavar="N", help="Nodes to compare with all others; 0 for none.")
    ] = 1000,
    d: Annotated[int, typer.Option("-d", min=1, metavar="N", help="The d of tdi(d).")] = 20,
    seed: Seed = 0,
    master: Master = None,
    conf: Conf = None,
    verbose: Verbose = False,
) -> None:
    """Describe a workload: its sizes, the popularity of topics with its fitted exponent, how alike interests are.

    \b
    Examples:
      topicweave workload describe workloads/facebook
      topicweave workload describe workloads/facebook --html facebook.html
    """
    from rich.table import Table

    from topicweave.cli.output import print_json, show
    from topicweave.cli.spark import spark_for
    from topicweave.data.places import Place
    from topicweave.errors import BadInput
    from topicweave.pipeline import describe as describing
    from topicweave.report.files import write_whole

    if Place(folder).local is not None and not folder.is_dir():
        raise BadInput(f"{folder}: no such folder; give one that generate, import or sample made")
    with spark_for("describe", master, conf, verbose, steps=True) as spark:
        description = describing.describe(spark, folder, sample=sample, d=d, seed=seed)
    if html is not None:
        from topicweave.report.workload_page import workload_page

        write_whole(html, workload_page(description))
    if format == "json":
        print_json(description)
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for name, value in describing.facts(description):
        table.add_row(name, value)
    show(table)


def _sampling(
    seed: Seed = 0,
    overwrite: Overwrite = False,
    table: InCatalog = None,
    master: Master = None,
    conf: Conf = None,
    verbose: Verbose = False,
) -> Callable[..., None]:
    """Calls a sampler of `topicweave.pipeline.sample`, and says what came of it."""

    def make(sampler: Callable[..., Any], folder: Path, out: Path, **how: Any) -> None:
        from topicweave.cli.spark import spark_for

        with spark_for("sample", master, conf, verbose, steps=True) as spark:
            made = sampler(spark, folder, out=out, seed=seed, overwrite=overwrite, **how)
            in_catalog(spark, out, table, overwrite)
        changes = f", {made.changes:,} joins and leaves" if made.changes else ""
        typer.echo(
            f"{out}: {made.nodes:,} nodes, {made.topics:,} topics, {made.subscriptions:,} subscriptions{changes}"
        )

    return make


@sampling.command()
@sharing(_sampling, "make")
def bfs(
    folder: Folder,
    out: Out,
    nodes: Annotated[int, typer.Option(min=1, metavar="N", help="How many nodes to reach.")],
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="How many random nodes to start from.")] = 3,
    follow: Annotated[
        Literal["out", "both"], typer.Option(help="Along whom nodes follow, or who follows them too.")
    ] = "both",
    *,
    make: Any,
) -> None:
    """Search a graph of users breadth-first from random nodes, and keep the users reached with all links
    among them (OMen §6.1).

    \b
    Example:
      topicweave workload sample bfs workloads/facebook --nodes 1000 --out workloads/facebook-1k
    """
    from topicweave.pipeline import sample

    make(sample.breadth_first, folder, out, nodes=nodes, seeds=seeds, follow=follow)


@sampling.command()
@sharing(_sampling, "make")
def followed(
    folder: Folder,
    out: Out,
    nodes: Annotated[int, typer.Option(min=1, metavar="N", help="How many nodes, or a few more.")],
    *,
    make: Any,
) -> None:
    """Take random nodes of a graph of users and all whom they follow, with all links among these (Vitis §IV-E).

    \b
    Example:
      topicweave workload sample followed workloads/epinions --nodes 10000 --out workloads/epinions-10k
    """
    from topicweave.pipeline import sample

    make(sample.followed, folder, out, nodes=nodes)


@sampling.command()
@sharing(_sampling, "make")
def universe(
    folder: Folder,
    out: Out,
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="How many random seed journals.")],
    publishers: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many of the most popular journals to keep.")
    ],
    *,
    make: Any,
) -> None:
    """Take random journals, all their subscribers, and the most popular of the subscribers' journals (Rappel §6.1.2).

    \b
    Example:
      topicweave workload sample universe workloads/livejournal --seeds 250 --publishers 100 --out workloads/lj
    """
    from topicweave.pipeline import sample

    make(sample.universe, folder, out, seeds=seeds, publishers=publishers)


@sampling.command()
@sharing(_sampling, "make")
def neighbourhood(
    folder: Folder,
    out: Out,
    nodes: Annotated[int, typer.Option(min=1, metavar="N", help="How many nodes.")],
    *,
    make: Any,
) -> None:
    """Take nodes that have topics in common, with all their topics. compare --nodes takes the same sample.

    \b
    Example:
      topicweave workload sample neighbourhood workloads/youtube --nodes 2000 --out workloads/youtube-2k
    """
    from topicweave.pipeline import sample

    make(sample.neighbourhood, folder, out, nodes=nodes)


@sampling.command()
@sharing(_sampling, "make")
def topics(
    folder: Folder,
    out: Out,
    topics: Annotated[int, typer.Option(min=1, metavar="N", help="How many random topics.")],
    *,
    make: Any,
) -> None:
    """Take random topics and all nodes that want one of them (Magnet §4.5).

    \b
    Example:
      topicweave workload sample topics workloads/wikipedia --topics 300 --out workloads/wikipedia-300
    """
    from topicweave.pipeline import sample

    make(sample.random_topics, folder, out, topics=topics)


@sampling.command()
@sharing(_sampling, "make")
def churn(
    folder: Folder,
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="The folder of an imported churn trace.")],
    out: Out,
    seconds: Annotated[
        float | None, typer.Option(metavar="S", help="Scale the trace to this length; as it is if not given.")
    ] = None,
    *,
    make: Any,
) -> None:
    """Add a churn trace to a workload: each node comes and goes as a random host of the trace does.

    \b
    Example:
      topicweave workload sample churn workloads/facebook-1k workloads/google --seconds 3600 --out workloads/churned
    """
    from topicweave.pipeline import sample

    make(sample.with_churn, folder, out, trace=trace, seconds=seconds)
