"""Tables in Spark's catalog, for whoever reads by name: `--table db.name`.

They are copies that Spark itself writes (`saveAsTable`): in the format that `spark.sql.sources.default`
names, Parquet if nothing else, partitioned by `run` where there are runs.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from topicweave.data.places import Place
from topicweave.errors import BadInput, TopicweaveError
from topicweave.pipeline.frames import tables_in
from topicweave.pipeline.session import TEMPORARY
from topicweave.pipeline.workers import described

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check_name(spark: SparkSession, name: str) -> None:
    """Raise, before there is any work, if there can be no table of this name."""
    if not re.fullmatch(r"\w+(\.\w+){0,2}", name):
        raise BadInput(f"--table {name!r}: say database.name, of letters, digits and underscores")
    database = name.rpartition(".")[0]
    if database and not spark.catalog.databaseExists(database):
        raise BadInput(
            f"--table {name}: there is no database {database!r}; make it with CREATE DATABASE {database}"
        )


def refuse_forgetful(spark: SparkSession, name: str) -> None:
    """Raise if a table of this name would end with the session."""
    ours = spark.conf.get("spark.sql.defaultCatalog", "spark_catalog") == "spark_catalog"
    warehouse = str(spark.conf.get("spark.sql.warehouse.dir", ""))
    if ours and name.count(".") < 2 and warehouse.rpartition("/")[2].startswith(TEMPORARY):
        raise BadInput(
            f"--table {name}: this Spark's catalog ends with the command; give it one that lasts "
            "(--conf spark.sql.catalogImplementation=hive), or a folder for its tables "
            "(--conf spark.sql.warehouse.dir=DIR)"
        )


def save(spark: SparkSession, folder: Path | Place, name: str, overwrite: bool = False) -> dict[str, int]:
    """Every table of a folder: as `name` if it is the only one, else as name_TABLE. Returns their rows, read back."""
    check_name(spark, name)
    tables = tables_in(spark, folder)
    names = {table: name if len(tables) == 1 else f"{name}_{table}" for table in tables}
    taken = [one for one in names.values() if spark.catalog.tableExists(one)]
    if taken and not overwrite:
        raise BadInput(
            f"--table {name}: there is a table {taken[0]}; choose another name, or add --overwrite"
        )
    saved = {}
    for table, rows in tables.items():
        full = names[table]
        writer = rows.write.mode("overwrite" if overwrite else "error")
        if "run" in rows.columns:
            writer = writer.partitionBy("run")
        with described(spark, f"save {full}"):
            writer.saveAsTable(full)
            expected, found = rows.count(), spark.table(full).count()
        if found != expected:
            raise TopicweaveError(
                f"{full}: {found:,} rows, but {folder} has {expected:,}; save it again with --overwrite"
            )
        saved[full] = found
    return saved
