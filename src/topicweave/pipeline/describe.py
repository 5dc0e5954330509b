"""What a folder of tables holds: sizes, popularity, and how alike nodes' interests are.

Counts and histograms come from Spark aggregations. How alike nodes are is looked at from a sample of nodes (all of
them if there are few), each compared with *every* node: the sampled lists are small and go to all executors, the
large table stays where it is, and only the best few peers of each sampled node come back.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from topicweave.errors import BadInput, without_secrets
from topicweave.pipeline import likeness, power_law
from topicweave.pipeline.parts import read_files
from topicweave.pipeline.staging import read_about, table_files
from topicweave.pipeline.workers import described

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KNOWN = ("subscriptions", "topics", "hosts", "churn", "rtt", "as_links", "ases", "rejects")
_POINTS = 200
"""Points of a curve, at most: enough for the eye, and no more on a table of billions."""


def describe(
    spark: SparkSession, folder: Path, *, sample: int = 1000, d: int = 20, seed: int = 0
) -> dict[str, Any]:
    """Everything there is to say about a folder; sections for the tables that are there."""
    tables = {name: read_files(spark, files) for name in _KNOWN if (files := table_files(folder, name))}
    if not set(tables) - {"rejects"}:
        raise BadInput(
            f"{folder}: no tables of ours in it; give a folder that generate, import or sample made"
        )
    about = read_about(folder)
    shown = without_secrets(str(folder))
    description: dict[str, Any] = {"folder": shown, "made_by": about.get("command", "unknown")}
    if "counts" in about:
        description["import"] = about["counts"]
    if "subscriptions" in tables:
        with described(spark, "sizes and popularity"):
            description |= _sizes(tables)
        with described(spark, f"compare {sample:,} nodes with all"):
            description["likeness"] = likeness.measure(_wishes(tables), sample=sample, d=d, seed=seed)
    elif "hosts" in tables:
        description["nodes"] = tables["hosts"].count()
    if "churn" in tables:
        description["churn"] = _churn(tables["churn"], tables.get("hosts"))
    if "hosts" in tables and "x" in tables["hosts"].columns:
        description["places"] = _places(tables["hosts"])
    if "rtt" in tables:
        description["rtt"] = _rtt(tables["rtt"])
    if "as_links" in tables:
        description["as_graph"] = _as_graph(tables["as_links"], tables["ases"])
    if "rejects" in tables:
        description["rejects"] = tables["rejects"].count()
    return description


def _wishes(tables: dict[str, DataFrame]) -> DataFrame:
    return tables["subscriptions"].selectExpr("cast(node as string) node", "cast(topic as string) topic")


def _sizes(tables: dict[str, DataFrame]) -> dict[str, Any]:
    wishes = _wishes(tables)
    lists = wishes.groupBy("node").count()
    audiences = wishes.groupBy("topic").count()
    list_sizes, popularity = _histogram(lists), _histogram(audiences)
    nodes = tables["hosts"].count() if "hosts" in tables else int(list_sizes[1].sum())
    topics = tables["topics"].count() if "topics" in tables else int(popularity[1].sum())
    rate = tables["topics"].selectExpr("sum(rate)").first() if "topics" in tables else None
    return {
        "nodes": nodes,
        "topics": topics,
        "subscriptions": int((list_sizes[0] * list_sizes[1]).sum()),
        "events_per_second": float(rate[0]) if rate and rate[0] is not None else float(topics),
        "list_sizes": _distribution(*list_sizes, without=nodes - int(list_sizes[1].sum())),
        "popularity": {
            **_distribution(*popularity, without=topics - int(popularity[1].sum())),
            "exponent": power_law.fit(*popularity)._asdict(),
        },
    }


def _histogram(counts: DataFrame) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(values, how often each occurs). Values that differ are at most about the root of twice the rows."""
    from pyspark.sql import functions as sf

    rows = counts.groupBy(sf.col("count").alias("value")).agg(sf.count("*").alias("times"))
    table = rows.toArrow().sort_by("value")
    return np.asarray(table["value"].to_numpy()), np.asarray(table["times"].to_numpy())


