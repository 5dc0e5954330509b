"""What a study of Magnet's trees asks for: how the overlay is made, by arrays or by messages, and on which real subscriptions."""

from __future__ import annotations

from typing import Literal

import msgspec

from topicweave.blocks.growing_ids import MAX_BYTES
from topicweave.data.reading import real_workload
from topicweave.data.sampling import random_topics
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


TRACES = ("wikipedia", "youtube", "github")


class TopicSample(msgspec.Struct, frozen=True, tag="topic-sample"):
    """§4.5: some random topics of a real trace, and all users that want one of them."""

    data: str
    topics: int = 3000
    seed: int = 0

    def load(self) -> Workload:
        if self.data not in TRACES:
            raise UnknownName("user-topic trace", self.data, list(TRACES))
        whole = real_workload(self.data)
        sample = random_topics(whole, topics=min(self.topics, whole.topics), seed=self.seed)
        # A user and a topic of one name would be one point on the ring; and the paper publishes once on every topic, whatever its rate.
        lists = {
            f"u{user}": [f"t{sample.topic_names[topic]}" for topic in sample.interests(index)]
            for index, user in enumerate(sample.node_names)
        }
        return Workload.from_lists(lists)
