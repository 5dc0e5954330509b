"""Smaller workloads out of large ones, as jobs over DataFrames: nothing here holds a graph on the driver.

What each sample is, by which reading of which paper, stands in `topicweave.data.sampling`, which does the
same in memory: the same seed gives the same sample.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from topicweave.data.sampling import (
    FEW,
    Step,
    bands_for,
    check_search,
    check_topics,
    check_universe,
    empty_sample,
    no_graph,
    rounds,
    too_few_nodes,
)
from topicweave.errors import BadInput
from topicweave.pipeline.parts import Target, finished, read, read_files, spill, write_table
from topicweave.pipeline.staging import Staging, mark_of, staged, table_files, write_about
from topicweave.pipeline.tables_of import CHURN, NODES, PLACES, SUBSCRIPTIONS, TOPICS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

VISITED = pa.schema([("node", pa.string()), ("level", pa.int64())])


class SampledTables(NamedTuple):
    nodes: int
    topics: int
    subscriptions: int
    changes: int = 0


def chance(seed: int, column: Column) -> Column:
    """A random number per name, in hexadecimal: that of `topicweave.data.sampling.chances`."""
    from pyspark.sql import functions as sf

    return sf.substring(sf.sha2(sf.concat(sf.lit(f"{seed}/"), column), 256), 1, 16)


def breadth_first(
    spark: SparkSession,
    source: Path | DataFrame,
    out: Path,
    *,
    nodes: int,
    seeds: int = FEW,
    follow: Step = "both",
    seed: int = 0,
    overwrite: bool = False,
) -> SampledTables:
    """OMen §6.1: breadth first from a few random users, with all links among those reached."""
    check_search(nodes, seeds)
    tables = _tables(spark, source)
    plan = _plan(source, "bfs", nodes=nodes, seeds=seeds, follow=follow, seed=seed)
    with staged(out, plan, overwrite, parents_of(plan)) as staging:
        _refuse_no_graph(tables, source, nodes)
        links = _links(tables["subscriptions"], follow)
        visited = _search(spark, staging, links, tables["nodes"], nodes, seeds, seed)
        return _write_among(staging, plan, tables, visited.select("node"))


def followed(
    spark: SparkSession,
    source: Path | DataFrame,
    out: Path,
    *,
    nodes: int,
    seed: int = 0,
    overwrite: bool = False,
) -> SampledTables:
    """Vitis §IV-E: random users and all whom they follow, with all links among these."""
    from pyspark.sql import functions as sf

    check_search(nodes, 1)
    tables = _tables(spark, source)
    plan = _plan(source, "followed", nodes=nodes, seed=seed)
    with staged(out, plan, overwrite, parents_of(plan)) as staging:
        _refuse_no_graph(tables, source, nodes)
        itself = tables["nodes"].select("node", chance(seed, sf.col("node")).alias("first"))
        by_follower = tables["subscriptions"].select(
            sf.col("topic").alias("node"), chance(seed, sf.col("node")).alias("first")
        )
        first = itself.unionByName(by_follower).groupBy("node").agg(sf.min("first").alias("first"))
        last = first.orderBy("first").limit(nodes).agg(sf.max("first")).first()
        assert last is not None
        return _write_among(staging, plan, tables, first.where(sf.col("first") <= last[0]).select("node"))


def _refuse_no_graph(tables: dict[str, DataFrame], source: Path | DataFrame, nodes: int) -> None:
    """Raise unless every topic is a node, and there are enough of them."""
    users = tables["nodes"].select(tables["nodes"]["node"].alias("topic"))
    stranger = tables["subscriptions"].join(users, "topic", "left_anti").agg({"topic": "min"}).first()
    if stranger is not None and stranger[0] is not None:
        raise no_graph(str(source), stranger[0])
    population = users.count()
    if nodes > population:
        raise too_few_nodes(str(source), population, nodes)


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
            step = f"level {level + 1}, {count:,} of {wanted:,} nodes so far"
            size = write_table(rows, path, VISITED, "node", ("node",), at_most=wanted - count, step=step)
        elif not frontier_size:
            starts = 1
        frontier_size = size
        count += size
        level += 1
    return _levels(spark, folder, level)


def _levels(spark: SparkSession, folder: Target, levels: int) -> DataFrame:
    if not levels:
        return spark.createDataFrame([], "node string, level long")
    return read(spark, *(folder / f"level-{level:05d}" for level in range(levels)))


def _smallest(rows: DataFrame, seed: int, count: int, by: Column | None = None) -> DataFrame:
    """The `count` rows with the smallest hashes of `node` (or of another column)."""
    from pyspark.sql import functions as sf

    column = sf.col("node") if by is None else by
    return rows.orderBy(chance(seed, column), column).limit(count)


def universe(
    spark: SparkSession,
    source: Path | DataFrame,
    out: Path,
    *,
    seeds: int,
    publishers: int,
    seed: int = 0,
    overwrite: bool = False,
) -> SampledTables:
    """Rappel §6.1.2: random seed journals, their subscribers, and the journals that these want most."""
    from pyspark.sql import functions as sf

    check_universe(seeds, publishers)
    tables = _tables(spark, source)
    plan = _plan(source, "universe", seeds=seeds, publishers=publishers, seed=seed)
    with staged(out, plan, overwrite, parents_of(plan)) as staging:
        wishes = tables["subscriptions"]
        journals = _smallest(wishes.select("topic").distinct(), seed, seeds, sf.col("topic"))
        users = wishes.join(journals, "topic", "left_semi").select("node").distinct()
        inside = wishes.join(users, "node", "left_semi")
        popular = (
            inside.groupBy("topic")
            .count()
            .orderBy(sf.desc("count"), sf.length("topic"), "topic")
            .limit(publishers)
        )
        kept = inside.join(sf.broadcast(popular.select("topic")), "topic", "left_semi")
        return _write(staging, plan, tables, kept.select("node").distinct(), kept)


def neighbourhood(
    spark: SparkSession,
    source: Path | DataFrame,
    out: Path,
    *,
    nodes: int,
    seed: int = 0,
    overwrite: bool = False,
) -> SampledTables:
    """Nodes chosen by what they have in common, with all their topics: a job for each round (a dozen for
    thousands of nodes).
    """
    from pyspark.sql import functions as sf

    check_search(nodes, 1)
    tables = _tables(spark, source)
    plan = _plan(source, "neighbourhood", nodes=nodes, seed=seed)
    with staged(out, plan, overwrite, parents_of(plan)) as staging:
        population = tables["nodes"].count()
        if nodes > population:
            raise too_few_nodes(str(source), population, nodes)
        everyone = _banded(tables, population, nodes, seed, staging)
        folder = staging.scratch("rounds")
        all_rounds = list(rounds(nodes, seed))  # a dozen, each of as many numbers as there are bands
        for number, needed in enumerate(all_rounds):
            path = folder / f"level-{number:05d}"
            if finished(path) is None:
                kept = _levels(spark, folder, number).select("node")
                found = _most_in_common(tables["subscriptions"], everyone, kept, needed.tolist())
                write_table(
                    found.withColumn("level", sf.lit(number).cast("long")),
                    path,
                    VISITED,
                    "node",
                    ("node",),
                    at_most=int(needed.sum()),
                    step=f"round {number + 1} of {len(all_rounds)}",
                )
        chosen = _levels(spark, folder, len(all_rounds)).select("node")
        wishes = tables["subscriptions"].join(chosen, "node", "left_semi")
        return _write(staging, plan, tables, chosen, wishes)


def _banded(
    tables: dict[str, DataFrame], population: int, count: int, seed: int, staging: Staging
) -> DataFrame:
    """Every node with its place in the order of list lengths, the length, and the band of lengths that it is in."""
    from pyspark.sql import functions as sf

    kept = staging.scratch("bands")
    if kept.exists():
        return read(tables["nodes"].sparkSession, kept)
    sizes = tables["subscriptions"].groupBy("node").agg(sf.count("*").alias("size"))
    sized = tables["nodes"].join(sizes, "node", "left").fillna(0, ["size"])
    key = sf.concat(sf.lpad(sf.col("size").cast("string"), 20, "0"), chance(seed, sf.col("node")))
    numbered = _numbered(sized, key, staging.scratch("order"))
    width, longer = divmod(population, bands_for(count))
    band = (
        f"case when number < {longer * (width + 1)} then number div {width + 1} "
        f"else {longer} + (number - {longer * (width + 1)}) div {max(1, width)} end"
    )
    banded = numbered.join(sized, "node").selectExpr("node", "number", "size", f"{band} band")
    return spill(banded, kept)  # every round looks at all of it


def _most_in_common(wishes: DataFrame, everyone: DataFrame, kept: DataFrame, needed: list[int]) -> DataFrame:
    """So many nodes of each band: those of whose topics the largest share is wanted by the nodes kept."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sf

    wanted = wishes.join(kept, "node", "left_semi").select("topic").distinct()
    common = wishes.join(wanted, "topic", "left_semi").groupBy("node").agg(sf.count("*").alias("common"))
    table = pa.table({"band": range(len(needed)), "needed": needed})
    bands = wishes.sparkSession.createDataFrame(table).where("needed > 0")
    share = sf.coalesce("common", sf.lit(0)) / sf.greatest("size", sf.lit(1))
    order = Window.partitionBy("band").orderBy(sf.desc("share"), "number")
    return (
        everyone.join(sf.broadcast(bands), "band")
        .join(kept, "node", "left_anti")
        .join(common, "node", "left")
        .withColumn("share", share)
        .withColumn("place", sf.row_number().over(order))
        .where("place <= needed")
        .select("node")
    )


