"""Smaller workloads out of large ones, as jobs over DataFrames: nothing here holds a graph on the driver.

Random choices go by a hash of the seed and the name, so that they do not depend on how rows are spread: the k chosen
are the k with the smallest hashes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pyarrow as pa

from topicweave.errors import BadInput
from topicweave.pipeline.parts import finished, write_table
from topicweave.pipeline.staging import Staging, staged, write_about
from topicweave.pipeline.tables_of import CHURN, NODES, SUBSCRIPTIONS, TOPICS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

Step = Literal["out", "both"]

VISITED = pa.schema([("node", pa.string()), ("level", pa.int64())])


class Sampled(NamedTuple):
    nodes: int
    topics: int
    subscriptions: int
    changes: int = 0


def chance(seed: int, column: Column) -> Column:
    """A random number per name, the same wherever it is computed."""
    from pyspark.sql import functions as sf

    return sf.xxhash64(sf.lit(seed), column)


def breadth_first(
    spark: SparkSession,
    source: Path,
    out: Path,
    *,
    nodes: int,
    seeds: int = 10,
    follow: Step = "out",
    seed: int = 0,
    overwrite: bool = False,
) -> Sampled:
    """From random users along whom they follow, level by level, to `nodes` users; all links among them are kept.

    OMen §6.1 and Vitis §IV-E. With `follow="both"` also along who follows them. Of the level that would be too
    many, users at random. Where a search ends before it has enough, another random user is begun from.
    """
    tables = _tables(spark, source)
    if nodes < 1 or seeds < 1:
        raise BadInput(f"{nodes} nodes from {seeds} seeds: too few; ask for at least one of each")
    plan = _plan(source, "bfs", nodes=nodes, seeds=seeds, follow=follow, seed=seed)
    with staged(out, plan, overwrite) as staging:
        links = _links(tables["subscriptions"], follow)
        everyone = tables["nodes"]
        population = everyone.count()
        if nodes > population:
            raise BadInput(
                f"{source}: {population:,} nodes, fewer than the {nodes:,} asked for; ask for fewer"
            )
        visited = _search(spark, staging, links, everyone, nodes, seeds, seed)
        kept = visited.select("node")
        wishes = (
            tables["subscriptions"]
            .join(kept, "node", "left_semi")
            .join(kept.withColumnRenamed("node", "topic"), "topic", "left_semi")
        )
        topics = tables["topics"].join(kept.withColumnRenamed("node", "topic"), "topic", "left_semi")
        return _write(staging, plan, kept, topics, wishes)


def _links(subscriptions: DataFrame, follow: Step) -> DataFrame:
    from pyspark.sql import functions as sf

    forward = subscriptions.select(sf.col("node").alias("from"), sf.col("topic").alias("to"))
    if follow == "out":
        return forward
    return forward.union(subscriptions.select(sf.col("topic").alias("from"), sf.col("node").alias("to")))


def _search(
    spark: SparkSession,
    staging: Staging,
    links: DataFrame,
    everyone: DataFrame,
    wanted: int,
    seeds: int,
    seed: int,
) -> DataFrame:
    """The users reached, kept level by level on disk: an interrupted search goes on with the last whole level."""
    folder = staging.scratch("levels")
    level, count, starts = 0, 0, seeds
    frontier_size = 0
    while count < wanted:
        path = folder / f"level-{level:05d}"
        size = finished(path)
        if size is None:
            before = _levels(spark, folder, level)
            if frontier_size:
                frontier = before.where(f"level = {level - 1}").select("node")
                reached = (
                    links.join(frontier.withColumnRenamed("node", "from"), "from", "left_semi")
                    .select("to")
                    .withColumnRenamed("to", "node")
                    .distinct()
                    .join(everyone, "node", "left_semi")
                    .join(before.select("node"), "node", "left_anti")
                )
                found = _smallest(reached, seed, wanted - count)
            else:
                unseen = everyone.join(before.select("node"), "node", "left_anti")
                found = _smallest(unseen, seed, min(starts, wanted - count))
                starts = 1
            rows = found.selectExpr("node", f"{level} level")
            rows = rows.select("node", rows["level"].cast("long").alias("level"))
            size = write_table(rows, path, VISITED, "node", ("node",))
        elif not frontier_size:
            starts = 1
        frontier_size = size
        count += size
        level += 1
    return _levels(spark, folder, level)


def _levels(spark: SparkSession, folder: Path, levels: int) -> DataFrame:
    paths = [str(folder / f"level-{level:05d}") for level in range(levels)]
    if not paths:
        return spark.createDataFrame([], "node string, level long")
    return spark.read.parquet(*paths)


def _smallest(rows: DataFrame, seed: int, count: int, by: Column | None = None) -> DataFrame:
    """The `count` rows with the smallest hashes of `node` (or of another column)."""
    from pyspark.sql import functions as sf

    column = sf.col("node") if by is None else by
    return rows.orderBy(chance(seed, column), column).limit(count)


def universe(
    spark: SparkSession,
    source: Path,
    out: Path,
    *,
    seeds: int,
    publishers: int,
    seed: int = 0,
    overwrite: bool = False,
) -> Sampled:
    """Rappel §6.1.2: random seed journals, all who subscribe to one of them, and of the journals of these users
    the `publishers` most subscribed to among them; other subscriptions are dropped.

    A user of the universe stays in it even if it follows none of the publishers.
    """
    from pyspark.sql import functions as sf

    tables = _tables(spark, source)
    plan = _plan(source, "universe", seeds=seeds, publishers=publishers, seed=seed)
    if seeds < 1 or publishers < 1:
        raise BadInput(
            f"{seeds} seed journals, {publishers} publishers: too few; ask for at least one of each"
        )
    with staged(out, plan, overwrite) as staging:
        wishes = tables["subscriptions"]
        journals = _smallest(tables["topics"].select("topic"), seed, seeds, sf.col("topic"))
        users = wishes.join(journals, "topic", "left_semi").select("node").distinct()
        inside = wishes.join(users, "node", "left_semi")
        own = inside.join(users.withColumnRenamed("node", "topic"), "topic", "left_semi")
        popular = (
            own.groupBy("topic")
            .count()
            .orderBy(sf.desc("count"), sf.length("topic"), "topic")
            .limit(publishers)
        )
        kept = inside.join(sf.broadcast(popular.select("topic")), "topic", "left_semi")
        topics = tables["topics"].join(sf.broadcast(popular.select("topic")), "topic", "left_semi")
        return _write(staging, plan, users, topics, kept)


def random_topics(
    spark: SparkSession, source: Path, out: Path, *, topics: int, seed: int = 0, overwrite: bool = False
) -> Sampled:
    """Magnet §4.5: so many random topics, and everybody who wants one of them."""
    from pyspark.sql import functions as sf

    tables = _tables(spark, source)
    plan = _plan(source, "topics", topics=topics, seed=seed)
    available = tables["topics"].count()
    if not 1 <= topics <= available:
        raise BadInput(f"{source}: {available:,} topics, {topics:,} asked for; ask for 1 to {available:,}")
    with staged(out, plan, overwrite) as staging:
        chosen = _smallest(tables["topics"], seed, topics, sf.col("topic"))
        wishes = tables["subscriptions"].join(chosen.select("topic"), "topic", "left_semi")
        return _write(staging, plan, wishes.select("node").distinct(), chosen, wishes)


def with_churn(
    spark: SparkSession,
    source: Path,
    trace: Path,
    out: Path,
    *,
    seconds: float | None = None,
    seed: int = 0,
    overwrite: bool = False,
) -> Sampled:
    """The workload with a churn trace laid over it: each node lives the life of a random host of the trace.

    Hosts are dealt out in a random order, and once all are used again from the first (Rappel §6.1.3 replicates
    its trace too). With `seconds` the trace's length is scaled to that. A host that the trace never saw up is
    down throughout: its node joins at the trace's end.
    """
    from pyspark.sql import functions as sf

    tables = _tables(spark, source)
    changes = _read(spark, trace, "churn")
    hosts = _read(spark, trace, "hosts")
    if changes is None or hosts is None:
        raise BadInput(f"{trace}: no churn in it; import a trace (machine-events, availability) there first")
    if seconds is not None and not seconds > 0:
        raise BadInput(f"{seconds} seconds: too short; scale to a positive length")
    plan = {**_plan(source, "churn", seconds=seconds, seed=seed), "trace": str(trace)}
    with staged(out, plan, overwrite) as staging:
        length = changes.agg(sf.max("time")).first()
        span = float(length[0]) if length and length[0] else 1.0
        scale = 1.0 if seconds is None else seconds / span
        dealt = _numbered(hosts.select("node"), chance(seed, sf.col("node")), staging.scratch("hosts"))
        count = dealt.count()
        nodes = _numbered(tables["nodes"], chance(seed + 1, sf.col("node")), staging.scratch("nodes"))
        lives = nodes.withColumn("host_number", sf.col("number") % count).join(
            dealt.select(sf.col("node").alias("host"), sf.col("number").alias("host_number")), "host_number"
        )
        never = _never_up(hosts, changes).select(
            sf.col("node").alias("host"), sf.lit(span).alias("time"), sf.lit("join").alias("change")
        )
        every = changes.select(sf.col("node").alias("host"), "time", "change").unionByName(never)
        scaled = every.join(lives, "host").select((sf.col("time") * scale).alias("time"), "node", "change")
        changed = write_table(scaled, staging.table("churn"), CHURN, "node", ("time", "node"))
        made = _write(staging, plan, tables["nodes"], tables["topics"], tables["subscriptions"])
        return made._replace(changes=changed)


def _never_up(hosts: DataFrame, changes: DataFrame) -> DataFrame:
    """Hosts that a trace of sessions lists without any; in a trace of changes they would have been up all along."""
    if "sessions" not in hosts.columns:
        return hosts.where("false").select("node")
    return hosts.select("node").join(changes.select("node").distinct(), "node", "left_anti")


def _numbered(rows: DataFrame, key: Column, scratch: Path) -> DataFrame:
    """Rows with a `number` from 0 in the order of a key, counted partition by partition and not in one place."""
    from pyspark.sql import functions as sf

    if not (scratch / "_SUCCESS").exists():
        placed = rows.withColumn("key", key).orderBy("key", "node")
        marked = placed.select("node", sf.monotonically_increasing_id().alias("mark"))
        marked.write.mode("overwrite").parquet(str(scratch))
    stored = rows.sparkSession.read.parquet(str(scratch))
    # The upper bits of Spark's mark are the partition, the lower 33 the place in it.
    partition = sf.shiftright("mark", 33)
    sizes = stored.groupBy(partition.alias("partition")).count().orderBy("partition").collect()  # few
    before, offsets = 0, []
    for row in sizes:
        offsets.append((int(row["partition"]), before))
        before += int(row["count"])
    schema = "partition long, offset long"
    starts = rows.sparkSession.createDataFrame(offsets, schema)
    return stored.join(sf.broadcast(starts), partition == starts["partition"]).select(
        "node", (sf.col("offset") + sf.col("mark").bitwiseAND(sf.lit((1 << 33) - 1))).alias("number")
    )


def _plan(source: Path, kind: str, **more: Any) -> dict[str, Any]:
    return {"command": f"workload sample {kind}", "source": str(source), **more}


def _read(spark: SparkSession, folder: Path, name: str) -> DataFrame | None:
    path = folder / f"{name}.parquet"
    if not path.exists():
        return None
    return spark.read.parquet(str(path.absolute()))


def _tables(spark: SparkSession, folder: Path) -> dict[str, DataFrame]:
    """subscriptions, nodes and topics of a workload, whichever of its tables are there."""
    from pyspark.sql import functions as sf

    subscriptions = _read(spark, folder, "subscriptions")
    if subscriptions is None:
        raise BadInput(f"{folder}: no subscriptions.parquet; give the folder of a workload")
    text: Callable[[str], Column] = lambda name: sf.col(name).cast("string").alias(name)  # noqa: E731
    wishes = subscriptions.select(text("node"), text("topic"))
    hosts, topics = _read(spark, folder, "hosts"), _read(spark, folder, "topics")
    return {
        "subscriptions": wishes,
        "nodes": wishes.select("node").distinct() if hosts is None else hosts.select(text("node")),
        "topics": wishes.select("topic").distinct().withColumn("rate", sf.lit(1.0))
        if topics is None
        else topics.select(text("topic"), sf.col("rate").cast("double").alias("rate")),
    }


def _write(
    staging: Staging, plan: dict[str, Any], nodes: DataFrame, topics: DataFrame, wishes: DataFrame
) -> Sampled:
    kept = write_table(wishes, staging.table("subscriptions"), SUBSCRIPTIONS, "node", ("node", "topic"))
    hosts = write_table(nodes, staging.table("hosts"), NODES, "node", ("node",))
    if not hosts:
        raise BadInput(f"{staging.out}: not made, the sample is empty; take more seeds or topics")
    listed = write_table(topics, staging.table("topics"), TOPICS, "topic", ("topic",))
    made = Sampled(hosts, listed, kept)
    write_about(staging, {**plan, "nodes": hosts, "topics": listed, "subscriptions": kept})
    return made
