"""What graphs take at size: random overlays of ten links a node, interests of ten topics a node."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.pipeline import FEW_ROWS, FOLDER, MEMORY, Settings, step_of
from benchmarks.sheet import Column, Sheet
from topicweave.pipeline.parts import ROWS_PER_PART, write_part
from topicweave.workloads.counter_random import uniforms

ALGORITHMS = (
    "components",
    "components of topics",
    "diameter",
    "diameters of topics",
    "similar",
    "cooccurrence",
    "communities",
    "survival",
)
SIZES = (1_000_000, 10_000_000, 50_000_000)
TABLES = {
    "components": ("links",),
    "diameter": ("links",),
    "components of topics": ("links", "subscriptions"),
    "diameters of topics": ("links", "subscriptions"),
    "survival": ("churn",),
}
REGISTERS = 16


def run(quick: bool) -> list[Sheet]:
    sheet = Sheet(
        "graphs",
        "Graphs on one machine, 4 GiB for Spark",
        2,
        Column("what"),
        Column("rows", ",d"),
        Column("seconds", ".1f", "less"),
        Column("CPU s", ".1f", "less"),
        Column("rows per s", ",.0f", "more"),
        Column("peak MiB", ",.0f", "less"),
    )
    settings = MEMORY | FEW_ROWS if quick else MEMORY
    for rows in (2_000,) if quick else SIZES:
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            make_tables(Path(folder), rows)
            for name in ("components", "survival") if quick else ALGORITHMS:
                step = step_of(name, "Spark", graph_on_spark, settings, folder, name, rows)
                sheet.add(name, rows, step.seconds, step.cpu, rows / step.seconds, step.peak_mib)
    return [sheet]


def make_tables(folder: Path, rows: int) -> None:
    """So many links, subscriptions and changes, ten of each a node.

    Every second link is a short one, so that there is something to walk along. Ten nodes in a row have seven
    of ten topics in common, so that there are like nodes, topics that go together, and links within a topic:
    2.5 of them for each link.
    """
    nodes = max(rows // 10, 2)
    for start in range(0, rows, ROWS_PER_PART):
        at = np.arange(start, min(start + ROWS_PER_PART, rows))
        node, turn = at % nodes, at // nodes
        near = 1 + (uniforms(1, 1, at) * 5).astype(np.int64)
        far = (uniforms(1, 2, at) * nodes).astype(np.int64)
        peer = np.where(turn % 2 == 0, (node + near) % nodes, far)
        of_whom = np.where(turn < 7, node // 10, nodes + node)
        topic = (uniforms(1, 3, of_whom, turn) ** 3 * nodes / 10).astype(np.int64)
        time = uniforms(1, 4, at) * 1000 + turn * 1000
        change = np.where(turn % 2 == 0, "join", "leave")
        number = start // ROWS_PER_PART
        _write(folder, "links", number, {"node": _names("n", node), "peer": _names("n", peer)})
        _write(folder, "subscriptions", number, {"node": _names("n", node), "topic": _names("t", topic)})
        _write(folder, "churn", number, {"time": time, "node": _names("n", node), "change": change})


def _names(prefix: str, numbers: np.ndarray) -> pa.Array:
    return pa.array(np.char.add(prefix, numbers.astype(str)))


def _write(folder: Path, table: str, number: int, columns: dict[str, object]) -> None:
    rows = pa.table(columns)
    write_part(folder / f"{table}.parquet" / f"part-{number:05d}.parquet", rows.schema, [rows])


def graph_on_spark(settings: Settings, folder: str, name: str, rows: int) -> int:
    """All of a result is made, and counted; names are looked up."""
    from topicweave.pipeline.graphs import api
    from topicweave.pipeline.session import spark_session
    from topicweave.pipeline.staging import table_files

    with spark_session(**settings) as spark:
        tables = TABLES.get(name, ("subscriptions",))
        source = api.tables_in(spark, {table: table_files(Path(folder), table) for table in tables})
        if name.startswith("components"):
            api.named_components(spark, source).count()
        elif name.startswith("diameter"):
            api.named_distances(spark, source, registers=REGISTERS).count()
        elif name == "similar":
            api.named_similar(spark, source, 0.5)[0].count()
        elif name == "cooccurrence":
            api.named_cooccurrence(spark, source)[0].count()
        elif name == "communities":
            api.named_communities(spark, source, 2)[0].count()
        else:
            api.sessions_survival(spark, source)
    return rows
