"""The rounds of a measurement without Spark, one task after the other: what they compute, apart from how they
are run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.pipeline.rounds_here import rounds_here
from topicweave.measures.summary import Scope
from topicweave.pipeline.measuring import spark
from topicweave.pipeline.measuring.api import telemetry_files, workload_files
from topicweave.pipeline.measuring.latencies import second_look
from topicweave.pipeline.measuring.plan import LATER, PlanHere
from topicweave.pipeline.measuring.scan import SURVEYED, scanner, survey
from topicweave.pipeline.measuring.sources import COLUMNS, chunks_of, read_chunk
from topicweave.pipeline.rounds import packed, unpacked
from topicweave.telemetry.schema import SCHEMAS


def measured_here(
    folder: Path,
    workload: Path,
    run: str | None = None,
    *,
    tasks: int = 3,
    chunk_rows: int = 250,
    events_told: bool = True,
    **scope: Any,
) -> dict[str, dict[str, float]]:
    options = Scope(**scope)
    files = {name: telemetry_files(folder, name) for name in SCHEMAS} | workload_files(workload)
    chunks = chunks_of(files, chunk_rows)
    rows = {chunk.source: 0 for chunk in chunks}
    for chunk in chunks:
        rows[chunk.source] += chunk.rows
    look = survey(options.start, options.end, events_told)
    found = [
        message
        for chunk in chunks
        if chunk.source in SURVEYED
        for message in unpacked(
            packed(look(chunk.source, read_chunk(chunk, SURVEYED[chunk.source]), chunk.number))
        )
    ]
    plan = spark.planned(found, rows, run, options, tasks)
    if not events_told:
        plan = plan._replace(keys=None, places=None)
    scan = scanner(PlanHere(plan))
    sources = [
        message
        for chunk in chunks
        for message in scan(chunk.source, read_chunk(chunk, COLUMNS[chunk.source]), chunk.number)
    ]
    messages = rounds_here(sources, spark.works(PlanHere(plan)), tasks)
    asked = spark.asked_of(messages)
    looks = [
        one
        for message in messages
        if message.round == LATER
        for one in second_look(message.rank, message.columns["value"], asked[message.rank].spans)
    ]
    return spark.summed_up(plan, messages, asked, looks)
