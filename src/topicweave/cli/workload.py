"""`topicweave workload …`: make workloads and look at them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topicweave.cli.spark import Conf, InCatalog, Verbose

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from topicweave.model.workload import Workload

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Generate, import, sample and describe workloads."
)

MOST_POPULAR = 5


@app.command()
def generate(
    ctx: typer.Context,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write.")],
    model: Annotated[
        str | None,
        typer.Argument(metavar="[MODEL]", help="A paper's model; see `topicweave workload models`."),
    ] = None,
    nodes: Annotated[int, typer.Option(min=1, metavar="N", help="How many nodes.")] = 1000,
    topics: Annotated[int, typer.Option(min=1, metavar="N", help="How many topics.")] = 100,
    popularity: Annotated[
        str, typer.Option(metavar="MODEL", help="How popular topics are; see `topicweave workload models`.")
    ] = "rss",
    min_size: Annotated[
        int, typer.Option(min=0, metavar="N", help="Topics that a node wants at least.")
    ] = 10,
    max_size: Annotated[
        int | None,
        typer.Option(
            min=0, metavar="N", help="Topics that a node wants at most; as many as --min-size if not given."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Another seed gives another workload.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing workload.")] = False,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A parameter of the MODEL; may be given several times."
        ),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Draw on Spark there: 'local[*]', spark://…; if not given, here and only large ones on Spark.",
        ),
    ] = None,
    table: InCatalog = None,
    conf: Conf = None,
    verbose: Verbose = False,
) -> None:
    """Draw a synthetic workload and write it to a folder of Parquet tables.

    Without MODEL it is SpiderCast's, small, and drawn in this process. The same seed gives the same rows on
    any machine, any number of cores and any cluster. The same command continues one that was stopped.

    \b
    Examples:
      topicweave workload generate --nodes 1000 --topics 100 --popularity nyse --out workloads/stocks
      topicweave workload generate vitis-high --nodes 1000000 --out workloads/large --master 'local[*]'
      topicweave workload generate magnet-multi-modal --set chosen=5 --set categories=50 --out workloads/modes
    """
    if model is not None or changes or master or table:
        from topicweave.cli.generating import generate_model, given_options

        options = {"nodes": nodes, "topics": topics, "popularity": popularity}
        options |= {"min_size": min_size, "max_size": max_size}
        given = given_options(ctx, options, changes or [])
        generate_model(model or "spidercast", given, seed, out, overwrite, table, master, conf, verbose)
        return
    from topicweave.errors import BadInput
    from topicweave.workloads import generate as draw

    if not overwrite and out.is_dir() and any(out.iterdir()):
        raise BadInput(
            f"{out}: not empty; choose another folder, or replace the workload in it with --overwrite"
        )
    drawn = draw(nodes, topics, popularity, min_size, min_size if max_size is None else max_size, seed)
    drawn.save(out, overwrite)
    typer.echo(f"{out}: {nodes:,} nodes, {topics:,} topics, {drawn.topic_index.size:,} subscriptions")


@app.command()
def models() -> None:
    """List the models of workloads with their parameters, and the models of topic popularity.

    \b
    Example:
      topicweave workload models
    """
    from topicweave.cli.generating import show_models

    show_models()
    from rich.table import Table

    from topicweave.cli.output import show
    from topicweave.workloads import MODELS

    table = Table(box=None, pad_edge=False)
    table.add_column("model")
    table.add_column("topics are")
    for name, model in MODELS.items():
        table.add_row(name, model.description)
    show(table)


@app.command("show")
def show_workload(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A workload's folder.")],
) -> None:
    """Check a workload and print its sizes.

    \b
    Example:
      topicweave workload show workloads/stocks
    """
    from rich.table import Table

    from topicweave.cli.output import show
    from topicweave.model.workload import Workload

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="left")
    table.add_column(justify="left")
    for name, value in _facts(Workload.load(folder)).items():
        table.add_row(name, value)
    show(table)


def _facts(workload: Workload) -> dict[str, str]:
    import numpy as np

    sizes = np.diff(workload.offsets)
    audience = np.bincount(workload.topic_index, minlength=workload.topics)
    popular = np.argsort(-audience, kind="stable")[:MOST_POPULAR].tolist()
    facts = {
        "nodes": f"{workload.nodes:,}",
        "topics": f"{workload.topics:,}",
        "subscriptions": f"{workload.topic_index.size:,}",
    }
    if workload.nodes:
        facts["topics per node"] = _range(sizes)
    if workload.topics:
        facts["subscribers per topic"] = _range(audience)
        facts["most popular"] = ", ".join(
            f"{workload.topic_names[topic]} ({audience[topic]:,})" for topic in popular
        )
        facts["events per second"] = f"{workload.rates.sum():,.4g}"
    facts["joins and leaves"] = f"{workload.churn.size:,}" if workload.churn.size else "none: everybody stays"
    facts["places of nodes"] = "none" if workload.hosts is None else "given"
    return facts


def _range(counts: npt.NDArray[np.int64]) -> str:
    if counts.min() == counts.max():
        return f"{counts.min()} each"
    return f"{counts.min()} to {counts.max()}, {counts.mean():.1f} on average"