def random_topics(
    spark: SparkSession,
    source: Path | DataFrame,
    out: Path,
    *,
    topics: int,
    seed: int = 0,
    overwrite: bool = False,
) -> SampledTables:
    """Magnet §4.5: random topics, and everybody who wants one of them."""
    from pyspark.sql import functions as sf

    tables = _tables(spark, source)
    plan = _plan(source, "topics", topics=topics, seed=seed)
    wanted = tables["subscriptions"].select("topic").distinct()
    check_topics(str(source), wanted.count(), topics)
    with staged(out, plan, overwrite, parents_of(plan)) as staging:
        chosen = _smallest(wanted, seed, topics, sf.col("topic"))
        wishes = tables["subscriptions"].join(chosen, "topic", "left_semi")
        return _write(staging, plan, tables, wishes.select("node").distinct(), wishes)


def with_churn(
    spark: SparkSession,
    source: Path | DataFrame,
    trace: Path,
    out: Path,
    *,
    seconds: float | None = None,
    seed: int = 0,
    overwrite: bool = False,
) -> SampledTables:
    """The workload with a churn trace laid over it: each node lives the life of a random host of the trace
    (see `topicweave.data.availability.with_churn`).
    """
    from pyspark.sql import functions as sf

    tables = _tables(spark, source)
    changes = _read(spark, trace, "churn")
    hosts = _read(spark, trace, "hosts")
    if changes is None or hosts is None:
        raise BadInput(f"{trace}: no churn in it; import a trace (machine-events, availability) there first")
    if seconds is not None and not 0 < seconds < math.inf:
        raise BadInput(f"{seconds} seconds: scale to a positive length that ends")
    plan = _plan(source, "churn", seconds=seconds, seed=seed)
    plan |= {"trace": str(trace), "trace_mark": mark_of(trace)}
    with staged(out, plan, overwrite, parents_of(plan)) as staging:
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
        tables["churn"] = scaled
        return _write(staging, plan, tables, tables["nodes"], tables["subscriptions"], tables["topics"])


