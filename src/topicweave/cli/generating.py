"""`topicweave workload generate MODEL`: the papers' models, here or on Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from topicweave.errors import BadInput

SMALL = 100_000
"""Nodes up to which a workload is drawn in this process when no --master is given: that takes seconds."""


def given_options(ctx: typer.Context, options: Mapping[str, Any], changes: Sequence[str]) -> dict[str, Any]:
    """The options that the user gave, not those with their defaults: a model has defaults of its own."""
    given = {
        name: value
        for name, value in options.items()
        if (source := ctx.get_parameter_source(name)) is not None and source.name != "DEFAULT"
    }
    for text in changes:
        name, separator, value = text.partition("=")
        if not separator:
            raise BadInput(f"--set {text!r}: no value; write it as name=value")
        given[name.strip().replace("-", "_")] = value.strip()
    return given


def generate_model(
    model: str,
    parameters: dict[str, Any],
    seed: int,
    out: Path,
    overwrite: bool,
    table: str | None,
    master: str | None,
    conf: Sequence[str] | None,
    verbose: bool,
) -> None:
    from topicweave.cli.progress import progress
    from topicweave.cli.spark import in_catalog, spark_for
    from topicweave.pipeline.generate import generate
    from topicweave.pipeline.staging import refuse_losing
    from topicweave.workloads.catalogue import find_model

    found = find_model(model)
    settings = found.settings(**_complete(model, parameters))
    found.check(settings)
    refuse_losing(out, overwrite)
    parameters = _complete(model, parameters)
    with progress(model) as report:
        if master is None and table is None and settings.nodes <= SMALL:
            made = generate(model, parameters, seed, out, overwrite=overwrite, progress=report)
        else:
            with spark_for("generate", master, conf, verbose, light=True) as spark:
                made = generate(
                    model, parameters, seed, out, spark=spark, overwrite=overwrite, progress=report
                )
                in_catalog(spark, out, table, overwrite)
    typer.echo(
        f"{out}: {made.nodes:,} nodes, {made.topics:,} topics, {made.subscriptions:,} subscriptions"
        + (" (continued an earlier run)" if made.resumed else "")
    )


def _complete(model: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """SpiderCast's lists have one size unless both ends are given, as in the form without MODEL."""
    if model == "spidercast" and "min_size" in parameters and parameters.get("max_size") is None:
        return {**parameters, "max_size": parameters["min_size"]}
    return parameters


def show_models() -> None:
    """All models with their parameters and defaults."""
    import msgspec
    from rich.table import Table

    from topicweave.cli.output import show
    from topicweave.workloads.catalogue import MODELS

    table = Table(box=None, pad_edge=False)
    for heading in ("MODEL", "what nodes want", "source", "parameters"):
        table.add_column(heading)
    for name, model in MODELS.items():
        fields = msgspec.structs.fields(model.parameters)
        defaults = (f"{one.name}={model.fixed.get(one.name, one.default)}" for one in fields)
        table.add_row(name, model.summary, model.source, " ".join(defaults))
    show(table)
    typer.echo()
