"""From parsed rows to the tables of a folder: one DataFrame job per kind of trace.

Each function writes its tables into the staging folder and gives what it counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from topicweave.errors import BadInput
from topicweave.pipeline.parts import spill, write_table
from topicweave.pipeline.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SUBSCRIPTIONS = pa.schema([("node", pa.string()), ("topic", pa.string())])
TOPICS = pa.schema([("topic", pa.string()), ("rate", pa.float64())])
NODES = pa.schema([("node", pa.string())])
CHURN = pa.schema([("time", pa.float64()), ("node", pa.string()), ("change", pa.string())])
HOST_SESSIONS = pa.schema([("node", pa.string()), ("sessions", pa.int64())])
RTT = pa.schema([("slice", pa.int64()), ("node", pa.string()), ("peer", pa.string()), ("rtt", pa.float64())])
PLACES = pa.schema([("node", pa.string()), ("x", pa.float64()), ("y", pa.float64())])
HIGH_PLACES = pa.schema([*PLACES, pa.field("height", pa.float64())])
AS_LINKS = pa.schema([("source", pa.string()), ("target", pa.string()), ("relation", pa.int64())])
ASES = pa.schema([("node", pa.string()), ("neighbours", pa.int64()), ("customers", pa.int64())])

Counts = dict[str, int]


def users(rows: DataFrame, staging: Staging, options: Any) -> Counts:
    """A graph of users: every user is a node and a topic, and wants the topics of those it follows (OMen §6.1)."""
    from pyspark.sql import functions as sf

    links = rows.where("topic is not null").select("node", "topic")
    found = rows.agg(
        sf.count("*").alias("rows"),
        sf.count("topic").alias("links"),
        sf.count_if(sf.col("node") == sf.col("topic")).alias("selves"),
    ).first()
    assert found is not None
    proper = links.where("node != topic")
    turned = proper.select(sf.col("topic").alias("node"), sf.col("node").alias("topic"))
    wishes = {"follows": proper, "followed": turned, "both": proper.unionByName(turned)}[options.direction]
    ways = 2 if options.direction == "both" else 1
    everyone = rows.select("node").union(links.select("topic")).distinct()
    most = found["rows"] + found["links"]
    counts = _subscriptions(wishes, staging, ways * (found["links"] - found["selves"]))
    counts["self_follows"] = found["selves"]
    counts["nodes"] = write_table(everyone, staging.table("hosts"), NODES, "node", ("node",), most)
    topics = everyone.select(sf.col("node").alias("topic"), sf.lit(1.0).alias("rate"))
    counts["topics"] = write_table(topics, staging.table("topics"), TOPICS, "topic", ("topic",), most)
    counts["links"] = found["links"]
    return counts


def pairs(rows: DataFrame, staging: Staging, _options: Any) -> Counts:
    """Users and topics of two kinds."""
    from pyspark.sql import functions as sf

    found = rows.agg(sf.count("*").alias("rows"), sf.count("topic").alias("pairs")).first()
    assert found is not None
    wishes = rows.where("topic is not null").select("node", "topic")
    counts = _subscriptions(wishes, staging, found["pairs"])
    nodes = rows.select("node").distinct()
    counts["nodes"] = write_table(nodes, staging.table("hosts"), NODES, "node", ("node",), found["rows"])
    topics = wishes.select("topic").distinct().withColumn("rate", sf.lit(1.0))
    counts["topics"] = write_table(
        topics, staging.table("topics"), TOPICS, "topic", ("topic",), found["pairs"]
    )
    return counts


def edits(rows: DataFrame, staging: Staging, _options: Any) -> Counts:
    """An edit log: who edited a page wants it (Magnet §4.5); its rate is its edits over the log's length."""
    from pyspark.sql import functions as sf

    found = rows.agg(
        sf.count("*").alias("edits"), (sf.max("time") - sf.min("time")).cast("double").alias("seconds")
    ).first()
    assert found is not None
    most = found["edits"]
    counts = _subscriptions(rows.select("node", "topic"), staging, most)
    nodes = rows.select("node").distinct()
    counts["nodes"] = write_table(nodes, staging.table("hosts"), NODES, "node", ("node",), most)
    topics = rows.groupBy("topic").agg((sf.count("*") / (found["seconds"] or 1.0)).alias("rate"))
    counts["topics"] = write_table(topics, staging.table("topics"), TOPICS, "topic", ("topic",), most)
    counts["edits"] = most
    return counts


