"""What OMen's studies run: workloads, rivals, and the row that must hold everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from topicweave.papers.omen.mending import Mended, Rival
from topicweave.papers.omen.workloads import SocialSample, SyntheticLists
from topicweave.papers.study import Row, Scale
from topicweave.runs.run import Result

Lists = SyntheticLists | SocialSample

RIVALS: dict[str, tuple[Rival, dict[str, Any]]] = {
    "omen": ("omen", {}),
    "omen-g": ("omen", {"global_view": True}),
    "lowoda-inc": ("lowoda-inc", {}),
    "lowoda-re": ("lowoda-re", {}),
    "spidercast(3,1)": ("spidercast", {"k_greedy": 3, "k_random": 1}),
    "spidercast(4,0)": ("spidercast", {"k_greedy": 4, "k_random": 0}),
}


def unif(scale: Scale, seed: int, popularity: str = "uniform") -> SyntheticLists:
    """The base instance of §6.1: 2,000 nodes, 200 topics."""
    if scale == "paper":
        return SyntheticLists(2000, 200, popularity, seed=seed)
    return SyntheticLists(150, 40, popularity, 5, 20, seed=seed)


def samples(scale: Scale, seed: int, graph: str, nodes: int = 1000, how_many: int = 3) -> dict[str, Lists]:
    """Workloads by name, others with every seed; at smoke scale one synthetic stand-in with skewed popularity."""
    if scale == "smoke":
        return {"zipf": SyntheticLists(150, 40, "zipf", 5, 20, seed=seed)}
    return {
        f"{graph} {nodes // 1000}K, sample {number}": SocialSample(graph, nodes, 10 * seed + number)
        for number in range(how_many)
    }


def mended(name: str, workload: Lists, scale: Scale, seed: int, rounds: int, **plan: Any) -> Mended:
    """A run of one of the rivals; the paper's trace at paper scale."""
    system, settings = RIVALS[name]
    churn: Any = "google" if scale == "paper" else "random"
    rounds = rounds if scale == "paper" else min(rounds, 60)
    return Mended(
        system=system,
        workload=workload,
        seed=seed,
        rounds=rounds,
        **{"churn": churn, **settings, **plan},
    )


def restored(where: Mapping[str, Any], result: Result) -> Row:
    """What must hold in every run: no round ends with a topic in parts."""
    broken = result["unrestored_rounds"] + result["partitioned_topics"]
    return Row(where, "rounds that end with a partitioned topic", 0, broken)
