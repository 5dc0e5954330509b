"""Why six friends cover fewer users than in Rappel's figure 1: with fewer users to choose friends among, and by
how many feeds a user wants.
"""

from __future__ import annotations

import random
from typing import Any

import msgspec
import numpy as np

from topicweave.papers.rappel.basics import InterestLocality
from topicweave.papers.rappel.settings import sized
from topicweave.papers.rappel.workloads import Source, data_set_of, subscriptions_of
from topicweave.papers.study import Plan, Results, Row, Scale, reported
from topicweave.runs.run import Result

SHARES = (0.125, 0.25, 0.5, 1.0)
SIX = 5
GROUPS = ((5, 10), (11, 20), (21, 40), (41, 10**6))


class LocalityWithin(msgspec.Struct, frozen=True, tag="locality-within", forbid_unknown_fields=True):
    """Figure 1 if friends are chosen among a random share of the users; the users covered are the same."""

    source: Source
    share: float
    users: int = 1000
    least_feeds: int = 5
    seed: int = 0

    @property
    def data_sets(self) -> tuple[str, ...]:
        return (data_set_of(self.source),)

    def run(self) -> Result:
        workload = subscriptions_of(self.source)
        among = np.random.default_rng(self.seed).random(workload.nodes) < self.share
        followers = [workload.subscribers(feed) for feed in range(workload.topics)]
        followers = [some[among[some]] for some in followers]
        counts = np.diff(workload.offsets)
        eligible = np.flatnonzero(counts >= self.least_feeds).tolist()
        rng = random.Random(f"locality/{self.source}/{self.seed}")
        chosen = rng.sample(eligible, min(self.users, len(eligible)))
        locality = InterestLocality(self.source, most_friends=SIX + 1)
        covered = [
            locality.cover(one, workload.interests(one), followers, workload.nodes)[SIX] for one in chosen
        ]
        return {"feeds": counts[chosen].tolist(), "covered": covered}


def why(scale: Scale, seed: int) -> Plan:
    """Six best friends out of a part of the users, and by the length of lists."""
    users = sized(scale, 60, 300, 1000)
    runs = {share: LocalityWithin("livejournal", share, users, seed=seed) for share in SHARES}

    def judge(results: Results) -> list[Row]:
        rows = []
        for share, result in results.items():
            where: dict[str, Any] = {"workload": "livejournal", "friends among": share}
            feeds, covered = np.array(result["feeds"]), np.array(result["covered"])
            rows += [
                reported(
                    where, "completely covered by 6 best friends", None, float(np.mean(covered == feeds))
                ),
                reported(where, "covered by 6 best friends, mean", None, float(np.mean(covered / feeds))),
            ]
            for low, high in GROUPS:
                some = (feeds >= low) & (feeds <= high)
                if some.any():
                    told = f"{low} to {high}" if high < GROUPS[-1][1] else f"{low} and more"
                    rows += [
                        reported(
                            {**where, "feeds": told},
                            "completely covered by 6 best friends",
                            None,
                            float(np.mean(covered[some] == feeds[some])),
                        ),
                        reported({**where, "feeds": told}, "users", None, int(some.sum())),
                    ]
        return rows

    return Plan(runs, judge)