def _never_up(hosts: DataFrame, changes: DataFrame) -> DataFrame:
    """Hosts that a trace of sessions lists without any; in a trace of changes they would have been up all along."""
    if "sessions" not in hosts.columns:
        return hosts.where("false").select("node")
    return hosts.select("node").join(changes.select("node").distinct(), "node", "left_anti")


def _numbered(rows: DataFrame, key: Column, scratch: Target) -> DataFrame:
    """Rows with a `number` from 0 in the order of a key, counted partition by partition and not in one place."""
    from pyspark.sql import functions as sf

    placed = rows.withColumn("key", key).orderBy("key", "node")
    stored = spill(placed.select("node", sf.monotonically_increasing_id().alias("mark")), scratch)
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


def _plan(source: Path | DataFrame, kind: str, **more: Any) -> dict[str, Any]:
    """What the sample depends on. Nothing tells whether rows that somebody computes are the same the next time."""
    if isinstance(source, Path):
        return {"command": f"workload sample {kind}", "source": str(source), "mark": mark_of(source), **more}
    mark = secrets.token_hex(8)
    return {"command": f"workload sample {kind}", "source": "a DataFrame", "mark": mark, **more}


def parents_of(plan: Mapping[str, Any]) -> dict[str, str]:
    """What a sample is made from, with what names its contents."""
    trace = {plan["trace"]: plan["trace_mark"]} if "trace" in plan else {}
    return {plan["source"]: plan["mark"], **trace}