def _subscriptions(wishes: DataFrame, staging: Staging, offered: int) -> Counts:
    """`offered` is the number of wishes, repeated ones included."""
    kept = write_table(
        wishes.distinct(), staging.table("subscriptions"), SUBSCRIPTIONS, "node", ("node", "topic"), offered
    )
    if not kept:
        raise BadInput(f"{staging.out}: not made, for no line holds a subscription; choose another format")
    return {"subscriptions": kept, "duplicates": offered - kept}


def machine_events(rows: DataFrame, staging: Staging, _options: Any) -> Counts:
    """Joins and leaves that alternate; a change to a state that a machine is already in is set aside."""
    from pyspark.sql import functions as sf

    updates = rows.where("change = 'update'").count()
    changes = rows.where("change != 'update'")
    checked = spill(_checked(changes), staging.scratch("checked"))
    rejects = checked.where("problem is not null").select(
        "file", "line", sf.col("problem").alias("reason"), sf.concat_ws(" ", "change", "node").alias("text")
    )
    spill(rejects, staging.scratch("more_rejects"))
    good = checked.where("problem is null")
    counts = _churn(good, staging)
    machines = rows.select("node").distinct()
    counts["nodes"] = write_table(machines, staging.table("hosts"), NODES, "node", ("node",))
    counts["events"] = rows.count()
    counts["updates"] = updates
    return counts


