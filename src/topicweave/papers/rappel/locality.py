"""Figure 1 with fewer users to choose friends among."""

from __future__ import annotations

import msgspec

from topicweave.papers.rappel.basics import InterestLocality
from topicweave.papers.rappel.workloads import FeedGraph, data_set_of
from topicweave.runs.run import Result

SIX = 5


class LocalityWithin(msgspec.Struct, frozen=True, tag="locality-within", forbid_unknown_fields=True):
    """Figure 1 if friends are chosen among a random share of the users; the users covered are the same."""

    source: FeedGraph
    share: float
    users: int = 1000
    least_feeds: int = 5
    seed: int = 0

    @property
    def data_sets(self) -> tuple[str, ...]:
        return (data_set_of(self.source),)

    def run(self) -> Result:
        locality = InterestLocality(self.source, self.users, SIX + 1, self.least_feeds, self.seed)
        feeds, covered = locality.coverings(self.share)
        return {"feeds": feeds.tolist(), "covered": covered[:, SIX].tolist()}
