"""`topicweave stream`: measures over a folder that nodes add telemetry to, as it comes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topicweave.cli.options import Format, on_disk
from topicweave.cli.spark import Conf, Master, Verbose

if TYPE_CHECKING:
    from topicweave.pipeline.stream_progress import Progress, Span

_COLUMNS = {
    "degree_mean": "links",
    "hit_ratio": "hit ratio",
    "noise": "noise",
    "duplicates": "duplicates",
    "hops_mean": "hops",
    "latency_p50": "p50 s",
    "latency_p95": "p95 s",
    "control_messages": "control/s",
}


def stream(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="The folder that nodes write telemetry to.", callback=on_disk),
    ],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where measures and the checkpoint go.", callback=on_disk)
    ],
    workload: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="The workload: who wants what. If not given, what nodes recorded of that."
        ),
    ] = None,
    window: Annotated[float, typer.Option(metavar="S", help="Seconds of the run in a window.")] = 60.0,
    wait: Annotated[float, typer.Option(metavar="S", help="A delivery later than this is a miss.")] = 60.0,
    lateness: Annotated[
        float,
        typer.Option(metavar="S", help="Wait for a node that is at most this far behind the others."),
    ] = 120.0,
    grace: Annotated[float, typer.Option(metavar="S", help="Give newcomers this long to settle.")] = 0.0,
    once: Annotated[bool, typer.Option("--once", help="Read what exists, then end.")] = False,
    finish: Annotated[
        bool, typer.Option("--finish", help="With --once: the runs are over, measure the last windows too.")
    ] = False,
    format: Format = "table",  # noqa: A002
    master: Master = None,
    conf: Conf = None,
    verbose: Verbose = False,
) -> None:
    """Measure runs while they go on, window by window, with every measure of `topicweave measure`.

    A window is measured when its rows are complete: WAIT and LATENESS seconds (of the run's own time) after
    its end. All measures go to OUT/windows.parquet, and the most important ones are printed. Ctrl-C ends the
    command. The same command continues one that was stopped or killed; no row is lost or counted twice.

    \b
    Examples:
      topicweave node … --telemetry out/live                     # many of these, one folder
      topicweave stream out/live --out out/live-measures --window 10
      topicweave stream out/live --out out/live-measures --window 10 --once --finish
    """
    from topicweave.cli.spark import spark_for
    from topicweave.errors import BadInput
    from topicweave.pipeline.stream import streaming

    if finish and not once:
        raise BadInput("--finish needs --once: while nodes run, no window is the last")
    told = _Told(format)
    with (
        spark_for("stream", master, conf, verbose) as spark,
        streaming(
            spark,
            folder,
            workload,
            out,
            window=window,
            wait=wait,
            lateness=lateness,
            grace=grace,
            until_idle=once,
            told=told.window,
        ) as (query, running),
    ):
        query.awaitTermination()
        if finish:
            running.finish()
        last = running.last()
        if last is not None:
            told.left_out(running.progress(last), out)
    typer.echo(f"{told.windows:,} windows measured; all windows: {out / 'windows.parquet'}", err=True)


class _Told:
    """Windows as they are measured: a line each."""

    def __init__(self, format: str) -> None:  # noqa: A002
        self._json = format == "json"
        self.windows = 0

    def window(self, span: Span, measures: dict[str, float]) -> None:
        self.windows += 1
        if self._json:
            finite = {name: value if math.isfinite(value) else None for name, value in measures.items()}
            typer.echo(json.dumps({"run": span.run, "start": span.start, "end": span.end, **finite}))
            return
        if self.windows == 1:
            typer.echo(self._line("run", "from", "to", *_COLUMNS.values()))
        values = (measures.get(name, math.nan) for name in _COLUMNS)
        shown = ("–" if math.isnan(value) else f"{value:.4g}" for value in values)
        typer.echo(self._line(span.run, f"{span.start:.10g}", f"{span.end:.10g}", *shown))

    def _line(self, run: str, *cells: str) -> str:
        return f"{run:<16}" + "".join(f" {cell:>10}" for cell in cells)

    def left_out(self, progress: Progress, out: Path) -> None:
        late = sum(run.late for run in progress.runs.values())
        future = sum(run.future for run in progress.runs.values())
        for rows, why in (
            (late, "came too late for their window"),
            (future, "are of a time that most nodes' clocks are far from"),
            (progress.unplaced, "lack a cell or a time"),
        ):
            if rows:
                typer.echo(f"{rows:,} rows {why}: set aside in {out / 'set_aside.parquet'}", err=True)