def _distribution(
    values: npt.NDArray[np.int64], times: npt.NDArray[np.int64], without: int
) -> dict[str, Any]:
    """Of those with at least one; `without` are those with none."""
    if not len(values):
        return {"none": without}
    total = times.sum()
    share_above = 1.0 - (np.cumsum(times) - times) / total
    at = np.unique(np.geomspace(1, len(values), min(_POINTS, len(values))).astype(int) - 1)
    return {
        "min": int(values[0]),
        "mean": float((values * times).sum() / total),
        "p50": _quantile(values, times, 0.5),
        "p95": _quantile(values, times, 0.95),
        "max": int(values[-1]),
        "none": without,
        "ccdf": [[int(values[place]), float(share_above[place])] for place in at],
    }


def _quantile(values: npt.NDArray[np.int64], times: npt.NDArray[np.int64], share: float) -> int:
    return int(values[np.searchsorted(np.cumsum(times), share * times.sum())])


def _churn(churn: DataFrame, hosts: DataFrame | None) -> dict[str, Any]:
    from pyspark.sql import functions as sf

    row = churn.agg(
        sf.count("*").alias("changes"),
        sf.count_if(sf.col("change") == "join").alias("joins"),
        sf.count_distinct("node").alias("nodes"),
        sf.max("time").alias("seconds"),
    ).first()
    assert row is not None
    found: dict[str, Any] = {
        "nodes": row["nodes"],
        "changes": row["changes"],
        "joins": row["joins"],
        "leaves": row["changes"] - row["joins"],
        "days": float(row["seconds"] or 0.0) / 86_400,
    }
    if hosts is not None and "sessions" in hosts.columns:
        sessions = hosts.agg(sf.sum("sessions"), sf.count_if(sf.col("sessions") == 0)).first()
        assert sessions is not None
        found |= {"sessions": int(sessions[0] or 0), "hosts_never_up": int(sessions[1])}
    return found


def _places(hosts: DataFrame) -> dict[str, Any]:
    row = hosts.selectExpr("count(x)", "min(x)", "max(x)", "min(y)", "max(y)").first()
    assert row is not None
    return {
        "hosts": row[0],
        "x": [row[1], row[2]],
        "y": [row[3], row[4]],
        "height": "height" in hosts.columns,
    }


def _rtt(rtt: DataFrame) -> dict[str, Any]:
    valid = "node != peer and rtt >= 0 and not isnan(rtt)"
    row = rtt.selectExpr(
        "count(distinct slice)",
        "count(distinct node)",
        "count(*)",
        f"percentile_approx(if({valid}, rtt, null), 0.5, 10000)",
        f"max(if({valid}, rtt, null))",
        "count_if(rtt < 0 or isnan(rtt))",
    ).first()
    assert row is not None
    return dict(zip(("slices", "hosts", "round_trips", "median", "max", "missing"), row, strict=True))


def _as_graph(links: DataFrame, ases: DataFrame) -> dict[str, Any]:
    row = ases.selectExpr(
        "count(*)", "avg(neighbours)", "max(neighbours)", "count_if(customers = 0)", "count_if(customers > 0)"
    ).first()
    assert row is not None
    names = ("ases", "neighbours_mean", "neighbours_max", "stubs", "transit")
    known = dict(zip(names, row, strict=True))
    if not known["stubs"] + known["transit"]:  # a graph without relations does not tell
        del known["stubs"], known["transit"]
    return {"links": links.count(), **known}


def facts(description: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """The description as lines of a table, curves left out."""
    for name, value in description.items():
        if isinstance(value, dict):
            yield from facts(value, f"{prefix}{name}.")
        elif not isinstance(value, list):
            yield f"{prefix}{name}", _shown(value)
        elif value and isinstance(value[0], dict):
            for one in value:
                where, *rest = one.items()
                for measure, number in rest:
                    yield f"{prefix}{name}.{where[1]}.{measure}", _shown(number)
        elif value and not isinstance(value[0], list):
            yield f"{prefix}{name}", ", ".join(_shown(one) for one in value)


def _shown(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:,.4g}"
    return str(value)
