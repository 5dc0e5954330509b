"""Round-based experiments: an overlay that is mended after every churn event, as OMen §6 measures it.

The paper runs thousands of churn events, minutes apart, on up to ten thousand nodes. Message by message that
is hours of virtual time in which nothing happens; so here, as in PeerSim's cycle-driven mode, an event is
handled by the rules themselves, and gossip goes on in cycles between events. The nodes of
`topicweave.systems.omen` call the same rules.
"""

from __future__ import annotations

import random

import numpy as np

from topicweave.bulk.omen.churn import Happening, churn_sequence
from topicweave.bulk.omen.overlay import LiveOverlay
from topicweave.bulk.omen.plan import Handling, Mending
from topicweave.bulk.omen.spidercast import SpiderCastMender
from topicweave.bulk.omen.systems import OMenMender, RebuildMender
from topicweave.designs import low_oda
from topicweave.errors import BadInput
from topicweave.measures.diameter import diameter_measures
from topicweave.measures.mending import (
    BackupArcs,
    MendedEvents,
    degrees_over_time,
    messages_per_churn,
    view_measures,
)
from topicweave.measures.overlay import degree_measures
from topicweave.model.workload import Workload
from topicweave.runs.run import Result

Mender = OMenMender | RebuildMender | SpiderCastMender

SYSTEMS = ("omen", "lowoda-inc", "lowoda-re", "spidercast")


class MendingEngine:
    """An overlay that starts as LowODA builds it (§6.5), or as SpiderCast does. A round is one churn event, or
    `concurrent` departures at once.
    """

    def __init__(self, system: str, workload: Workload, plan: Mending, seed: int) -> None:
        up, happenings = churn_sequence(plan.churn, workload.nodes, plan.rounds, seed)
        self.overlay = LiveOverlay(workload, up)
        if plan.start == "LowODA":
            nodes, instance = self.overlay.instance()
            self.overlay.link((nodes[u], nodes[v]) for u, v in low_oda(instance, rho=plan.rho).tolist())
        self._plan = plan
        self._gossips = system == "omen"
        self.mender = _mender(system, self.overlay, plan, random.Random(f"mending/{system}/{seed}"))
        if plan.start == "own":
            if not isinstance(self.mender, SpiderCastMender):
                raise BadInput(f"{system} mends an overlay that is there: only spidercast makes its own")
            self.mender.select()
        if isinstance(self.mender, OMenMender) and self._gossips:
            for _ in range(plan.warm_up):
                self.mender.gossip()
        self.at_first = len(up)
        self.happenings = len(happenings)
        self._ahead = iter(_batches(happenings, plan.concurrent))
        self.handled: list[Handling] = []
        self.done = 0
        self.unrestored = 0
        """Rounds that ended with a topic in parts."""

    def step(self) -> bool:
        batch = next(self._ahead, None)
        if batch is None:
            return False
        churned = [happening.node for happening in batch]
        self.handled += [self.mender.join(churned[0])] if batch[0].joins else self.mender.leave(churned)
        if not isinstance(self.mender, RebuildMender):
            touched = {topic for node in churned for topic in self.overlay.interest[node]}
            self.unrestored += bool(self.overlay.parted(touched))
        before, self.done = self.done, self.done + len(batch)
        if self._gossips and self.done // self._plan.gossip_every > before // self._plan.gossip_every:
            self.mender.gossip()
        return True

    def observe(self) -> Result:
        """The overlay after so many rounds."""
        degrees = degree_measures(self.overlay.overlay())
        look: Result = {
            "round": self.done,
            "nodes": len(self.overlay.up),
            "degree_max": int(degrees["degree_max"]),
            "degree_mean": degrees["degree_mean"],
            "partitioned_topics": self.overlay.partitioned_topics(),
        }
        if isinstance(self.mender, OMenMender) and not self.mender.views.global_view:
            look |= view_measures(self.mender.views.sizes())
        if self._plan.diameters:
            look |= diameter_measures(self.overlay.topic_graph())
        return look


def run_mending(system: str, workload: Workload, plan: Mending, seed: int) -> Result:
    """Let nodes come and go, and look at the overlay from time to time."""
    engine = MendingEngine(system, workload, plan, seed)
    mender = engine.mender
    result: Result = {"nodes": engine.at_first, "rounds": engine.happenings}
    if plan.backups and isinstance(mender, OMenMender):
        result |= _backup_degrees(mender)
    every = max(1, engine.happenings // plan.looks) if plan.looks else engine.happenings + 1
    looks, rebuild_seconds = [engine.observe()], []
    before = 0
    while engine.step():
        if engine.done // every > before // every:
            if isinstance(mender, RebuildMender):
                rebuild_seconds.append(mender.rebuild())
            looks.append(engine.observe())
        before = engine.done
    result |= {
        "looks": looks,
        "unrestored_rounds": engine.unrestored,
        "partitioned_topics": engine.overlay.partitioned_topics(),
        **degrees_over_time(looks),
        "rebuild_seconds": float(np.mean(rebuild_seconds)) if rebuild_seconds else None,
        **_costs(engine.handled),
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


def _backup_degrees(mender: OMenMender) -> Result:
    kept = mender.views.all_backups()
    backups = BackupArcs.of(kept)
    return {
        "backup_sizes": backups.sizes.tolist(),
        "backup_in_degrees": backups.incoming.tolist(),
        "list_sizes": [len(mender.overlay.interest[node]) for node in kept],
    }


def _costs(handled: list[Handling]) -> Result:
    if not handled:
        return {}
    costs: Result = {
        "choice_seconds_per_event": float(np.mean([one.choice_seconds for one in handled])),
        "repair_seconds_per_event": float(np.mean([one.seconds for one in handled])),
        **messages_per_churn(
            MendedEvents(
                joins=np.array([one.joins for one in handled]),
                lists=np.array([one.size for one in handled]),
                messages=np.array([one.messages for one in handled], np.float64),
                label_messages=np.array([one.label_messages for one in handled], np.float64),
            )
        ),
    }
    for joins, name in ((True, "join"), (False, "leave")):
        some = [one for one in handled if one.joins == joins]
        if not some:
            continue
        for what in ("edges", "shadow", "build_seconds", "search_seconds", "choice_seconds", "seconds"):
            costs[f"{what}_per_{name}"] = float(np.mean([getattr(one, what) for one in some]))
        costs[f"repair_seconds_p50_{name}"] = float(np.median([one.seconds for one in some]))
    return costs
