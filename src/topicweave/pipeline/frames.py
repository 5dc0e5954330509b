"""Tables as DataFrames, for whoever goes on with Spark: those of a folder, and workloads that are drawn where
they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from topicweave.data.formats import LineOptions
from topicweave.data.places import Place
from topicweave.errors import BadInput, UnknownName
from topicweave.model.committed import WORK
from topicweave.pipeline import sample
from topicweave.pipeline.generate import SUBSCRIPTIONS, TOPICS, Draw, drawn, rows_of_part
from topicweave.pipeline.importing import import_trace
from topicweave.pipeline.parts import read_files
from topicweave.pipeline.staging import read_about, table_files
from topicweave.pipeline.workers import through_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def tables_in(spark: SparkSession, folder: str | Path | Place) -> dict[str, DataFrame]:
    """The tables of a folder that a command of ours made, by name; only the parts that count.

    >>> tables_in(spark, "workloads/mine")["subscriptions"].groupBy("topic").count()  # doctest: +SKIP
    """
    place = folder if isinstance(folder, Place) else Place(folder)
    listed = read_about(place).get("tables")
    names = place.names() if listed is None else list(listed)
    tables = [name.removesuffix(".parquet") for name in names if name.endswith(".parquet")]
    found = {name: read_files(spark, files) for name in tables if (files := table_files(place, name))}
    if not found:
        unfinished = (place / WORK).exists()
        raise BadInput(
            f"{place}: {'not finished; run its command again' if unfinished else 'no tables in it'}"
        )
    return found


def generated(spark: SparkSession, model: str, seed: int = 0, **parameters: Any) -> dict[str, DataFrame]:
    """A model's workload, drawn by the tasks that read it: nothing is written. The rows are those of
    `workload generate`.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    draw, parts = drawn(spark, model, parameters, seed)
    found = {}
    for table, count in parts.items():
        numbers = spark.range(0, count, 1, count)

        def rows(batches: Iterator[pa.RecordBatch], table: str = table) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch["id"].to_pylist():
                    part = rows_of_part(draw, table, number)
                    yield from part.cast(_plain(part.schema)).to_batches(max_chunksize=1 << 16)

        found[table] = numbers.mapInArrow(rows, from_arrow_schema(_schema(draw, table)))
    return found


def _schema(draw: Draw, table: str) -> pa.Schema:
    if table != "hosts":
        return _plain({"subscriptions": SUBSCRIPTIONS, "topics": TOPICS}[table])
    few = draw._replace(parameters={**draw.parameters, "nodes": 1})
    return rows_of_part(few, "hosts", 0).schema


def _plain(schema: pa.Schema) -> pa.Schema:
    """Without dictionaries, which Spark does not know."""
    return pa.schema(
        [
            field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
            for field in schema
        ]
    )


def imported(
    spark: SparkSession, format_name: str, path: str | Path, out: str | Path, **options: Any
) -> dict[str, DataFrame]:
    """The tables of a trace, kept in the folder `out`; `options` are the fields of `LineOptions`."""
    _refuse_connect(spark, "imported")
    import_trace(spark, format_name, Path(path), Path(out), LineOptions(**options))
    return tables_in(spark, Path(out))


def _refuse_connect(spark: SparkSession, what: str) -> None:
    """What writes folders asks executors whether they see them, which a Connect client cannot."""
    if through_connect(spark):
        raise BadInput(
            f"{what}: not through Spark Connect; use a session of a master (spark://…, yarn, k8s://…, local[*])"
        )


SAMPLERS: dict[str, Callable[..., Any]] = {
    "bfs": sample.breadth_first,
    "followed": sample.followed,
    "universe": sample.universe,
    "neighbourhood": sample.neighbourhood,
    "topics": sample.random_topics,
    "churn": sample.with_churn,
}


def sampled(
    spark: SparkSession, kind: str, source: str | Path | DataFrame, out: str | Path, **options: Any
) -> dict[str, DataFrame]:
    """A sample of a workload, kept in the folder `out`; `source` is a folder, or a DataFrame of (node, topic).

    kind, options   as `topicweave workload sample KIND` takes them
    """
    _refuse_connect(spark, "sampled")
    if kind not in SAMPLERS:
        raise UnknownName("sample", kind, list(SAMPLERS))
    given: Any = Path(source) if isinstance(source, str) else source
    SAMPLERS[kind](
        spark,
        given,
        **{name: Path(value) if name == "trace" else value for name, value in options.items()},
        out=Path(out),
    )
    return tables_in(spark, Path(out))
