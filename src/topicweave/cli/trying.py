"""Options of the commands that try systems on a user's workload, and what they have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

import typer

from topicweave.cli.options import on_disk, sharing
from topicweave.cli.spark import spark_for

if TYPE_CHECKING:
    from topicweave.report import Comparison
    from topicweave.runs.runner import Progress

Subject = Annotated[
    Path,
    typer.Argument(
        metavar="SUBSCRIPTIONS",
        help="A file of subscriptions: columns or lists of text, Parquet or JSON, plain or packed (.gz .xz .bz2 .zst .zip); "
        "a folder of OPML files; or a workload's folder.",
    ),
]
NodeColumn = Annotated[
    str | None,
    typer.Option("--node", metavar="COLUMN", help="The file's column of nodes: a name, or a number."),
]
TopicColumn = Annotated[
    str | None, typer.Option("--topic", metavar="COLUMN", help="The file's column of topics.")
]
Delimiter = Annotated[
    str | None,
    typer.Option(metavar="SIGN", help="Between columns: a sign, or whitespace, tab, comma, colon, pipe."),
]
Header = Annotated[
    bool | None, typer.Option("--header/--no-header", help="Whether the first line names the columns.")
]
Lists = Annotated[
    bool | None,
    typer.Option(
        "--lists/--columns", help="Whether a line is a node and all its topics, or a row of columns."
    ),
]
Seeds = Annotated[
    int, typer.Option(min=1, max=1000, metavar="N", help="Replications, each with a seed of its own.")
]
FirstSeed = Annotated[int, typer.Option(min=0, metavar="N", help="The first of the seeds.")]
Events = Annotated[
    int, typer.Option(min=0, metavar="N", help="How many events to publish; 0 looks at links only.")
]
PresetOption = Annotated[
    Literal["lan", "local", "wan", "paper"],
    typer.Option(
        help="Timers: those of live nodes with this preset, or the papers' own.",
    ),
]
MembershipOption = Annotated[
    str,
    typer.Option(
        metavar="directory|gossip|full|5%",
        help="How nodes learn of each other: as live nodes do (gossip and a directory of topics), by gossip alone; or from "
        "an oracle that tells them of everybody or of a random share. With a view's size: directory:100.",
    ),
]
Settle = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        metavar="SECONDS",
        help="Virtual time before events start; by default as long as each system takes.",
    ),
]
LatencyOption = Annotated[
    str,
    typer.Option(
        metavar="LATENCY",
        help="One way: '50ms', '10-100ms', 'hosts' (by the workload's places); or a file or imported folder: a matrix or pairs "
        "of round-trip times, or coordinates.",
    ),
]
LatencyUnit = Annotated[
    Literal["us", "ms", "s"] | None,
    typer.Option("--latency-unit", help="Unit of the numbers in the file of --latency; ms if not given."),
]
LossOption = Annotated[
    str,
    typer.Option(
        "--loss",
        metavar="SHARE",
        help="This share of all messages gets lost: '1%' or 0.01. Live nodes lose none on a link that stands.",
    ),
]
ChurnOption = Annotated[
    str,
    typer.Option(
        metavar="CHURN",
        help="While events are published, nodes come and go: '600/60' (seconds up and away, on average), 'trace' (the workload's), "
        "or a file or imported folder of sessions.",
    ),
]
ChurnSpeed = Annotated[
    float,
    typer.Option(
        "--churn-speed", metavar="X", help="How many seconds of the file of --churn pass in one second."
    ),
]
Crash = Annotated[
    float,
    typer.Option(
        min=0.0,
        max=0.9,
        metavar="SHARE",
        help="At the end this share of nodes (0: none) crashes, the best connected node among them.",
    ),
]
Nodes = Annotated[
    int | None,
    typer.Option(min=2, metavar="N", help="Sample so many nodes that have much in common."),
]
Budget = Annotated[
    str,
    typer.Option(
        metavar="TIME",
        help="How long it may take: '90s', '5m', '1h', or 'none'. Says what it leaves out for that.",
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Run in so many processes of this machine instead of on Spark."),
]
MasterOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="Where Spark runs: 'local[*]' (here, the default), spark://…, yarn, k8s://…"
    ),
]


# What systems are held to.
MaxDegree = Annotated[float | None, typer.Option(min=0, metavar="N", help="No node may have more links.")]
MaxNoise = Annotated[
    float | None,
    typer.Option(min=0, max=1, metavar="SHARE", help="At most this share of received events is unwanted."),
]
NoRelays = Annotated[
    bool, typer.Option("--no-relays", help="No event may pass through a node that does not want it.")
]
MinHit = Annotated[
    float | None,
    typer.Option(min=0, max=1, metavar="SHARE", help="At least this share of expected deliveries is made."),
]
MaxLatency = Annotated[
    float | None, typer.Option(min=0, metavar="MS", help="95 % of the deliveries take at most so many ms.")
]
MaxHops = Annotated[float | None, typer.Option(min=0, metavar="N", help="No event crosses more links.")]
MaxControl = Annotated[
    float | None,
    typer.Option(min=0, metavar="B/S", help="At most so many bytes of control messages per node and second."),
]
MaxRepair = Annotated[
    float | None,
    typer.Option(min=0, metavar="SECONDS", help="All are served again within so many seconds of the crash."),
]


Out = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Where results go; by default a folder in out/ named after the subscriptions.",
        callback=on_disk,
    ),
]


def _options(
    node: NodeColumn = None,
    topic: TopicColumn = None,
    delimiter: Delimiter = None,
    header: Header = None,
    lists: Lists = None,
    seeds: Seeds = 3,
    seed: FirstSeed = 0,
    events: Events = 200,
    preset: PresetOption = "lan",
    membership: MembershipOption = "directory",
    settle: Settle = None,
    latency: LatencyOption = "50ms",
    latency_unit: LatencyUnit = None,
    loss: LossOption = "0",
    churn: ChurnOption = "",
    churn_speed: ChurnSpeed = 1.0,
    crash: Crash = 0.1,
    max_degree: MaxDegree = None,
    max_noise: MaxNoise = None,
    no_relays: NoRelays = False,
    min_hit: MinHit = None,
    max_latency: MaxLatency = None,
    max_hops: MaxHops = None,
    max_control: MaxControl = None,
    max_repair: MaxRepair = None,
    nodes: Nodes = None,
    budget: Budget = "10m",
) -> dict[str, Any]:
    """The options of a question, as `topicweave.choose.question.Options` has them."""
    given = {**locals()}
    from topicweave.choose.question import LIMITS

    for name, value in given.items():
        if name in LIMITS and isinstance(value, float):  # Named here as it was typed.
            LIMITS[name].checked(f"--{name.replace('_', '-')}", value)
    return given


def asking(**defaults: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """For a command that gets the options of a question as `question`; some may have other defaults."""
    return sharing(_options, "question", **defaults)


class Machinery(TypedDict):
    """Who carries the runs out, and who is told; what `compare` and `advise` take besides the question."""

    workers: int | None
    spark: Any
    progress: Progress
    note: Callable[[str], None]


@contextmanager
def machinery(
    workers: int | None,
    master: str | None = None,
    conf: list[str] | None = None,
    verbose: bool = False,
    budget: str | None = None,
) -> Iterator[Machinery]:
    """Spark where a master is named, or where nobody asks for processes and it is there; progress and notes
    on stderr.
    """
    from topicweave.choose.planning import parse_budget
    from topicweave.cli.progress import progress
    from topicweave.errors import BadInput

    if workers is not None and master is not None:
        raise BadInput("--workers and --master: processes of this machine, or Spark; choose one")
    spark = None
    if workers is None:
        if master is not None or _spark_here():
            spark = partial(spark_for, "compare", master, conf, verbose, light=True)
        else:
            note("no Spark or no Java here; running in processes of this machine")
    with progress("comparing", most=None if budget is None else parse_budget(budget)) as report:
        yield {"workers": workers, "spark": spark, "progress": report, "note": note}


def note(text: str) -> None:
    typer.echo(f"note: {text}", err=True)


def _spark_here() -> bool:
    from importlib.util import find_spec

    from topicweave.pipeline.java import JavaNotFound, find_java

    try:
        return find_spec("pyspark") is not None and bool(find_java())
    except JavaNotFound:
        return False


def places(kind: str, subscriptions: Path, out: Path | None, runs: Path | None) -> tuple[Path, Path | None]:
    """Where results go, and where finished runs are kept."""
    from topicweave.choose.places import RUNS, own_folder, refuse_foreign

    if out is None:
        return own_folder(kind, subscriptions), runs or RUNS
    refuse_foreign(out, subscriptions)
    return out, runs


def write_results(comparison: Comparison, out: Path) -> Path | None:
    """The results and compare.json always, and the page if it can be drawn: its path, else None."""
    from topicweave.report.files import json_text, write_whole
    from topicweave.report.kept import keep
    from topicweave.report.page import PlotlyMissing

    keep(comparison, out)
    write_whole(out / "compare.json", json_text(comparison.to_json()))
    try:
        return comparison.report(out / "report.html")
    except PlotlyMissing:
        return None


def print_comparison(comparison: Comparison) -> None:
    """The table, in as few pieces as the terminal's width allows, and who does not keep to what was asked for."""
    from topicweave.cli.output import console, show
    from topicweave.report.constraints import complaints
    from topicweave.report.terminal import comparison_tables, legend

    out = console()
    for table in comparison_tables(comparison, out.width if out.is_terminal else None):
        show(table)
    for line in legend(comparison):
        out.print(line, style="dim", soft_wrap=True)
    for entry in comparison.entries:
        if broken := complaints(entry, comparison.constraints):
            out.print(f"✗ {entry.label}: {'; '.join(broken)}", style="red", soft_wrap=True)


def say_where(report: Path | None, err: bool = False) -> None:
    """Where the page is, or what is missing for it; on stderr where stdout holds JSON."""
    from topicweave.report.page import EXTRA

    if report is None:
        typer.echo(f"no report: it needs plotly; install it with: pip install '{EXTRA}'", err=err)
    else:
        typer.echo(f"report: {report}", err=err)
