"""SpiderCast §3.7 and §3.8: nodes that know few others, and nodes that come and go."""

from __future__ import annotations

from topicweave.papers.spidercast.settings import (
    settled,
)
from topicweave.papers.study import Plan, Results, Row, Scale, listed
from topicweave.runs.churned import ChurnedOverlay
from topicweave.runs.sources import GeneratedWorkload


def fig10(scale: Scale, seed: int) -> Plan:
    """Partial views: how little a node may know; by decree as in the paper, and by real gossip."""
    sizes = (4000, 8000) if scale == "paper" else (400,)
    shares = ["5%", "10%", "25%", "50%", "75%", "100%"] if scale == "paper" else ["25%", "50%", "100%"]
    runs = {(nodes, share): settled(nodes, seed, membership=share) for nodes in sizes for share in shares}
    # Views of 5% by gossip must first be gathered, a few dozen descriptors a second.
    runs |= {
        (nodes, "gossip"): settled(nodes, seed, membership=f"gossip:{nodes // 20}", settle=40.0)
        for nodes in sizes
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for nodes in sizes:
            for share in (*shares, "gossip"):
                result = results[nodes, share]
                where = {"nodes": nodes, "membership": share}
                rows += [
                    Row(where, "partitioned_topics", 0, result["partitioned_topics"]),
                    Row(where, "degree_mean", "little affected", result["degree_mean"]),
                ]
        return rows

    return Plan(runs, rows_of)


def fig11(scale: Scale, seed: int) -> Plan:
    """Churn: topics stay connected, degree stays flat, and what a join or leave costs."""
    sizes = (1250, 2500) if scale == "paper" else (250,)
    lives = (100.0, 200.0, 300.0, 400.0, 500.0) if scale == "paper" else (100.0, 500.0)
    duration = 1000.0 if scale == "paper" else 200.0
    messages_in_paper = {1250: 38, 2500: 34}
    runs = {
        (nodes, life): ChurnedOverlay(
            system="spidercast",
            parameters={"bridges": 0},
            workload=GeneratedWorkload(nodes, seed=seed),
            seed=seed,
            duration=duration,
            mean_up=life,
            mean_down=life / 4,
        )
        for nodes in sizes
        for life in lives
    }

    def rows_of(results: Results) -> list[Row]:
        rows = []
        for nodes in sizes:
            degrees = [results[nodes, life]["degree_mean"] for life in lives]
            for life in lives:
                result = results[nodes, life]
                where = {"nodes": nodes * 4 // 5, "mean_life": life}
                rows += [
                    Row(where, "partitioned_topics", 0, result["partitioned_topics"]),
                    Row(where, "degree_mean", None, result["degree_mean"]),
                    Row(
                        where,
                        "control messages per join or leave",
                        messages_in_paper.get(nodes),
                        result["messages_per_operation"],
                    ),
                ]
            rows.append(
                Row(
                    {"nodes": nodes * 4 // 5, "mean_life": "100 to 500"},
                    "degree_mean",
                    "not affected by churn",
                    listed(degrees),
                )
            )
        return rows

    return Plan(runs, rows_of)