def _read(spark: SparkSession, folder: Path, name: str) -> DataFrame | None:
    files = table_files(folder, name)
    return read_files(spark, files) if files else None


def _tables(spark: SparkSession, folder: Path | DataFrame) -> dict[str, DataFrame]:
    """subscriptions, nodes and topics of a workload, whichever of its tables are there."""
    from pyspark.sql import functions as sf

    if not isinstance(folder, Path):
        wishes = folder.selectExpr("cast(node as string) node", "cast(topic as string) topic")
        rated = wishes.select("topic").distinct().withColumn("rate", sf.lit(1.0))
        return {"subscriptions": wishes, "nodes": wishes.select("node").distinct(), "topics": rated}
    subscriptions = _read(spark, folder, "subscriptions")
    if subscriptions is None:
        raise BadInput(f"{folder}: no subscriptions.parquet; give the folder of a workload")
    text: Callable[[str], Column] = lambda name: sf.col(name).cast("string").alias(name)  # noqa: E731
    wishes = subscriptions.select(text("node"), text("topic"))
    hosts, topics = _read(spark, folder, "hosts"), _read(spark, folder, "topics")
    tables = {
        "subscriptions": wishes,
        "nodes": wishes.select("node").distinct() if hosts is None else hosts.select(text("node")),
        "topics": wishes.select("topic").distinct().withColumn("rate", sf.lit(1.0))
        if topics is None
        else topics.select(text("topic"), sf.col("rate").cast("double").alias("rate")),
    }
    if hosts is not None and "x" in hosts.columns:
        tables["places"] = hosts.select(text("node"), *(sf.col(axis).cast("double") for axis in ("x", "y")))
    if (churn := _read(spark, folder, "churn")) is not None:
        tables["churn"] = churn.select(sf.col("time").cast("double").alias("time"), text("node"), "change")
    return tables


def _write_among(
    staging: Staging, plan: dict[str, Any], tables: dict[str, DataFrame], nodes: DataFrame
) -> SampledTables:
    """Some users with the links between them."""
    wishes = (
        tables["subscriptions"]
        .join(nodes, "node", "left_semi")
        .join(nodes.withColumnRenamed("node", "topic"), "topic", "left_semi")
    )
    return _write(staging, plan, tables, nodes, wishes)


def _write(
    staging: Staging,
    plan: dict[str, Any],
    tables: dict[str, DataFrame],
    nodes: DataFrame,
    wishes: DataFrame,
    topics: DataFrame | None = None,
) -> SampledTables:
    """Some nodes with some of their subscriptions, their places and changes; and the topics wanted, if not given."""
    kept = write_table(wishes, staging.table("subscriptions"), SUBSCRIPTIONS, "node", ("node", "topic"))
    if not kept:
        raise empty_sample()
    hosts, schema = (tables["places"], PLACES) if "places" in tables else (tables["nodes"], NODES)
    count = write_table(
        hosts.join(nodes, "node", "left_semi"), staging.table("hosts"), schema, "node", ("node",)
    )
    if topics is None:
        topics = tables["topics"].join(wishes.select("topic").distinct(), "topic", "left_semi")
    listed = write_table(topics, staging.table("topics"), TOPICS, "topic", ("topic",))
    changed = 0
    if "churn" in tables:
        changes = tables["churn"].join(nodes, "node", "left_semi")
        changed = write_table(changes, staging.table("churn"), CHURN, "node", ("time", "node"))
    write_about(staging, {**plan, "nodes": count, "topics": listed, "subscriptions": kept})
    return SampledTables(count, listed, kept, changed)
