"""Measures of recorded runs without a workload's folder: who wanted what stands in the telemetry, run by run.

A node that goes away after its run's last event would have got that one: whoever ends a run stops its nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from topicweave.data.places import Place
from topicweave.errors import BadInput
from topicweave.measures.summary import measure_run, scope_of
from topicweave.pipeline.measuring.api import IN_MEMORY, loaded, read_one, rows_in
from topicweave.pipeline.parts import read_files
from topicweave.pipeline.recorded_lists import wanted_on_spark
from topicweave.pipeline.staging import table_files
from topicweave.telemetry.interests import wanted_between
from topicweave.telemetry.schema import INTERESTS, file_name
from topicweave.telemetry.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def measure_recorded(
    telemetry: Path,
    files: dict[str, list[Place]],
    session: Callable[[], AbstractContextManager[SparkSession]],
    *,
    run: str | None = None,
    in_memory: bool = True,
    **options: Any,
) -> dict[str, dict[str, float]]:
    """Measures by run of a folder of telemetry, each by what its own nodes wanted; `files` are those of its tables."""
    if not (Place(telemetry) / file_name("interests")).exists():
        raise BadInput(
            f"{telemetry}: its nodes did not record who wants what; give the --workload that was run"
        )
    lists = table_files(telemetry, "interests")
    if in_memory and rows_in({**files, "interests": lists}) <= IN_MEMORY:
        tables = loaded(telemetry, files)
        return _in_memory(tables, read_one(telemetry, "interests", lists, INTERESTS), run, options)
    from topicweave.pipeline.measuring.sources import chunks_of
    from topicweave.pipeline.measuring.spark import last_published, measured, of_chunks, of_frames, together

    start, end = _scope(options)
    with session() as spark:
        source, interests = of_chunks(spark, chunks_of(files)), read_files(spark, lists)
        last = last_published(spark, source)
        answers: dict[str, dict[str, float]] = {}
        for name in [run] if run is not None else sorted(last):
            published = last.get(name, -math.inf)
            stay = published if published > -math.inf else math.inf
            mine = interests.where(interests["run"] == name)
            wishes, churn = wanted_on_spark(mine, start, end, stay)
            both = together(source, of_frames({"subscriptions": wishes, "churn": churn}))
            answers |= measured(spark, both, name, scope_of(**options))
        return answers


def _scope(options: dict[str, Any]) -> tuple[float, float]:
    end = options.get("end")
    return options.get("start", 0.0), math.inf if end is None else end


def _in_memory(
    tables: Tables, interests: pa.Table, run: str | None, options: dict[str, Any]
) -> dict[str, dict[str, float]]:
    answers = {}
    for name in [run] if run is not None else tables.runs():
        published = tables.publishes.filter(pc.equal(tables.publishes["run"], name))["time"]
        last = pc.max(published).as_py()
        mine = interests.filter(pc.equal(interests["run"], name))
        stay = math.inf if last is None else last
        lists, churn = wanted_between(mine, *_scope(options), stay)
        answers[name] = measure_run(tables, lists, run=name, churn=churn, **options)
    return answers
