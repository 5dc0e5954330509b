"""What a study of Magnet's trees asks for: how the overlay is made, by arrays or by messages, and on which real subscriptions."""

from __future__ import annotations

import lzma
import random
from typing import Literal, NamedTuple

import msgspec

from topicweave.blocks.growing_ids import MAX_BYTES
from topicweave.data.mending_workloads import data_file
from topicweave.errors import UnknownName
from topicweave.model.workload import Workload


class Converged(msgspec.Struct, frozen=True):
    """How the overlay is made; the defaults are the paper's (§4.2)."""

    fingers: float = 8.5
    """On average. With the ring's two links and both ends of a finger counted, that makes a degree of 19."""
    samples: int = 10
    """Per topic. With none, every node stands where its name is hashed to."""
    choices: int = 2
    walks: int = 5
    """Per median."""
    weighted: bool = True
    """Whether similarity weighs topics by their rates."""
    by_topic: bool = False
    """Keep the cost of every topic and the degree of every node."""
    most_bytes: int = MAX_BYTES
    level: Literal["arrays", "messages"] = "arrays"
    """Computed at once (see `converged_magnet`), or reached by nodes in the simulator (see `settled_magnet`)."""
    arrivals: float = 60.0
    """By messages: nodes come one after another over so many seconds."""
    period: float = 1.0
    """By messages: seconds between two signs of life."""


class _Pairs(NamedTuple):
    file: str
    separator: str | None


PAIRS = {
    "wikipedia": _Pairs("subscriptions/wikipedia_edits_jodie.txt.xz", None),
    "youtube": _Pairs("subscriptions/youtube_groupmemberships.tsv.xz", "\t"),
    "github": _Pairs("subscriptions/github_watch_2009.txt.xz", ":"),
}


class TopicSample(msgspec.Struct, frozen=True, tag="topic-sample"):
    """§4.5: some random topics of a real trace, and all users that want one of them."""

    data: str
    topics: int = 3000
    seed: int = 0

    def load(self) -> Workload:
        if self.data not in PAIRS:
            raise UnknownName("user-topic trace", self.data, list(PAIRS))
        pairs = PAIRS[self.data]
        wanted: dict[str, set[str]] = {}
        with lzma.open(data_file(pairs.file), "rt", encoding="ascii") as lines:
            for line in lines:
                if not line.startswith("#"):
                    user, topic = line.strip().split(pairs.separator)[:2]
                    wanted.setdefault(topic, set()).add(user)
        topics = sorted(wanted)
        if len(topics) > self.topics:
            topics = sorted(random.Random(f"topics/{self.seed}").sample(topics, self.topics))
        lists: dict[str, list[str]] = {}
        for topic in topics:
            for user in wanted[topic]:
                lists.setdefault(f"u{user}", []).append(f"t{topic}")
        return Workload.from_lists({user: sorted(lists[user]) for user in sorted(lists)})