def _checked(changes: DataFrame) -> DataFrame:
    """With a column `problem`: what is wrong with a change, beside the machine's others; null if nothing is.

    The rule is that of `topicweave.data.availability.alternating`.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as sf

    order = ("time", "file", "line")
    following = sf.lead("time").over(Window.partitionBy("node").orderBy(*order))
    marked = changes.withColumn("superseded", sf.coalesce(following == sf.col("time"), sf.lit(False)))
    before = sf.lag("change").over(Window.partitionBy("node", "superseded").orderBy(*order))
    problem = (
        sf.when(sf.col("superseded"), sf.lit("the machine changes again at the same moment"))
        .when(
            before.isNull() & (sf.col("change") == "leave"), sf.lit("removes a machine that was never added")
        )
        .when(
            before == sf.col("change"), sf.concat(sf.lit("the machine is already in this state: "), "change")
        )
    )
    return marked.withColumn("problem", problem)


def availability(rows: DataFrame, staging: Staging, _options: Any) -> Counts:
    """Sessions into joins and leaves; hosts keep the recorded number, also those that were never up."""
    from pyspark.sql import functions as sf

    changes = rows.where("change is not null")
    counts = _churn(changes, staging)
    hosts = rows.groupBy("node").agg(sf.sum("sessions").alias("sessions"))
    counts["nodes"] = write_table(hosts, staging.table("hosts"), HOST_SESSIONS, "node", ("node",))
    lines = rows.select("file", "line").distinct().count()
    if counts["nodes"] != lines:
        twice = rows.groupBy("node").agg(sf.count_distinct("file", "line").alias("lines")).where("lines > 1")
        name = twice.orderBy("node").first()
        raise BadInput(
            f"{staging.out}: not made, host {name and name['node']!r} has two lines; keep one of them"
        )
    total = hosts.agg(sf.sum("sessions")).first()
    counts["sessions"] = int(total[0] or 0) if total else 0
    counts["never_up"] = hosts.where("sessions = 0").count()
    return counts


def _churn(changes: DataFrame, staging: Staging) -> Counts:
    from pyspark.sql import functions as sf

    written = write_table(changes, staging.table("churn"), CHURN, "node", ("time", "node"))
    joins = changes.where("change = 'join'").count()
    last = changes.agg(sf.max("time")).first()
    seconds = float(last[0]) if last and last[0] is not None else 0.0
    return {"changes": written, "joins": joins, "leaves": written - joins, "seconds": round(seconds)}


def rtt(rows: DataFrame, staging: Staging, _options: Any) -> Counts:
    """Matrices one after the other in time, in the order of the numbers in their names."""
    from pyspark.sql import functions as sf

    number = sf.coalesce(sf.regexp_extract("file", r"(\d+)\D*$", 1).try_cast("long"), sf.lit(0))
    slices = rows.select("file").distinct().withColumn("number", number)
    ordered = sorted((row["number"], row["file"]) for row in slices.collect())  # one per matrix
    place = sf.create_map(*[sf.lit(item) for at, (_, file) in enumerate(ordered) for item in (file, at)])
    long = rows.select(
        place[sf.col("file")].cast("long").alias("slice"),
        (sf.col("line") - 1).cast("string").alias("node"),
        "peer",
        "rtt",
    )
    sizes = long.groupBy("slice").agg(
        sf.count_distinct("node").alias("hosts"), sf.count_distinct("peer").alias("peers")
    )
    odd = sizes.where("hosts != peers").orderBy("slice").first()
    if odd is not None:
        file = ordered[odd["slice"]][1]
        raise BadInput(
            f"{file}: {odd['hosts']} rows of {odd['peers']} columns; a matrix of round trips is square"
        )
    counts = {"rtts": write_table(long, staging.table("rtt"), RTT, "slice", ("slice", "node", "peer"))}
    nodes = long.select("node").distinct()
    counts["nodes"] = write_table(nodes, staging.table("hosts"), NODES, "node", ("node",))
    counts["slices"] = len(ordered)
    counts["missing"] = long.where("rtt < 0 or isnan(rtt)").count()
    return counts


def coordinates(rows: DataFrame, staging: Staging, _options: Any) -> Counts:
    """Places of hosts; the height only where the trace has one."""
    high = rows.where("height is not null").limit(1).count() > 0
    schema = HIGH_PLACES if high else PLACES
    _refuse_repeated(rows, staging, "host")
    return {"nodes": write_table(rows, staging.table("hosts"), schema, "node", ("node",))}


def _refuse_repeated(rows: DataFrame, staging: Staging, what: str) -> None:
    twice = rows.groupBy("node").count().where("count > 1").orderBy("node").first()
    if twice is not None:
        raise BadInput(f"{staging.out}: not made, {what} {twice['node']!r} has two lines; keep one of them")


def as_graph(rows: DataFrame, staging: Staging, _options: Any) -> Counts:
    """Links as given, and each AS with its distinct neighbours and, where relations are given, its customers.

    An AS without customers is a stub, any other carries transit. In a relation of -1 the second is the first's
    customer, in one of 1 the other way round; the same link may stand in the file from both sides.
    """
    from pyspark.sql import functions as sf

    counts = {
        "links": write_table(
            rows, staging.table("as_links"), AS_LINKS, "source", ("source", "target", "relation")
        )
    }
    both = rows.select("source", "target", "relation").unionByName(
        rows.select(
            sf.col("target").alias("source"),
            sf.col("source").alias("target"),
            (-sf.col("relation")).alias("relation"),
        )
    )
    customer = sf.when(sf.col("relation") == -1, sf.col("target"))
    ases = both.groupBy(sf.col("source").alias("node")).agg(
        sf.count_distinct("target").alias("neighbours"),
        sf.when(sf.count("relation") > 0, sf.count_distinct(customer)).alias("customers"),
    )
    counts["ases"] = write_table(ases, staging.table("ases"), ASES, "node", ("node",))
    pairs = both.where("source < target").select("source", "target").distinct()
    counts["neighbouring"] = pairs.count()
    counts["stubs"] = ases.where("customers = 0").count()
    return counts
