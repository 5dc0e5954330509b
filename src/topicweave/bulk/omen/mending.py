"""Round-based experiments: an overlay that is mended after every churn event, as OMen §6 measures it.

The paper runs thousands of churn events, minutes apart, on up to ten thousand nodes. Message by message that is hours of virtual time in which nothing
happens; so here, as in PeerSim's cycle-driven mode, an event is handled by the rules themselves, and gossip goes on in cycles between events.
The nodes of `topicweave.systems.omen` call the same rules.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from topicweave.bulk.omen.churn import Happening, churn_sequence
from topicweave.bulk.omen.overlay import LiveOverlay
from topicweave.bulk.omen.plan import Handling, Mending
from topicweave.bulk.omen.spidercast import SpiderCastMender
from topicweave.bulk.omen.systems import OMenMender, RebuildMender
from topicweave.designs import low_oda
from topicweave.measures.diameter import topic_diameters
from topicweave.model.workload import Workload

Result = dict[str, Any]
Mender = OMenMender | RebuildMender | SpiderCastMender

SYSTEMS = ("omen", "lowoda-inc", "lowoda-re", "spidercast")


def run_mending(system: str, workload: Workload, plan: Mending, seed: int) -> Result:
    """Start from a LowODA overlay (§6.5), let nodes come and go, and look at it from time to time."""
    up, happenings = churn_sequence(plan.churn, workload.nodes, plan.rounds, seed)
    overlay = LiveOverlay(workload, up)
    nodes, instance = overlay.instance()
    overlay.link((nodes[u], nodes[v]) for u, v in low_oda(instance, rho=plan.rho).tolist())
    mender = _mender(system, overlay, plan, random.Random(f"mending/{system}/{seed}"))
    for _ in range(plan.warm_up):
        if isinstance(mender, OMenMender) and system == "omen":
            mender.gossip()
    looks, rebuild_seconds = [], []
    handled: list[Handling] = []
    unrestored = 0
    result: Result = {"nodes": len(up), "rounds": len(happenings)}
    if plan.backups and isinstance(mender, OMenMender):
        result |= _backup_degrees(mender)
    step = max(1, len(happenings) // plan.looks) if plan.looks else len(happenings) + 1
    looks.append(_look(mender, 0, plan))
    done = 0
    for batch in _batches(happenings, plan.concurrent):
        churned = [happening.node for happening in batch]
        news = [mender.join(churned[0])] if batch[0].joins else mender.leave(churned)
        handled += news
        if not isinstance(mender, RebuildMender):
            touched = {topic for node in churned for topic in overlay.interest[node]}
            unrestored += bool(overlay.parted(touched))
        before, done = done, done + len(batch)
        if system == "omen" and done // plan.gossip_every > before // plan.gossip_every:
            mender.gossip()
        if done // step > before // step:
            if isinstance(mender, RebuildMender):
                rebuild_seconds.append(mender.rebuild())
            looks.append(_look(mender, done, plan))
    result |= {
        "looks": looks,
        "unrestored_rounds": unrestored,
        "partitioned_topics": overlay.partitioned_topics(),
        "degree_max_mean": float(np.mean([look["degree_max"] for look in looks])),
        "degree_mean_mean": float(np.mean([look["degree_mean"] for look in looks])),
        "rebuild_seconds": float(np.mean(rebuild_seconds)) if rebuild_seconds else None,
        **_costs(handled),
    }
    if plan.histogram and isinstance(mender, OMenMender):
        result["view_sizes"] = sorted(mender.views.sizes())
    return result


def _mender(system: str, overlay: LiveOverlay, plan: Mending, rng: random.Random) -> Mender:
    if system in ("omen", "lowoda-inc"):
        return OMenMender(overlay, plan, rng, everybody=system == "lowoda-inc")
    if system == "spidercast":
        return SpiderCastMender(overlay, plan, rng)
    return RebuildMender(overlay, plan)


def _batches(happenings: list[Happening], size: int) -> list[list[Happening]]:
    """Departures in groups, in order; a join (or a node's return) ends a group."""
    batches: list[list[Happening]] = []
    for happening in happenings:
        last = batches[-1] if batches else []
        if happening.joins or not last or last[0].joins or len(last) == size:
            batches.append([happening])
        else:
            last.append(happening)
    return batches


def _look(mender: Mender, done: int, plan: Mending) -> Result:
    degrees = mender.overlay.degrees()
    look: Result = {
        "round": done,
        "nodes": len(degrees),
        "degree_max": max(degrees),
        "degree_mean": sum(degrees) / len(degrees),
        "partitioned_topics": mender.overlay.partitioned_topics(),
    }
    if isinstance(mender, OMenMender) and not mender.views.global_view:
        sizes = mender.views.sizes()
        look["local_view_mean"] = sum(sizes) / len(sizes)
        look["local_view_p95"] = float(np.percentile(sizes, 95))
    if plan.diameters:
        diameters = topic_diameters(mender.overlay.topic_graph())
        look["topic_diameter_mean"] = float(diameters.mean())
        look["topic_diameter_max"] = int(diameters.max(initial=0))
    return look


def _backup_degrees(mender: OMenMender) -> Result:
    """§6.3: an arc leads from a node to each of its backups."""
    backups = mender.views.all_backups()
    incoming = dict.fromkeys(backups, 0)
    for chosen in backups.values():
        for peer in chosen:
            incoming[peer] += 1
    return {
        "backup_sizes": [len(chosen) for chosen in backups.values()],
        "backup_in_degrees": list(incoming.values()),
        "list_sizes": [len(mender.overlay.interest[node]) for node in backups],
    }


def _costs(handled: list[Handling]) -> Result:
    costs: Result = {}
    for joins, name in ((True, "join"), (False, "leave")):
        some = [one for one in handled if one.joins == joins]
        if not some:
            continue
        for what in ("messages", "label_messages", "edges", "shadow", "search_seconds", "choice_seconds"):
            costs[f"{what}_per_{name}"] = float(np.mean([getattr(one, what) for one in some]))
        costs[f"repair_seconds_p50_{name}"] = float(
            np.median([one.search_seconds + one.choice_seconds for one in some])
        )
    if handled:
        costs["messages_per_event"] = float(np.mean([one.messages + one.label_messages for one in handled]))
        costs["choice_seconds_per_event"] = float(np.mean([one.choice_seconds for one in handled]))
        costs["repair_seconds_per_event"] = float(
            np.mean([one.search_seconds + one.choice_seconds for one in handled])
        )
    return costs
